"""A workshop of memory: the program on a real database, people who speak, a model that keeps notes.

Time stands still until a test moves it.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot.app import App, open_app
from bot.clock import local_date
from bot.command import command
from bot.config import Config
from bot.export import exported_scope
from bot.ingest import ingest
from bot.llm.protocol import ModelAnswer, ModelRequest, Purpose
from bot.llm.scripted import Line, Script, ScriptedModel
from bot.model import Chat, Message, Scope, Segment, Sender, TaskName, TurnLine, Usage
from bot.onebot.events import Recalled
from bot.recall import recall
from bot.simulate import Person, VirtualClock, WorldPlatform
from bot.simulate.actions import Desk
from bot.simulate.events import with_anonymous
from bot.store.ingest import Arrival, store_arrivals
from bot.store.memory import cursors_of
from bot.store.tasks import Claim, TaskRecord, claim_tasks, recent_tasks
from bot.store.turns import NewTurn, add_turn, finish_turn
from bot.store.usage import add_usage
from bot.worker import LEASE_MS, queue_due, tick
from tests.store.rows import indexed
from tests.verbs.stage import new_world

NOON = 1_785_297_600_000
"""2026-07-29 12:00 in Shanghai."""

MINUTE = 60_000
BOT, OPERATOR = "10001", "10002"
FISH, BEAR, CAT = "30001", "30002", "30003"
GROUP = Chat(BOT, "group", "20001")
OTHER_GROUP = Chat(BOT, "group", "20002")
PRIVATE = Chat(BOT, "private", FISH)
OF_GROUP = Scope(BOT, "group", "20001")
OF_FISH = Scope(BOT, "member", FISH)
OF_BEAR = Scope(BOT, "member", BEAR)

PURPOSES: Mapping[TaskName, Purpose] = {
    "group": "reflect.group",
    "member-batch": "reflect.member-batch",
    "private-owner": "reflect.private-owner",
}

CALM: Mapping[str, object] = {"sendGapSeconds": 0, "sendPerChatPerMinute": 1_000}


@dataclass(frozen=True, slots=True)
class Shown:
    """What a request of a reflection shows."""

    request: ModelRequest

    @property
    def prompt(self) -> str:
        return self.request.messages[0].content

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The messages, in order."""
        return [one for one in self._objects() if "ref" in one]

    @property
    def texts(self) -> list[str]:
        return [line["text"] for line in self.lines]

    @property
    def entries(self) -> list[dict[str, Any]]:
        """The remembered entries, of everybody."""
        shown = [entry for one in self._objects() for entry in one.get("entries", [one])]
        return [entry for entry in shown if "document" in entry]

    @property
    def summaries(self) -> list[str]:
        """The summaries, of everybody."""
        return [one["summary"] for one in self._objects() if one.get("summary")]

    def _objects(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.prompt.splitlines() if line[:2] == '{"'][1:]

    def id_of(self, text: str) -> str:
        """The id under which an entry is shown."""
        return next(entry["id"] for entry in self.entries if entry["text"] == text)


def diary(request: ModelRequest) -> str:
    """Answer with one dated event for every message of a person, in that message's own words."""
    lines = [line for line in Shown(request).lines if line["direction"] == "inbound"]
    if request.purpose != "reflect.member-batch":
        return json.dumps({"daily": [_event(line) for line in lines]}, ensure_ascii=False)
    speakers = dict.fromkeys(line["senderId"] for line in lines)
    members = [
        {"senderId": who, "daily": [_event(line) for line in lines if line["senderId"] == who]}
        for who in speakers
    ]
    return json.dumps({"members": members}, ensure_ascii=False)


def _event(line: Mapping[str, Any]) -> dict[str, Any]:
    return {"date": line["at"][:10], "text": line["text"], "refs": [line["ref"]]}


def say(**documents: object) -> str:
    """An answer of the group's or the private task."""
    return json.dumps(documents, ensure_ascii=False)


