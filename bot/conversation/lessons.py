"""Lessons: which error of a tool was followed by a success, and what had changed in between. Pure.

Nothing that anybody said goes into one: values are replaced by what kind of value they are. See
``docs/tools.md``, "Lessons".
"""

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from bot.conversation.tools import ToolResult
from bot.model import KeptLesson, Lesson
from bot.text import clipped, single_line

TTL_MS = 90 * 86_400_000
"""A lesson that helped nobody for so long is forgotten."""

MAX_ATTACHED = 3
MAX_LEARNED = 5
"""So many come from one turn at most."""

SIMILAR = 0.5
"""Errors that share less of their words have nothing to do with each other."""

MAX_KEYWORDS = 24
SYMPTOM_CHARS = 160
ACTION_CHARS = 200
READ_CHARS = 2_000
"""Of an error so much is looked at."""

TELLING_CHARS = 4
"""So many characters of a word tell which it was."""

HEAD = "以前遇到类似错误时这样解决过（仅供参考）："

_VALUE = "<值>"
_RUN_OF_VALUES = re.compile(rf"{_VALUE}(?:[\s、,]*{_VALUE})+")
_CJK = "\u2e80-\u9fff\uf900-\ufaff\uac00-\ud7ff\U00020000-\U0003ffff"
_CJK_RUN = re.compile(f"[{_CJK}]+")
_WORD = re.compile(rf"(?:(?![{_CJK}])\w)+")
"""Of scripts that part their words."""
_KEYWORD = re.compile(f"[a-z][a-z_]{{2,}}|(?:(?![\u3000-\u303f])[{_CJK}])+")
_MASK = re.compile("<[^<>]*>")
_ATTACHED = re.compile(r"^- 经验 #(\d{1,18})：", re.M)
_DATE = re.compile(r"\d{2,4}[-/.年]\d{1,2}[-/.月]\d{1,2}日?(?:[ T]?\d{1,2}:\d{2}(?::\d{2})?)?")

_MASKS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b[a-z][a-z0-9+.-]*://\S+|\bwww\.\S+", re.I), "<网址>"),
    (re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"), "<邮箱>"),
    (_DATE, "<日期>"),
    (re.compile(r"#[0-9a-zA-Z]{1,18}\b"), "<编号>"),
    # A token of letters and digits: a key, a hash, a file's name.
    (re.compile(r"(?<![\w-])(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{8,}", re.A), "<编号>"),
    (re.compile(r"(?<![\w-])[\w-]{24,}", re.A), "<编号>"),
    (re.compile(r"\d{5,}"), "<号码>"),
)
_QUOTED = re.compile(
    r"“([^”]*)”|‘([^’]*)’|「([^」]*)」|『([^』]*)』|《([^》]*)》|\"([^\"]*)\"|`([^`]*)`"
    r"|(?<!\w)'([^']*)'(?!\w)"
)


@dataclass(frozen=True, slots=True)
class Tried:
    """One call of a tool in a turn, and what it came to."""

    tool: str
    arguments: str
    """JSON text as the model wrote it."""
    result: ToolResult
    attached: tuple[int, ...] = ()
    """The lessons that stood beside the error."""


def learned(attempts: Sequence[Tried], words: Mapping[str, frozenset[str]]) -> list[Lesson]:
    """Return what the calls of a turn teach: each error that was followed by a success of the same
    tool, once.

    Args:
        attempts: in order.
        words: by tool, the names and choices of its schema: they are nobody's values.
    """
    found: dict[tuple[str, str], Lesson] = {}
    for failed, solved_by in _solved(attempts):
        known = words.get(failed.tool, frozenset())
        symptom = symptom_of(failed.result.text, failed.arguments, known)
        keywords = keywords_of(symptom)
        if keywords:
            cause, action = _change(failed.arguments, solved_by.arguments, known)
            # The last failure is the one that the success differs from least.
            found[failed.tool, symptom] = Lesson(failed.tool, keywords, symptom, cause, action)
    return list(found.values())[-MAX_LEARNED:]


def helpful(attempts: Sequence[Tried]) -> frozenset[int]:
    """Return the lessons that stood beside an error whose retry succeeded."""
    return frozenset(number for failed, _ in _solved(attempts) for number in failed.attached)


