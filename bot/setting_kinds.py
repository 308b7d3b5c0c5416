"""Kinds of setting values: how each is checked, typed by people and described to them.

A kind is an ``Annotated`` type: pydantic checks the value, and a :class:`Kind` beside it parses
typed text and says in Chinese what is asked. See ``docs/architecture.md``, "Settings".
"""

import json
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

KindName = Literal[
    "switch",
    "minutes",
    "seconds",
    "count",
    "ratio",
    "choice",
    "text",
    "language",
    "hours",
    "words",
    "ids",
    "budget",
    "prices",
    "windows",
]

MINUTES_PER_DAY = 24 * 60
PERSONA_MAX_CHARS = 4_000
LANGUAGE_MAX_CHARS = 40
LIST_MAX_ITEMS = 1_000
WORD_MAX_CHARS = 100
HOURS_MAX_INTERVALS = 24
COUNT_MAX = 1_000_000
TOKENS_MAX = 1_000_000_000_000

_TRUE = frozenset({"true", "on", "yes", "1", "开", "开启", "是"})
_FALSE = frozenset({"false", "off", "no", "0", "关", "关闭", "否"})
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?", re.ASCII | re.IGNORECASE)
_INTERVAL = re.compile(r"(\d{1,2}):(\d{2})-(\d{1,2}):(\d{2})", re.ASCII)
_ACCOUNT = re.compile(r"[1-9]\d{0,19}", re.ASCII)
_BETWEEN_ITEMS = re.compile(r"[,，、;；\n]")
_DASHES = str.maketrans({"–": "-", "—": "-", "~": "-"})
_PHONE_JSON = str.maketrans({"“": '"', "”": '"', "：": ":", "，": ",", "｛": "{", "｝": "}"})


@dataclass(frozen=True, slots=True)
class Kind:
    """What is asked of a value, and how typed text becomes JSON."""

    name: KindName
    requirement: str
    """Completes the sentence ``要求…``."""
    parse: Callable[[str], object]
    """Raises ``ValueError`` or ``RecursionError`` for text that cannot be such a value."""


# --- typed text -> JSON -----------------------------------------------------------------------


def _switch(text: str) -> bool:
    word = text.casefold()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError("neither on nor off")


def _number(text: str) -> int | float:
    ascii_text = unicodedata.normalize("NFKC", text)
    if not _NUMBER.fullmatch(ascii_text):
        raise ValueError("not a number")
    return plain_number(float(ascii_text))


def plain_number(number: float) -> int | float:
    """Return ``number`` as JSON people would write: whole ones without a fraction."""
    return int(number) if number.is_integer() else number


def _text(text: str) -> object:
    """Return what a JSON string says, else the text as it is; ``""`` is how to type nothing."""
    if len(text) < 2 or not (text.startswith('"') and text.endswith('"')):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _json(text: str) -> object:
    """Return parsed JSON; phones type curly quotes and full-width punctuation."""
    try:
        return json.loads(text)
    except ValueError:
        return json.loads(text.translate(_PHONE_JSON))


def _list(text: str) -> object:
    """Return a list from JSON, or from items with commas between."""
    return _json(text) if text.startswith("[") else _items(text)


def _items(text: str) -> list[str]:
    return [item for part in _BETWEEN_ITEMS.split(text) if (item := part.strip())]


# --- checks that pydantic has no words for ----------------------------------------------------


def _has_controls(text: str, allowed: str = "") -> bool:
    return any(
        char not in allowed and unicodedata.category(char) in {"Cc", "Cs", "Zl", "Zp"}
        for char in text
    )


def _clean_text(value: str) -> str:
    text = value.replace("\r\n", "\n").strip()
    if _has_controls(text, allowed="\n\t"):
        raise ValueError("control characters")
    return text


def _language_name(value: str) -> str:
    """Return the name of a language and nothing else: it enters the fixed part of a prompt."""
    name = value.strip()
    if not name or not all(map(_may_name_a_language, name)):
        raise ValueError("not a language name")
    return "auto" if name.casefold() == "auto" else name