def say_of(sender_id: str, **documents: object) -> str:
    """An answer of the members' task about one of them."""
    return json.dumps({"members": [{"senderId": sender_id, **documents}]}, ensure_ascii=False)


def refuse_if(word: str, error: Exception, otherwise: Script = diary) -> Script:
    """A model that will not read one word."""

    def script(request: ModelRequest) -> Line:
        if any(word in text for text in Shown(request).texts):
            return error
        return otherwise(request) if callable(otherwise) else otherwise

    return script


def cut_off(text: str = '{"daily":[{"text":"一半') -> ModelAnswer:
    """An answer that the model could not finish."""
    return ModelAnswer(text, "length", "scripted", "scripted", 10, 0, 5)


class Workshop:
    """The program, its clock and its model, and what can be done with them."""

    def __init__(self, app: App, clock: VirtualClock, model: ScriptedModel) -> None:
        self.app = app
        self.clock = clock
        self.model = model
        self.world = new_world()
        self.world.join(int(OTHER_GROUP.id), Person(int(OPERATOR), "管家"))
        self.platform = WorldPlatform(self.world, clock)
        app.accounts.connect(BOT, self.platform)

    # What happens

    @property
    def now(self) -> int:
        return self.clock.now()

    async def hear(
        self,
        *texts: str,
        by: str = FISH,
        chat: Chat = GROUP,
        received_at: int | None = None,
        sent_at: int | None = None,
        pending: bool = True,
        **fields: Any,
    ) -> list[int]:
        """Store messages as ingest does and return their rows."""
        arrivals = [
            Arrival(
                _message(text, by, chat, sent_at or self.now, received_at or self.now, **fields),
                pending=pending,
            )
            for text in texts
        ]
        receipts = await store_arrivals(self.app.db, arrivals, self.app.opt_outs)
        return [receipt.row_id for receipt in receipts]

    async def chatter(
        self, count: int, chat: Chat = GROUP, start: int = 1, people: Sequence[str] = (FISH, BEAR)
    ) -> list[int]:
        """Let people say so many things in turn."""
        if not chat.is_group:
            people = (chat.id,)
        rows: list[int] = []
        for number in range(start, start + count):
            by = people[number % len(people)]
            rows += await self.hear(f"第{number}句", by=by, chat=chat)
        return rows

    async def say_own(self, text: str, chat: Chat = GROUP, **fields: Any) -> int:
        """Store a message of the bot."""
        [row] = await self.hear(
            text, by=BOT, chat=chat, pending=False, direction="outbound", **fields
        )
        return row

    async def answer_once(self, chat: Chat = PRIVATE) -> None:
        """Let the bot have answered in a chat, in words that are not read again."""
        await self.hear("在吗", by=FISH, chat=chat, kind="command", pending=False)
        await self.say_own("在", chat, kind="notice")
        turn = NewTurn(
            chat=chat,
            user_id=FISH,
            asked_at=self.now,
            started_at=self.now,
            addressed=True,
            third_party=False,
            context_until=0,
            lines=(TurnLine(None, "answer", "在"),),
            model="example-model",
            endpoint="default",
        )
        async with self.app.db.transaction() as tx:
            turn_id = await add_turn(tx, turn, "sending", at=self.now)
            assert turn_id is not None
            await finish_turn(tx, turn_id, "sent", sent={}, at=self.now)

    async def recall(self, row: int, chat: Chat = GROUP) -> None:
        """Take a message back."""
        [[platform_id]] = await self.rows("SELECT platform_id FROM messages WHERE id = ?", row)
        await recall(self.app, Recalled(chat, platform_id, "", FISH, self.now))

    async def spend(self, tokens: int, purpose: str = "reflect.group") -> None:
        """Have spent so many tokens just now."""
        await add_usage(
            self.app.db, Usage(purpose, "example-model", "default", self.now, 9, tokens, 0, 0, True)
        )

    async def set(self, chat: Chat | None = None, **values: Any) -> None:
        """Change settings by their keys."""
        for key, value in values.items():
            await self.app.settings.change(key, value, by=OPERATOR, at=self.now, chat=chat)

    async def command(
        self, text: str, by: str = OPERATOR, chat: Chat = GROUP, *, masked: bool = False
    ) -> str:
        """Give a command, maybe as an anonymous member, and return all of its answer."""
        if chat.is_group:
            spoken = self.world.say(int(chat.id), int(by), text, at=self.now)
        else:
            spoken = self.world.whisper(int(by), text, at=self.now)
        raw = Desk(self.world).event_of(spoken)
        taken = await ingest(self.app, with_anonymous(raw) if masked else raw)
        assert taken is not None
        told = len(self.platform.sent)
        await command(self.app, taken)
        return "\n".join(sent.text for sent in self.platform.sent[told:])

    # Work

    async def pass_time(self, minutes: float) -> None:
        """Let time pass."""
        await self.clock.advance(minutes * 60)

    async def tick(self) -> int:
        """Let the worker do all that is due; return how many tasks it ran."""
        return await tick(self.app)

    async def idle(self) -> int:
        """Let everything fall silent, and the worker look."""
        await self.pass_time(15)
        return await self.tick()

    async def claim(self, owner: str, task: TaskName = "group") -> Claim:
        """Queue what is due and take the first task of a kind under a name of one's own."""
        await queue_due(self.app)
        async with self.app.db.transaction() as tx:
            claims = await claim_tasks(tx, owner, limit=99, now=self.now, until=self.now + LEASE_MS)
        return next(c for c in claims if isinstance(c, Claim) and c.task == task)

    # What came of it

    def asked(self, task: TaskName | None = None) -> list[Shown]:
        """The requests of one task, or of all."""
        purposes = [PURPOSES[task]] if task else list(PURPOSES.values())
        return [Shown(r) for r in self.model.requests if r.purpose in purposes]

    async def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """What the database says."""
        async with self.app.db.reader() as connection:
            return [tuple(row) for row in await connection.execute_fetchall(sql, values)]

    async def values(self, sql: str, *values: object) -> list[Any]:
        """The first column of what the database says."""
        return [row[0] for row in await self.rows(sql, *values)]

    async def cursors(self, chat: Chat = GROUP) -> dict[str, int]:
        """How far each task has read."""
        return await cursors_of(self.app.db, chat)

    async def pending(self, chat: Chat = GROUP) -> dict[str, int]:
        """What waits, by task, as the counters say."""
        return dict(
            await self.rows(
                "SELECT task, pending FROM cursors JOIN chats AS c ON c.id = chat_id"
                " WHERE c.kind = ? AND c.peer_id = ?",
                chat.kind,
                chat.id,
            )
        )

    async def tasks(self, limit: int = 1_000) -> list[TaskRecord]:
        """All tasks, the oldest first."""
        return (await recent_tasks(self.app.db, limit=limit))[::-1]

    async def task(self) -> TaskRecord:
        """The newest task."""
        return (await self.tasks())[-1]

    async def export(self, scope: Scope) -> dict[str, Any]:
        """What is remembered of a scope."""
        return await exported_scope(self.app.db, scope)

    async def texts(self, scope: Scope, *documents: str) -> list[str]:
        """The texts of what is remembered of a scope."""
        found = (await self.export(scope))["documents"]
        names = documents or ("profile", "pattern", "note", "daily", "memory")
        return [entry["text"] for name in names for entry in found[name]]

    async def told(self) -> list[str]:
        """What the operator was told."""
        await asyncio.sleep(0)
        return [sent.text for sent in self.platform.sent if sent.chat.id == OPERATOR]

    async def all_text(self) -> str:
        """Every text of every table but the settings, as one would find them in the file."""
        tables = await self.values(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            " AND name <> 'message_index'"
        )
        found: list[Any] = [await self.rows(f'SELECT * FROM "{table}"') for table in sorted(tables)]
        found.append({row: sorted(of_row) for row, of_row in indexed(self.app.db.path).items()})
        return json.dumps(found, ensure_ascii=False, default=repr)


