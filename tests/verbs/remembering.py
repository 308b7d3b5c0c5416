"""Memory on the stage: entries that rest on stored messages, and models that compress them."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from bot.llm.protocol import ModelRequest
from bot.model import Chat, Document, Entry, Scope, Stream
from bot.store.memory import StreamWriter, forget_message, read_stream, rewrite
from bot.store.messages import Recall, recall_message
from bot.store.tasks import queue_compression
from bot.worker import tick
from tests.store.rows import said, store
from tests.verbs.stage import BOT, FISH, GROUP, Stage

CHAT = Chat(str(BOT), "group", str(GROUP))
OF_GROUP = Stream(Scope(str(BOT), "group", str(GROUP)), CHAT)
OF_FISH = Stream(Scope(str(BOT), "member", str(FISH)), CHAT)
FIRST_DAY = date(2026, 3, 1)


def day(number: int) -> str:
    """Return the local day so many days after the first."""
    return (FIRST_DAY + timedelta(days=number)).isoformat()


@dataclass(frozen=True, slots=True)
class Told:
    """Entries as a test made them: their numbers, and the rows that each rests on."""

    numbers: list[int]
    rows: dict[int, int]


async def remember(
    stage: Stage,
    stream: Stream,
    count: int,
    *,
    document: Document = "daily",
    first_day: int = 0,
    a_day: int = 3,
    text: str = "第 {} 件事：去湖边走了一圈",
) -> Told:
    """Let a stream hold so many more entries, each resting on a message of its own."""
    db = stage.app.db
    (already,) = (await stage.rows("SELECT count(*) FROM messages"))[0]
    ids = [f"m{already + number}" for number in range(1, count + 1)]
    at = stage.now + already
    receipts = await store(
        db,
        *(
            said(f"话 {id}", id=id, at=at + number, chat=stream.origin, by=str(FISH))
            for number, id in enumerate(ids)
        ),
        pending=False,
    )
    rows = [receipt.row_id for receipt in receipts]
    numbers = []

    def add(writer: StreamWriter) -> None:
        for number, row in enumerate(rows):
            numbers.append(
                writer.add(
                    document,
                    text.format(already + number + 1),
                    [[row]],
                    date=day(first_day + number // a_day),
                    source_task="group",
                )
            )

    await change(stage, stream, add)
    return Told(numbers, dict(zip(numbers, rows, strict=True)))


async def change(stage: Stage, stream: Stream, how: Callable[[StreamWriter], object]) -> None:
    """Change a stream, and keep no record of it."""
    async with stage.app.db.transaction() as tx:
        await rewrite(tx, {stream: how}, at=stage.now, by="test", why="")
        await tx.execute_fetchall("DELETE FROM revisions WHERE by = 'test'")


async def recall_rows(stage: Stage, *rows: int) -> None:
    """Take messages back, by their rows."""
    for row in rows:
        ((platform_id,),) = await stage.rows("SELECT platform_id FROM messages WHERE id = ?", row)
        async with stage.app.db.transaction() as tx:
            found = await recall_message(tx, Recall(CHAT, platform_id, str(FISH), stage.now))
            assert found is not None
            assert found.row_id == row
            await forget_message(tx, row, stage.now)


async def held(stage: Stage, stream: Stream, document: Document) -> list[Entry]:
    """Return the living entries of a document, in order of their numbers."""
    memory = (await read_stream(stage.app.db, stream)).memory
    return [entry for entry in memory.entries if entry.document == document]


async def numbers(stage: Stage, stream: Stream, document: Document = "daily") -> list[int]:
    return [entry.number for entry in await held(stage, stream, document)]


async def compress_now(stage: Stage, stream: Stream, reason: Any = "count") -> None:
    """Queue the compression of a stream and let the worker do what is due."""
    async with stage.app.db.transaction() as tx:
        await queue_compression(tx, stream, reason, stage.now)
    await tick(stage.app)


def lines(request: ModelRequest, heading: str) -> list[dict[str, Any]]:
    """Return the objects under one heading of a compression's prompt."""
    text = request.messages[0].content.split(f"\n【{heading}】\n", maxsplit=1)[1]
    block = text.split("\n【", maxsplit=1)[0]
    return [json.loads(line) for line in block.splitlines() if line.startswith("{")]


def grouped(shown: Iterable[Mapping[str, Any]], size: int = 6) -> list[dict[str, Any]]:
    """Return items that take in what is shown, some at a time, as they should."""
    shown = list(shown)
    items = []
    for start in range(0, len(shown), size):
        part = shown[start : start + size]
        days = sorted({one["date"] for one in part})
        length = sum(len(one["text"]) for one in part) // 5
        text = f"{'、'.join(days)}：{part[0]['text'][: 40 + length]}"
        items.append({"date": days[-1], "text": text, "sources": [one["id"] for one in part]})
    return items


def well(request: ModelRequest) -> str:
    """Compress as one should."""
    return json.dumps({"memory": grouped(lines(request, "近事"))}, ensure_ascii=False)


def badly(request: ModelRequest) -> str:
    """Compress to nothing."""
    shown = lines(request, "近事")
    item = {"date": shown[-1]["date"], "text": "聊得很开心", "sources": [s["id"] for s in shown]}
    return json.dumps({"memory": [item]}, ensure_ascii=False)