def _solved(attempts: Sequence[Tried]) -> Iterator[tuple[Tried, Tried]]:
    """Yield each failure with the next success of the same tool, if there is one."""
    for at, failed in enumerate(attempts):
        if failed.result.is_error:
            later = (one for one in attempts[at + 1 :] if one.tool == failed.tool)
            success = next((one for one in later if not one.result.is_error), None)
            if success is not None:
                yield failed, success


# Masking


def symptom_of(error: str, arguments: str = "", words: frozenset[str] = frozenset()) -> str:
    """Return an error without the values that are in it, on one line.

    Args:
        error: as the model read it; lessons that stand behind it are left out.
        arguments: what the tool was called with; nothing of these stays.
        words: names and choices of the tool's schema, which stay.
    """
    text = unicodedata.normalize("NFKC", error.split(HEAD)[0][:READ_CHARS])
    text = single_line(text).replace("<", "(").replace(">", ")")
    text = _QUOTED.sub(lambda found: _kept_quote(found, words), text)
    for pattern, mask in _MASKS[:2]:
        text = pattern.sub(mask, text)
    text = _without_values(text, arguments, words)
    for pattern, mask in _MASKS[2:]:
        text = _outside_masks(text, lambda part, p=pattern, m=mask: p.sub(m, part))
    text = _RUN_OF_VALUES.sub(_VALUE, text)
    return clipped(text.strip(), SYMPTOM_CHARS)


def _kept_quote(found: re.Match[str], words: frozenset[str]) -> str:
    inside = next((group for group in found.groups() if group is not None), "")
    return inside if inside in words else _VALUE


def _without_values(text: str, arguments: str, words: frozenset[str]) -> str:
    values = [value for value in _texts_in(arguments) if value not in words]
    for value in sorted(values, key=len, reverse=True):
        if len(value) > 1:
            text = _outside_masks(text, lambda part, v=value: _without(part, v))
    pairs = {a + b for value in values for run in _CJK_RUN.findall(value) for a, b in pairwise(run)}
    spoken = " ".join(
        word.casefold() for value in values for word in _WORD.findall(value) if word not in words
    )
    text = _outside_masks(text, lambda part: _CJK_RUN.sub(lambda m: _unpaired(m[0], pairs), part))
    return _outside_masks(
        text, lambda part: _WORD.sub(lambda m: _VALUE if _is_in(m[0], spoken) else m[0], part)
    )


def _is_in(word: str, spoken: str) -> bool:
    """Whether a word is one of those that were spoken, or so long a part of one that it tells."""
    word = word.casefold()
    if len(word) >= TELLING_CHARS:
        return word in spoken
    return len(word) > 1 and f" {word} " in f" {spoken} "


def _without(text: str, value: str) -> str:
    """Return ``text`` without a value; one of letters must stand for itself."""
    edge = r"(?<![A-Za-z0-9_])", r"(?![A-Za-z0-9_])"
    before = edge[0] if re.match(r"\w", value[0], re.A) else ""
    behind = edge[1] if re.match(r"\w", value[-1], re.A) else ""
    return re.sub(before + re.escape(value) + behind, _VALUE, text, flags=re.I)


def _unpaired(run: str, pairs: set[str]) -> str:
    """Return a run of characters without those that stand side by side in some value."""
    hidden = {
        place for at, (a, b) in enumerate(pairwise(run)) if a + b in pairs for place in (at, at + 1)
    }
    if not hidden:
        return run
    marked = "".join("\0" if at in hidden else one for at, one in enumerate(run))
    return re.sub("\0+", _VALUE, marked)


def _outside_masks(text: str, change: Callable[[str], str]) -> str:
    """Change what of a text is no mask."""
    masks = _MASK.findall(text)
    parts = [change(part) for part in _MASK.split(text)]
    return "".join(part + mask for part, mask in zip(parts, [*masks, ""], strict=True))


def _texts_in(arguments: str) -> list[str]:
    """Return all text in some arguments, names included; of what is no JSON, all of it."""
    try:
        given = json.loads(arguments) if arguments else {}
    except (ValueError, RecursionError):
        given = arguments
    texts: list[str] = []
    left = [given]
    while left:
        one = left.pop()
        if isinstance(one, Mapping):
            left += [*one.keys(), *one.values()]
        elif isinstance(one, list):
            left += one
        elif isinstance(one, str):
            texts.append(single_line(unicodedata.normalize("NFKC", one)))
    return texts


def keywords_of(symptom: str) -> tuple[str, ...]:
    """Return what makes errors alike: words, and of Chinese each two neighbours."""
    found = _KEYWORD.findall(_MASK.sub(" ", symptom).lower())
    parts = (part for word in found for part in _parts(word))
    return tuple(dict.fromkeys(parts))[:MAX_KEYWORDS]


