"""How well what was said is found again: ``python -m bench retrieval [folder …]``.

A folder holds chats and questions about them, one JSON object a line:

- ``messages.jsonl``: ``conv``, ``msg_id``, ``ts``, ``sender_id``, ``sender_name``, ``text``;
- ``questions.jsonl``: ``conv``, ``qid``, ``category``, ``question``, ``evidence`` (ids of messages
  that answer it; none if nothing does), ``asked_at``, and ``asker`` if one asks about themself.

The messages come in as events, as they do in life, and the questions go through the search that
people and models use. Printed are the share of the evidence among the first ten (R@10), and the
mean of one over the place of the first of it (MRR).
"""

import asyncio
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

from bench.figures import Times, line, title
from bot.app import App, open_app
from bot.config import Config
from bot.embed import embed_all
from bot.ingest import ingest
from bot.model import Chat
from bot.paths import ROOT
from bot.search_messages import search_messages
from bot.simulate import Person, VirtualClock, events, segments
from bot.store.message_search import Window, lexical_hits
from bot.store.messages import messages_by_rows

OWN_SET = ROOT / "bench" / "sets" / "club_zh"
BOT_ID = 10_001
FIRST_GROUP, FIRST_PERSON = 20_001, 30_001
SHOWN = 10
LOOKED_AT = 100


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and which messages answer it."""

    chat: Chat
    conv: str
    id: str
    text: str
    evidence: frozenset[str]
    asker_id: str
    asked_at: int
    """UTC milliseconds."""


@dataclass(slots=True)
class LabelledChats:
    """Chats of a folder, as the store is to know them."""

    said: list[tuple[Chat, dict[str, Any]]] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    _people: dict[str, int] = field(default_factory=dict)

    def person(self, name: str) -> int:
        """Return the user id of somebody; what is no number gets one."""
        if name.isdecimal():
            return int(name)
        return self._people.setdefault(name, FIRST_PERSON + len(self._people))


@dataclass(frozen=True, slots=True)
class Marks:
    """How well one question was answered."""

    recall: float
    reciprocal: float


def read_chats(folder: Path) -> LabelledChats:
    """Return the chats of a folder; one in which the bot speaks is private."""
    rows = _rows(folder / "messages.jsonl")
    asked = _rows(folder / "questions.jsonl")
    found = LabelledChats()
    chats = {conv: _chat(found, conv, number, rows) for number, conv in enumerate(_convs(rows))}
    found.said = [(chats[row["conv"]], row) for row in rows]
    found.questions = [
        Question(
            chat=chats[row["conv"]],
            conv=row["conv"],
            id=row["qid"],
            text=row["question"],
            evidence=frozenset(row["evidence"]),
            asker_id=str(found.person(row["asker"])) if row.get("asker") else "",
            asked_at=_milliseconds(row["asked_at"]),
        )
        for row in asked
    ]
    return found


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(text) for text in path.read_text("utf-8").splitlines() if text.strip()]


def _convs(rows: Iterable[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(row["conv"] for row in rows))


def _chat(found: LabelledChats, conv: str, number: int, rows: Sequence[dict[str, Any]]) -> Chat:
    senders = dict.fromkeys(row["sender_id"] for row in rows if row["conv"] == conv)
    others = [found.person(one) for one in senders if one != str(BOT_ID)]
    if str(BOT_ID) in senders:
        return Chat(str(BOT_ID), "private", str(others[0]))
    return Chat(str(BOT_ID), "group", str(FIRST_GROUP + number))


def _milliseconds(moment: str) -> int:
    return round(datetime.fromisoformat(moment).timestamp() * 1000)


async def take_in(app: App, clock: VirtualClock, chats: LabelledChats) -> dict[str, str]:
    """Let everything be said; return the msg_id of each message by its platform id."""
    ids: dict[str, str] = {}
    for number, (chat, row) in enumerate(chats.said, start=1):
        at = _milliseconds(row["ts"])
        await clock.advance(max(0, at - clock.now()) / 1000)
        await ingest(app, _event(chats, chat, row, number, at))
        ids[str(number)] = row["msg_id"]
    return ids


def _event(
    chats: LabelledChats, chat: Chat, row: dict[str, Any], number: int, at: int
) -> dict[str, Any]:
    sender = Person(chats.person(row["sender_id"]), row["sender_name"])
    body = [segments.text(row["text"])]
    if chat.is_group:
        return events.group_message(
            BOT_ID, int(chat.id), sender, body, message_id=number, at=at, real_seq=str(number)
        )
    event = events.private_message(
        BOT_ID, sender, body, message_id=number, at=at, real_seq=str(number)
    )
    is_own = sender.user_id == BOT_ID
    return events.message_sent(event, int(chat.id)) if is_own else event


async def answers(app: App, question: Question, ids: dict[str, str]) -> list[str]:
    """Return the msg_ids that a search finds for a question, the best first."""
    found = await search_messages(
        app, question.chat, question.asker_id, question.text, Window(), LOOKED_AT
    )
    return [ids[hit.stored.message.platform_id] for hit in found.hits]


async def answers_by_words(app: App, question: Question, ids: dict[str, str]) -> list[str]:
    """Return what is found by words alone."""
    hits = await lexical_hits(app.db, question.chat, question.text, Window(), LOOKED_AT)
    found = {one.row_id: one for one in await messages_by_rows(app.db, [h.row_id for h in hits])}
    return [ids[found[hit.row_id].message.platform_id] for hit in hits]


def marks(found: Sequence[str], evidence: frozenset[str]) -> Marks:
    """Return how well a question was answered that has an answer."""
    recall = len(evidence & set(found[:SHOWN])) / len(evidence)
    places = [place for place, one in enumerate(found, start=1) if one in evidence]
    return Marks(recall, 1 / places[0] if places else 0.0)


def mean_marks(all_marks: Iterable[Marks]) -> Marks:
    """Return the means of both."""
    all_marks = list(all_marks)
    return Marks(mean(m.recall for m in all_marks), mean(m.reciprocal for m in all_marks))


def measure(folder: Path, sets: Iterable[Path]) -> None:
    """Print how well the questions of each set are answered, and write down what was found."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in sets:
        title(f"retrieval: {path.name}")
        target = folder / f"retrieval-{path.name}.jsonl"
        with TemporaryDirectory() as place:
            told = asyncio.run(_measure(Path(place), read_chats(path)))
        target.write_text("\n".join([*told, ""]), "utf-8")
        line(f"what was found stands in {target.name}")