def _may_name_a_language(char: str) -> bool:
    return unicodedata.category(char)[0] in "LM" or char in " -()（）"


def _distinct(value: object, check: Callable[[object], str]) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError("not a list")
    return tuple(dict.fromkeys(check(item) for item in value))


def _word(value: object) -> str:
    word = value.strip() if isinstance(value, str) else ""
    if not 1 <= len(word) <= WORD_MAX_CHARS or _has_controls(word):
        raise ValueError("not a word")
    return word


def _account(value: object) -> str:
    account = str(value).strip() if isinstance(value, str | int) else ""
    if not _ACCOUNT.fullmatch(account):
        raise ValueError("not an account")
    return account


def _words(value: object) -> tuple[str, ...]:
    return _distinct(value, _word)


def _accounts(value: object) -> tuple[str, ...]:
    return _distinct(value, _account)


def intervals(spec: str) -> list[tuple[int, int]]:
    """Return the intervals of quiet hours as minutes of the day, start and end.

    An end before its start crosses midnight; ``24:00`` may end a day.

    Raises:
        ValueError: ``spec`` is not ``HH:MM-HH:MM`` with commas between.
    """
    parts = _items(unicodedata.normalize("NFKC", spec).translate(_DASHES))
    if len(parts) > HOURS_MAX_INTERVALS:
        raise ValueError("too many intervals")
    return [_interval(re.sub(r"\s", "", part)) for part in parts]


def _interval(part: str) -> tuple[int, int]:
    match = _INTERVAL.fullmatch(part)
    if not match:
        raise ValueError("not an interval")
    start_hour, start_minute, end_hour, end_minute = map(int, match.groups())
    start, end = start_hour * 60 + start_minute, end_hour * 60 + end_minute
    if max(start_minute, end_minute) > 59 or start >= MINUTES_PER_DAY or end > MINUTES_PER_DAY:
        raise ValueError("no time of day")
    if start == end:
        raise ValueError("an empty interval")
    return start, end


def _hours(value: str) -> str:
    """Return the intervals in their one form."""
    return ",".join(f"{_time(start)}-{_time(end)}" for start, end in intervals(value))


def _time(minute_of_day: int) -> str:
    return f"{minute_of_day // 60:02}:{minute_of_day % 60:02}"


def _option(value: object) -> object:
    return value.strip().casefold() if isinstance(value, str) else value


# --- the kinds --------------------------------------------------------------------------------


def _whole(lowest: int, highest: int, zero: str = "") -> Kind:
    note = f"（0 表示{zero}）" if zero else ""
    return Kind("count", f" {lowest} 到 {highest} 之间的整数{note}", _number)


def _one_of(*options: str) -> Kind:
    return Kind("choice", "以下之一：" + "、".join(options), str)


