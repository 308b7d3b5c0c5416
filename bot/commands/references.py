"""How a command names an entry: ``#00a2``, ``群#00a2``, ``群 20001 #00a2``, ``成员 30001 #00a2``.

A number is one within its scope. Alone it means the nearest: whose that is, each command says.
"""

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

from bot.model import ENTRY_DIGITS, entry_number

OFF_WORDS = frozenset({"取消", "关", "off"})

_LABEL = f"(?P<label>[{ENTRY_DIGITS}]{{1,12}})"
_REFERENCE = re.compile(
    rf"(?:(?P<whose>群|成员|我)\s*(?P<id>\d{{1,18}})?\s*#|#?)\s*{_LABEL}(?:\s+(?P<word>\S+))?"
)


@dataclass(frozen=True, slots=True)
class Reference:
    """An entry as somebody named it."""

    number: int
    whose: Literal["群", "成员", "我", ""]
    id: str
    """Of the group or the member, maybe empty."""
    word: str
    """What stands behind it."""


def read_reference(arguments: str) -> Reference | None:
    """Return the entry that the arguments of a command name, or ``None`` if they name none."""
    text = unicodedata.normalize("NFKC", arguments).strip().lower()
    found = _REFERENCE.fullmatch(text)
    number = entry_number(found["label"]) if found else None
    if found is None or number is None:
        return None
    whose = found["whose"]
    return Reference(
        number,
        whose if whose in ("群", "成员", "我") else "",
        found["id"] or "",
        found["word"] or "",
    )