async def _measure(place: Path, chats: LabelledChats) -> list[str]:
    clock = VirtualClock(_milliseconds(chats.said[0][1]["ts"]))
    config = Config(root=place, sqlite_synchronous="NORMAL", database_url="sqlite:///bench.db")
    async with open_app(config, clock) as app:
        ids = await take_in(app, clock, chats)
        embedding = asyncio.create_task(embed_all(app))
        while not embedding.done():
            await asyncio.sleep(0.001)
            await clock.advance(1)
        await clock.advance(max(0, chats.questions[0].asked_at - clock.now()) / 1000)
        line(f"{len(ids)} messages, {embedding.result()} vectors, {len(chats.questions)} questions")
        return await _print_marks(app, chats, ids)


async def _print_marks(app: App, chats: LabelledChats, ids: dict[str, str]) -> list[str]:
    """Print how well all questions are answered, and return what was found, a line for each."""
    told: list[str] = []
    took: list[float] = []
    hybrid: list[Marks] = []
    words: list[Marks] = []
    unanswerable: list[int] = []
    for question in chats.questions:
        began = time.perf_counter()
        found = await answers(app, question, ids)
        took.append((time.perf_counter() - began) * 1000)
        told.append(json.dumps({"conv": question.conv, "qid": question.id, "ranked": found}))
        if not question.evidence:
            unanswerable.append(len(found))
            continue
        hybrid.append(marks(found, question.evidence))
        words.append(marks(await answers_by_words(app, question, ids), question.evidence))
    for name, all_marks in (("words and vectors", hybrid), ("words alone", words)):
        found_marks = mean_marks(all_marks)
        line(f"{name:<20} R@10 {found_marks.recall:.3f}   MRR {found_marks.reciprocal:.3f}")
    line(f"without an answer: found {unanswerable}")
    line(f"a question takes {Times(tuple(took))}")
    return told