_numbers = iter(range(1, 1 << 60))


def _message(
    text: str, by: str, chat: Chat, sent_at: int, received_at: int, **fields: Any
) -> Message:
    given: dict[str, Any] = {
        "platform_id": str(next(_numbers)),
        "sender": Sender(by, nickname=f"人{by[-2:]}"),
        "direction": "inbound",
        "segments": (Segment("text", {"text": text}),),
        "local_date": local_date(sent_at, Config(root=Path()).timezone),
        **fields,
    }
    return Message(chat=chat, sent_at=sent_at, received_at=received_at, text=text, **given)


@asynccontextmanager
async def open_workshop(
    root: Path,
    *,
    model: ScriptedModel | None = None,
    clock: VirtualClock | None = None,
    settings: Mapping[str, object] | None = None,
    port: int = 8080,
) -> AsyncIterator[Workshop]:
    """Open the program on the database of ``root``, which may lie there already."""
    config = Config(
        root=root,
        port=port,
        superusers=frozenset({OPERATOR}),
        sqlite_synchronous="NORMAL",
        database_url="sqlite:///qunyi.db",
        initial_settings={**CALM, **(settings or {})},
    )
    clock, model = clock or VirtualClock(NOON), model or ScriptedModel(diary)
    async with open_app(config, clock, model) as app:
        yield Workshop(app, clock, model)


