"""What is told of a question by its words alone: whether it asks for a number, of whom, and when.

Pure. See ``docs/search.md``, "Ranking messages".
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Lean = Literal["", "late", "early"]
"""Whether a question asks for how things stand now, or for how they began."""

_SELF = re.compile(r"(?<![自和])[我俺咱](?![们俩])|\b(?:I|my|me|mine)\b")
_ADDRESS = re.compile(
    r"[帮替跟和给]我(?=[查找看问搜说讲想翻])|告诉我|提醒我|让我(?=[查找看想])"
    r"|我(?:就|只)?[想要](?:要)?(?=知道|问|了解|打听|查)|我(?=问[一下个]|不?知道|不?记得|不?确定|忘)"
    r"|\b(?:tell|show|remind) me\b|\blet me know\b|\bI (?:want|need|would like) to know\b"
    r"|\bI (?:wonder|forgot|forget|remember|don't (?:know|remember))\b",
    re.I,
)
"""How somebody asks for whatever it is: no question about themself."""
_LATE = re.compile(
    r"现在|目前|如今|最后|最终|最近|最新|[改变换调][成到为]"
    r"|\b(?:now|latest|last|currently|finally|changed)\b",
    re.I,
)
_EARLY = re.compile(r"最早|最初|一开始|第一次|起初|当初|\b(?:first|earliest|originally)\b", re.I)
_AMOUNT = re.compile(
    r"多少|几|哪天|哪一天|多久|什么时候|何时|多[长高重远大快]|日期|号码"
    r"|\b(?:how (?:many|much|long|far|old)|when)\b",
    re.I,
)
_NUMBER = re.compile(
    r"\d|[一二两三四五六七八九十百千万半]+(?:[点块元岁个天年月日号度斤秒米名位层次条份]|分钟|公[里斤])"
)
_ASKING = re.compile(r"[?？]|(?:吗|呢|么)\s*$")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a question asks for."""

    is_of_self: bool = False
    """The asker asks about themself."""
    wants_number: bool = False
    """An amount, a date or a length of time."""
    lean: Lean = ""
    named: frozenset[str] = frozenset()
    """Of the speakers, those whom it names."""


def wanted(question: str, speakers: Iterable[tuple[str, str]]) -> Wanted:
    """Return what a question asks for.

    Args:
        question: as somebody put it.
        speakers: user ids, each with a name of theirs.
    """
    late, early = _LATE.search(question), _EARLY.search(question)
    return Wanted(
        is_of_self=bool(_SELF.search(_ADDRESS.sub(" ", question))),
        wants_number=bool(_AMOUNT.search(question)),
        lean="" if bool(late) == bool(early) else "late" if late else "early",
        named=frozenset(who for who, name in speakers if name and name in question),
    )


def has_number(text: str) -> bool:
    """Whether a text tells of a number that counts or dates something."""
    return _NUMBER.search(text) is not None


def is_asking(text: str) -> bool:
    """Whether a text asks rather than tells."""
    return _ASKING.search(text) is not None