def _parts(word: str) -> Iterable[str]:
    if word.isascii() or len(word) == 1:
        return (word,)
    return (a + b for a, b in pairwise(word))


# What had changed


def _change(before: str, after: str, words: frozenset[str]) -> tuple[str, str]:
    """Return the cause of a failure and the action that solved it."""
    old, new = _object(before), _object(after)
    if new is None or (old is not None and old == new):
        return "暂时的失败", "原样再试一次"
    if old is None:
        shown = "，".join(f"{_name(n, words)}={_shape(v, words)}" for n, v in new.items())
        return "参数不是 JSON 对象", clipped(f"写成 JSON 对象：{shown}", ACTION_CHARS)
    added = [name for name in new if name not in old]
    dropped = [name for name in old if name not in new]
    changed = [name for name in new if name in old and old[name] != new[name]]
    causes = (
        ("缺少参数", [_name(name, words) for name in added]),
        ("多了参数", [_name(name, words) if name in words else "<参数>" for name in dropped]),
        ("参数不合适", [_name(name, words) for name in changed]),
    )
    steps = [
        *(f"加上 {_name(name, words)}={_shape(new[name], words)}" for name in added),
        *(f"去掉 {shown}" for shown in causes[1][1]),
        *(
            f"{_name(n, words)} 从 {_shape(old[n], words)} 改成 {_shape(new[n], words)}"
            for n in changed
        ),
    ]
    cause = "；".join(f"{what} {'、'.join(names)}" for what, names in causes if names)
    return clipped(cause, SYMPTOM_CHARS), clipped("；".join(steps), ACTION_CHARS)


def _object(text: str) -> dict[str, Any] | None:
    try:
        given = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        return None
    return given if isinstance(given, dict) else None


def _name(name: str, words: frozenset[str]) -> str:
    """Return a parameter's name, on one line; what is no name of the tool is somebody's words."""
    return single_line(name) if name in words else "<参数>"


def _shape(value: Any, words: frozenset[str]) -> str:
    """Return what kind of value something is."""
    match value:
        case bool() | None:
            return json.dumps(value)
        case int() | float():
            return str(value) if abs(value) < 10_000 else "<号码>"
        case str():
            return _text_shape(value, words)
        case list():
            return f"<列表 {len(value)} 项>"
        case _:
            return "<对象>"


def _text_shape(value: str, words: frozenset[str]) -> str:
    plain = value.strip()
    if not plain:
        return "<空>"
    if plain in words:
        return single_line(plain)
    if _DATE.fullmatch(plain):
        return "<日期和时间>" if ":" in plain else "<日期>"
    if _MASKS[0][0].fullmatch(plain):
        return "<网址>"
    return "<数字>" if plain.isdecimal() else f"<文字，{len(plain)} 字>"


# Finding and showing them


def related(symptom: str, known: Iterable[KeptLesson]) -> list[KeptLesson]:
    """Return the lessons that an error is like, the closest first; none if none is like it."""
    asked = set(keywords_of(symptom))
    scored = [(_likeness(asked, one.lesson), one) for one in known]
    close = [pair for pair in scored if pair[0] >= SIMILAR]
    close.sort(key=lambda pair: (-pair[0], -pair[1].renewed_at, -pair[1].id))
    return [one for _, one in close[:MAX_ATTACHED]]


def _likeness(asked: set[str], lesson: Lesson) -> float:
    words = set(lesson.keywords)
    return len(asked & words) / len(asked | words) if asked else 0.0


def lessons_text(lessons: Sequence[KeptLesson]) -> str:
    """Return what stands behind an error, ``""`` without lessons."""
    lines = [
        f"- 经验 #{one.id}：现象：{one.lesson.symptom}；原因：{one.lesson.cause}；"
        f"做法：{one.lesson.action}"
        for one in lessons
    ]
    return "\n".join((HEAD, *lines)) if lines else ""


def attached_in(text: str) -> tuple[int, ...]:
    """Return the lessons that ``lessons_text`` shows."""
    return tuple(int(number) for number in _ATTACHED.findall(text)[:MAX_ATTACHED])


def masked_action(text: str) -> str:
    """Return an action as an operator wrote it, on one line and without numbers or addresses."""
    return clipped(symptom_of(text.replace(HEAD, "")), ACTION_CHARS)
