"""What a provider says when it says no, and what that means here. Pure.

See ``docs/architecture.md``, "Models". Providers agree on neither codes nor wording, so both
are looked at: codes first, then words. The provider's own words may echo a prompt or a key and
therefore never enter an error's text.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from bot.errors import (
    ContextTooLong,
    ModelAnswerInvalid,
    ModelError,
    ModelRefused,
    ModelUnavailable,
)

MAX_WORDS_CHARS = 4_000
"""How much of a provider's explanation is looked at."""

REFUSAL_CODES = frozenset(
    {
        "content_filter",
        "contentfilter",
        "content_filtered",
        "content_policy_violation",
        "content_blocked",
        "censorship_blocked",
        "data_inspection_failed",
        "datainspectionfailed",
        "moderation_blocked",
        "prohibited_content",
        "responsibleaipolicyviolation",
        "safety",
        "sensitive",
        "sensitive_words_detected",
        "1301",  # Zhipu
        "1026",  # MiniMax, in the prompt
        "1027",  # MiniMax, in the answer
        "10013",  # Spark, in the prompt
        "10014",  # Spark, in the answer
    }
)
REFUSAL_FINISHES = REFUSAL_CODES | {"recitation", "blocklist", "spii", "refusal"}
_REFUSAL_WORDS = re.compile(
    r"sensitive_?content|data_?inspection|content exists risk|inappropriate content"
    r"|content management policy|content[ _](?:filter|policy)|considered high risk"
    r"|violat\w+ (?:the |our )?(?:usage|content|safety) (?:guidelines|polic)|flagged"
    r"|safety_check_type|敏感|违规|不安全|内容安全|涉政|涉黄",
)

LENGTH_CODES = frozenset(
    {
        "context_length_exceeded",
        "context_window_exceeded",
        "exceed_context_size_error",
        "request_too_large",
        "string_above_max_length",
        "1261",  # Zhipu
    }
)
_LENGTH_WORDS = re.compile(
    r"context[ _]?(?:length|window|size|limit)|maximum (?:context|prompt length)"
    r"|range of input length|model token limit|too many (?:input )?tokens|reduce the length"
    r"|(?:prompt|input|request|message)s? (?:\S+ ){0,5}(?:is|are) too (?:long|large)"
    r"|(?:input|prompt) (?:token count|tokens?|length) (?:\S+ ){0,4}exceed"
    r"|max_(?:model|seq|input)_len|max_new_tokens` must be"
    r"|上下文(?:长度|窗口)|超长|输入(?:长度|过长)|超(?:过|出)\S{0,6}(?:最大)?长度",
)

_OUT_OF_QUOTA = re.compile(
    r"insufficient_?(?:quota|balance)|exceeded_current_quota|arrear|billing|余额|欠费",
)

_CONFIGURATION_WORDS = re.compile(
    r"api[ _-]?key|model[ _](?:not[ _](?:exist|found)|does not exist)|(?:unknown|no such) model"
    r"|模型不存在",
)

_TOOL_WORDS = re.compile(r"\btools?\b|\btools?[_-]|\bfunctions?[ _-]?call|\bfunctions\b|工具|函数")
_REFUSING_WORDS = re.compile(
    r"support|unknown|unrecognized|unexpected|extra|invalid|requires?\b|enable"
    r"|not (?:permitted|allowed|available)|不支持|不允许|未开启"
)
TOOL_STATUSES = frozenset({0, 400, 404, 405, 422, 500, 501})

_TOLD_WINDOW = re.compile(
    r"(?:context (?:length|size|window)|token limit|tokens allowed)\D{0,12}([\d,]{4,12})"
    r"|input length should be \[\d+, ?([\d,]{4,12})\]"
    r"|> ?([\d,]{4,12}) maximum|([\d,]{4,12}) maximum context"
)

PASSING_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
"""Statuses that often go away by themselves."""

_PLAIN_CODE = re.compile(r"(?=.{1,48}$)[A-Za-z]+(?:[_.][A-Za-z]+)*|\d{1,6}")
"""Words or a number: what a code looks like and a key or a sentence does not."""

_CURES = {
    401: "the key is refused, check …_API_KEY",
    402: "the account has no credit",
    403: "the key may not use this model",
    404: "no such model, or a wrong …_BASE_URL (most end in /v1)",
    405: "a wrong …_BASE_URL (most end in /v1)",
    429: "too many requests, or the quota is used up",
}


@dataclass(frozen=True, slots=True)
class Rejection:
    """An error answer, read as far as it can be."""

    status: int
    """The HTTP status; 0 for an error inside an answer of status 200 that names none."""
    code: str = ""
    type: str = field(default="", repr=False)
    param: str = ""
    words: str = field(default="", repr=False)
    """Everything it explains, in lower case. May echo a prompt: never shown, never logged."""
    retry_after_seconds: float | None = None

    @property
    def codes(self) -> frozenset[str]:
        """The code and the type, in lower case."""
        return frozenset({self.code.lower(), self.type.lower()})

    @property
    def is_passing(self) -> bool:
        """Whether the same request may well succeed in a moment."""
        return self.status in PASSING_STATUSES and not _OUT_OF_QUOTA.search(self.words)

    @property
    def is_about_request(self) -> bool:
        """Whether a differently worded request might be taken."""
        return self.status in (0, 400, 422)


