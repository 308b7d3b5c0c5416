"""Daily entries of one invented person, and answers of a model that compresses them well."""

import json
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from typing import Any

from bot.memory.compression import Plan
from bot.model import Chat, Document, Entry, Scope, Stream

GROUP_CHAT = Chat("10001", "group", "20001")
STREAM = Stream(Scope("10001", "member", "30001"), GROUP_CHAT)
FIRST_DAY = date(2026, 3, 1)


def day(number: int) -> str:
    """Return the local day so many days after the first."""
    return (FIRST_DAY + timedelta(days=number)).isoformat()


def entry(number: int, document: Document = "daily", text: str = "", **fields: Any) -> Entry:
    """Return an entry; three daily ones are of one day."""
    values: dict[str, Any] = {"date": day(number // 3), "updated_at": number, **fields}
    return Entry(
        number,
        STREAM,
        document,
        text or f"第 {number} 件事：去湖边走了一圈",
        ((number,),),
        **values,
    )


def dailies(count: int, first: int = 1) -> list[Entry]:
    return [entry(number) for number in range(first, first + count)]


def item(text: str, day_of_it: str, *sources: str) -> dict[str, Any]:
    return {"date": day_of_it, "text": text, "sources": list(sources)}


def answer(items: Iterable[dict[str, Any]]) -> str:
    return json.dumps({"memory": list(items)}, ensure_ascii=False)


def merged(labelled: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return an item that tells of entries, given as labels and days, as it should."""
    days = sorted({day_of_it for _, day_of_it in labelled})
    text = f"{'、'.join(days)} 在湖边走了 {len(labelled)} 次，每次都是一圈"
    return item(text, days[-1], *(label for label, _ in labelled))


def good_items(plan: Plan, size: int = 6) -> list[dict[str, Any]]:
    """Return items that take in all daily entries of a plan, some at a time."""
    labels = [(f"d{place}", e.date or "") for place, e in enumerate(plan.daily, start=1)]
    return [merged(labels[start : start + size]) for start in range(0, len(labels), size)]