# What must hold of any database, whatever happened to it.


async def check_counters(shop: Workshop) -> None:
    """What the counters say is what counting says."""
    counted = await shop.rows(
        "SELECT k.chat_id, k.task, (SELECT count(*) FROM messages AS m"
        "   WHERE m.chat_id = k.chat_id AND m.id > k.last_id AND m.counted = 1)"
        " FROM cursors AS k ORDER BY 1, 2"
    )
    kept = await shop.rows("SELECT chat_id, task, pending FROM cursors ORDER BY 1, 2")
    assert kept == counted


async def check_batches(shop: Workshop) -> None:
    """The successful batches of a task follow one another without a gap, up to its cursor."""
    cursors = await shop.rows("SELECT chat_id, task, last_id FROM cursors")
    for chat_id, task, last_id in cursors:
        spans = await shop.rows(
            "SELECT after_id, last_id FROM tasks WHERE chat_id = ? AND task = ?"
            " AND state IN ('done', 'stopped') ORDER BY id",
            chat_id,
            task,
        )
        ends = [0, *(end for _, end in spans)]
        assert [begin for begin, _ in spans] == ends[:-1]
        assert ends[-1] == last_id


async def check_entries(shop: Workshop) -> None:
    """Every entry of a reflection rests on messages that the cursor of its own task has passed."""
    orphans = await shop.rows(
        "SELECT e.id FROM entries AS e JOIN streams AS s ON s.id = e.stream_id"
        " JOIN proofs AS p ON p.entry_id = e.id JOIN proof_messages AS pm ON pm.proof_id = p.id"
        " LEFT JOIN cursors AS k ON k.chat_id = s.chat_id AND k.task = e.source_task"
        " WHERE e.source_task NOT IN ('remember', 'command', 'consolidate')"
        " AND (k.last_id IS NULL OR pm.message_id > k.last_id)"
    )
    assert orphans == []


async def check_all(shop: Workshop) -> None:
    """All of the above, and the file is sound."""
    await check_counters(shop)
    await check_batches(shop)
    await check_entries(shop)
    assert await shop.rows("PRAGMA foreign_key_check") == []


def spoken(shown: Iterable[Shown]) -> list[str]:
    """The texts that some requests show, one after the other."""
    return [text for one in shown for text in one.texts]