Switch = Annotated[
    bool,
    Field(strict=True),
    Kind("switch", " true 或 false（也可写 on/off、开/关）", _switch),
]
Minutes = Annotated[
    float,
    Field(strict=True, ge=0.01, le=10_080, allow_inf_nan=False),
    Kind("minutes", " 0.01 到 10080 之间的数", _number),
]
Seconds = Annotated[
    float,
    Field(strict=True, ge=0, le=3_600, allow_inf_nan=False),
    Kind("seconds", " 0 到 3600 之间的数", _number),
]
Ratio = Annotated[
    float,
    Field(strict=True, ge=0, le=1, allow_inf_nan=False),
    Kind("ratio", " 0 到 1 之间的数", _number),
]
Count = Annotated[int, Field(strict=True, ge=1, le=COUNT_MAX), _whole(1, COUNT_MAX)]
CountOrNever = Annotated[int, Field(strict=True, ge=0, le=COUNT_MAX), _whole(0, COUNT_MAX, "从不")]
DaysOrForever = Annotated[
    int, Field(strict=True, ge=0, le=COUNT_MAX), _whole(0, COUNT_MAX, "一直保留")
]
RecallTokens = Annotated[int, Field(strict=True, ge=0, le=32_768), _whole(0, 32_768, "关闭")]
Persona = Annotated[
    str,
    Field(strict=True, max_length=PERSONA_MAX_CHARS),
    AfterValidator(_clean_text),
    Kind("text", f"不超过 {PERSONA_MAX_CHARS} 字的文字，不含控制字符（空表示内置人设）", _text),
]
Language = Annotated[
    str,
    Field(strict=True, max_length=LANGUAGE_MAX_CHARS),
    AfterValidator(_language_name),
    Kind("language", f" auto 或语言名称（不超过 {LANGUAGE_MAX_CHARS} 字）", _text),
]
QuietHours = Annotated[
    str,
    Field(strict=True),
    AfterValidator(_hours),
    Kind("hours", ' HH:MM-HH:MM，可跨零点，多段用逗号隔开，"" 表示没有', _text),
]
Words = Annotated[
    tuple[str, ...],
    BeforeValidator(_words),
    Field(max_length=LIST_MAX_ITEMS),
    Kind("words", f"词语列表，用逗号隔开或写成 JSON，每个不超过 {WORD_MAX_CHARS} 字", _list),
]
Accounts = Annotated[
    tuple[str, ...],
    BeforeValidator(_accounts),
    Field(max_length=LIST_MAX_ITEMS),
    Kind("ids", " QQ 号列表，用逗号隔开或写成 JSON", _list),
]
ReplyMode = Annotated[
    Literal["mention", "auto", "silent"],
    BeforeValidator(_option),
    _one_of("mention", "auto", "silent"),
]
MemoryPolicyName = Annotated[
    Literal["default", "chat", "journal"],
    BeforeValidator(_option),
    _one_of("default", "chat", "journal"),
]
TokenEstimatorName = Annotated[
    Literal["cjk", "chars4"], BeforeValidator(_option), _one_of("cjk", "chars4")
]
GroupAccess = Annotated[
    Literal["all", "approved"], BeforeValidator(_option), _one_of("all", "approved")
]
PrivateAccess = Annotated[
    Literal["friends", "none", "list", "all"],
    BeforeValidator(_option),
    _one_of("friends", "none", "list", "all"),
]
Tokens = Annotated[int, Field(strict=True, ge=0, le=TOKENS_MAX)]
Price = Annotated[float, Field(strict=True, ge=0, le=COUNT_MAX, allow_inf_nan=False)]


class FrozenModel(BaseModel):
    """Immutable, camelCase outside, and strict about unknown keys."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        validate_default=True,
        alias_generator=to_camel,
        populate_by_name=True,
    )


class TokenBudget(FrozenModel):
    """Tokens a local day by purpose; 0 allows none."""

    chat: Tokens = 2_000_000
    reflect: Tokens = 1_000_000
    compress: Tokens = 300_000
    summarize: Tokens = 500_000
    decide: Tokens = 300_000
    vision: Tokens = 200_000
    embed: Tokens = 2_000_000


class ModelPrice(FrozenModel):
    """What a million tokens of one model cost, in the currency in which the operator counts."""

    prompt: Price
    completion: Price
    cached: Price | None = None
    """Of cached prompt tokens; without it they cost as much as others."""


DailyTokenBudget = Annotated[
    TokenBudget,
    Kind(
        "budget",
        ' JSON 对象，如 {"chat": 2000000}，用途有 ' + "、".join(TokenBudget.model_fields),
        _json,
    ),
]
ModelPrices = Annotated[
    dict[Annotated[str, Field(min_length=1, max_length=200)], ModelPrice],
    Field(max_length=LIST_MAX_ITEMS),
    Kind(
        "prices",
        ' JSON 对象，如 {"模型名": {"prompt": 2, "cached": 0.5, "completion": 8}}，'
        "是每百万 token 的价格",
        _json,
    ),
]
ModelWindows = Annotated[
    dict[
        Annotated[str, Field(min_length=1, max_length=200)],
        Annotated[int, Field(strict=True, ge=1_000, le=100_000_000)],
    ],
    Field(max_length=LIST_MAX_ITEMS),
    Kind(
        "windows",
        ' JSON 对象，如 {"模型名": 32768}，是该模型能读写的 token 数，1000 到 100000000',
        _json,
    ),
]