def read_rejection(
    status: int, body: object, retry_after_seconds: float | None = None
) -> Rejection:
    """Return what an error answer says; ``body`` is decoded JSON, text, or nothing."""
    error = _error_object(body)
    return Rejection(
        status=status or _status_in(error),
        code=_text(_first(error, "code", "error_code", "status_code")),
        type=_text(error.get("type")),
        param=_text(error.get("param")),
        words=" ".join(_words(error))[:MAX_WORDS_CHARS].lower(),
        retry_after_seconds=retry_after_seconds,
    )


def rejection_in(body: object) -> Rejection | None:
    """Return the error that an answer of status 200 carries instead of a completion, if any."""
    if not isinstance(body, Mapping) or body.get("choices"):
        return None
    if body.get("error") or _minimax_failed(body) or _is_bare_error(body):
        return read_rejection(0, body)
    return None


def refuses_content(rejection: Rejection) -> bool:
    """Say whether the provider declines what was said rather than how it was asked."""
    if rejection.codes & REFUSAL_CODES or rejection.status == 451:
        return True
    by_words = rejection.status in (0, 400, 403, 421, 422)
    return by_words and bool(_REFUSAL_WORDS.search(rejection.words))


def finds_too_long(rejection: Rejection) -> bool:
    """Say whether the prompt does not fit the model's window."""
    if rejection.codes & LENGTH_CODES or rejection.status == 413:
        return True
    by_words = rejection.status in (0, 400, 422, 500)
    return by_words and bool(_LENGTH_WORDS.search(rejection.words))


def told_window(rejection: Rejection) -> int | None:
    """Return the size of the model's window in tokens, where a provider that finds a prompt too
    long tells it."""
    found = _TOLD_WINDOW.search(rejection.words)
    digits = next((group for group in found.groups() if group), "") if found else ""
    return int(digits.replace(",", "") or 0) or None


def refuses_tools(rejection: Rejection) -> bool:
    """Say whether the provider, or its model, takes no tools; some say so with a 404 or a 500."""
    if rejection.status not in TOOL_STATUSES or finds_too_long(rejection):
        return False
    words = rejection.words
    return bool(_TOOL_WORDS.search(words) and _REFUSING_WORDS.search(words))


def blames_account(rejection: Rejection) -> bool:
    """Say whether key, credit or model name are at fault, where the status says otherwise."""
    words = rejection.words
    return bool(_CONFIGURATION_WORDS.search(words) or _OUT_OF_QUOTA.search(words))


def error_for(rejection: Rejection, where: str, model: str = "") -> ModelError:
    """Return the exception for ``rejection``; ``where`` names model and endpoint.

    Its text has the status, the code and a cure, and none of the provider's own words.
    """
    if refuses_content(rejection):
        return ModelRefused(f"{where} refuses the content{_coded(rejection)}")
    if finds_too_long(rejection):
        text = f"{where}: the prompt is too long{_coded(rejection)}"
        return ContextTooLong(text, model=model, window_tokens=told_window(rejection))
    if rejection.is_about_request and not blames_account(rejection):
        return ModelAnswerInvalid(f"{where} does not accept the request{_coded(rejection)}")
    blamed = "check key, credit and model" if blames_account(rejection) else ""
    cure = _CURES.get(rejection.status, blamed)
    text = f"{where} answers{_coded(rejection)}" + (f": {cure}" if cure else "")
    return ModelUnavailable(
        text, status=rejection.status, retry_after_seconds=rejection.retry_after_seconds
    )


def _coded(rejection: Rejection) -> str:
    parts = [f"HTTP {rejection.status}"] if rejection.status else []
    if rejection.code != str(rejection.status) and _PLAIN_CODE.fullmatch(rejection.code):
        parts.append(rejection.code)
    return f" ({', '.join(parts)})" if parts else ""


def _error_object(body: object) -> Mapping[str, Any]:
    """Find the object that explains: providers wrap it in different ways, or in none."""
    if not isinstance(body, Mapping):
        return {"message": body} if isinstance(body, str) else {}
    for wrapper in ("error", "base_resp", "detail"):
        inner = body.get(wrapper)
        if isinstance(inner, Mapping):
            return {**inner}
        if inner:
            return {**body, "message": _text(inner)}
    return body


def _words(error: Mapping[str, Any], depth: int = 0) -> Iterator[str]:
    for key in ("code", "type", "param", "message", "msg", "error_msg", "status_msg", "raw"):
        yield _text(error.get(key))
    for key in ("innererror", "inner_error", "metadata", "error"):
        inner = error.get(key)
        if isinstance(inner, Mapping) and depth < 3:
            yield from _words(inner, depth + 1)


def _status_in(error: Mapping[str, Any]) -> int:
    code = _text(_first(error, "status", "code"))
    return int(code) if re.fullmatch(r"[45]\d\d", code) else 0


def _minimax_failed(body: Mapping[str, Any]) -> bool:
    status = body.get("base_resp")
    return isinstance(status, Mapping) and status.get("status_code") not in (0, None)


def _is_bare_error(body: Mapping[str, Any]) -> bool:
    return "choices" not in body and bool(_first(body, "message", "msg", "error_msg", "detail"))


def _first(mapping: Mapping[str, Any], *keys: str) -> object:
    return next((mapping[key] for key in keys if mapping.get(key) not in (None, "")), None)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, bool):
        return ""
    if isinstance(value, int | float):
        return str(value)
    return json.dumps(value, ensure_ascii=False, default=str)[:MAX_WORDS_CHARS]
