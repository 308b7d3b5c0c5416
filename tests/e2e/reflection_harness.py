"""Reflections of a running bot: chats to be reflected, a model that answers chat by chat, and what
is remembered, read from outside."""

import json
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bot.clock import SystemClock
from bot.export import exported_scope
from bot.model import Chat, Scope, TaskName
from bot.simulate import Person, Utterance
from bot.simulate.provider import Outcome, ReceivedRequest
from bot.store.database import open_database
from tests.e2e.harness import (
    QUICK,
    WAIT_SECONDS,
    Room,
    RunningBot,
    new_friend,
    new_room,
    prompt,
    until,
)

NEVER_MINUTES = 10_080
SOON_MINUTES = 0.01

REMEMBERING: Mapping[str, object] = {
    **QUICK,
    "memoryIdleMinutes": NEVER_MINUTES,
    "memoryGroupMaxWaitMinutes": NEVER_MINUTES,
    "dailyTokenBudget": {"chat": 10**9, "reflect": 10**9},
}
"""Nothing falls due by time, so that a test says when to reflect."""

WORKING = {"WORKER_INTERVAL_SECONDS": "0.1", "API_TIMEOUT": "5"}
MORNING = 1_787_191_200_000
"""2026-08-20, 10:00 in Shanghai, in UTC milliseconds: so old that nobody answers it."""

MINUTE = 60_000

TASKS: Mapping[str, TaskName] = {
    "group": "group",
    "member": "member-batch",
    "private": "private-owner",
}
"""The tasks by the word that ``/反思`` has for them."""

Script = Outcome | Callable[[ReceivedRequest], Outcome]


@dataclass(frozen=True, slots=True)
class Shown:
    """What a request shows of a chat."""

    chat_id: str
    task: str
    messages: list[dict[str, Any]]
    memory: list[dict[str, Any]]
    turns: int
    """How many turns the conversation has; three for a repair."""

    @property
    def texts(self) -> list[str]:
        return [message["text"] for message in self.messages]

    @property
    def refs(self) -> list[int]:
        return [message["ref"] for message in self.messages]


def shown(request: ReceivedRequest) -> Shown:
    """Return what a reflection is shown: the lines behind the first heading in brackets."""
    turns = prompt(request)
    lines = turns[0]["content"].split("\n")
    data = lines[next(i for i, line in enumerate(lines) if line in ("【群】", "【用户】")) :]
    found = [json.loads(line) for line in data if line.startswith("{")]
    messages = [one for one in found if "ref" in one]
    return Shown(
        chat_id=found[0].get("groupId") or found[0]["senderId"],
        task=request.purpose.removeprefix("reflect."),
        messages=messages,
        memory=[one for one in found[1:] if "ref" not in one],
        turns=len(turns),
    )


def ref_of(request: ReceivedRequest, part: str) -> int:
    """Return the ref of the only message that holds ``part``."""
    (found,) = [m["ref"] for m in shown(request).messages if part in m["text"]]
    return found


def answer(**keys: object) -> str:
    """Return an answer as a model writes it."""
    return json.dumps(keys, ensure_ascii=False)


def of_member(sender_id: object, **documents: object) -> str:
    """Return an answer about one member."""
    return answer(members=[{"senderId": sender_id, **documents}])


def fact(text: str, *refs: int, **more: object) -> dict[str, object]:
    """Return one item of an answer."""
    return {"text": text, "refs": list(refs), **more}


class Mind:
    """What the model server answers: to each chat its own script, and else that nothing is new."""

    def __init__(self) -> None:
        self._scripts: defaultdict[tuple[str, str], deque[Script]] = defaultdict(deque)
        self._standing: dict[tuple[str, str], Script] = {}

    def will(self, chat: Chat, task: TaskName, *scripts: Script) -> None:
        """Answer the next reflections of a chat so, one after the other."""
        self._scripts[chat.id, task].extend(scripts)

    def always(self, chat: Chat, task: TaskName, script: Script) -> None:
        """Answer so whenever nothing else was said."""
        self._standing[chat.id, task] = script

    def __call__(self, request: ReceivedRequest) -> Outcome:
        if not request.purpose.startswith("reflect."):
            return "好的"
        seen = shown(request)
        key = (seen.chat_id, seen.task)
        waiting = self._scripts[key]
        script = waiting.popleft() if waiting else self._standing.get(key, "{}")
        return script(request) if callable(script) else script


@dataclass(frozen=True, slots=True)
class Task:
    """One row of the queue."""

    state: str
    attempts: int
    after_id: int
    last_id: int
    messages: int
    calls: int
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Talk:
    """A chat whose messages are reflected."""

    bot: RunningBot
    mind: Mind
    chat: Chat

    @property
    def scope(self) -> Scope:
        """Whose memory: the group's, or the person's."""
        kind = "group" if self.chat.is_group else "member"
        return Scope(self.chat.bot_id, kind, self.chat.id)

    def member(self, person: Person) -> Scope:
        return Scope(self.chat.bot_id, "member", str(person.user_id))

    async def tell_all(self, said: Iterable[Utterance]) -> list[Utterance]:
        """Report what was said, and wait until it is kept."""
        spoken = list(said)
        desk = self.bot.client.desk
        await self.bot.client.deliver_many(desk.event_of(one) for one in spoken)
        wanted = {str(one.message_id) for one in spoken}
        await until(lambda: wanted <= self._stored_ids(), f"{len(spoken)} messages to be kept")
        return spoken

    def _stored_ids(self) -> set[str]:
        return {message_id for message_id, _, _ in self.bot.messages(self.chat)}

    def requests(self, task: TaskName) -> list[Shown]:
        """Return what the model was shown of this chat for a task, oldest first."""
        purpose = f"reflect.{task}"
        seen = [shown(r) for r in self.bot.models.requests if r.purpose == purpose]
        return [one for one in seen if one.chat_id == self.chat.id]

    def prompts(self, task: TaskName) -> list[str]:
        """Return the whole prompts of a task, oldest first."""
        purpose = f"reflect.{task}"
        asked = [r for r in self.bot.models.requests if r.purpose == purpose]
        return [prompt(r)[0]["content"] for r in asked if shown(r).chat_id == self.chat.id]

    def cursor(self, task: TaskName) -> int:
        rows = self._of_chat("k.last_id", "cursors", task)
        return rows[0][0] if rows else 0

    def pending(self, task: TaskName) -> int:
        rows = self._of_chat("k.pending", "cursors", task)
        return rows[0][0] if rows else 0

    def tasks(self, task: TaskName) -> list[Task]:
        """Return the queue's rows of a task, oldest first."""
        columns = "k.id, state, attempts, after_id, k.last_id, messages, calls, counts"
        rows = sorted(self._of_chat(columns, "tasks", task))
        return [Task(*row[1:-1], counts=json.loads(row[-1] or "{}")) for row in rows]

    def done(self, task: TaskName) -> list[Task]:
        return [one for one in self.tasks(task) if one.state == "done"]

    def row_ids(self, text: str = "%") -> list[int]:
        """Return the rows of what people said here, commands apart, or of a text."""
        rows = self.bot.rows(
            "SELECT m.id FROM messages AS m JOIN chats AS c ON c.id = m.chat_id"
            " WHERE c.kind = ? AND c.peer_id = ? AND m.kind = 'chat' AND m.direction = 'inbound'"
            " AND m.text LIKE ? ORDER BY m.id",
            *(self.chat.kind, self.chat.id, text),
        )
        return [row_id for (row_id,) in rows]

    def _of_chat(self, columns: str, table: str, task: TaskName) -> list[tuple[Any, ...]]:
        return self.bot.rows(
            f"SELECT {columns} FROM {table} AS k JOIN chats AS c ON c.id = k.chat_id"
            " WHERE c.kind = ? AND c.peer_id = ? AND k.task = ?",
            *(self.chat.kind, self.chat.id, task),
        )

    async def until_done(self, task: TaskName, count: int) -> None:
        """Wait until so many reflections of a task have ended well."""
        await until(lambda: len(self.done(task)) >= count, f"{count} × {task} of {self.chat}")

    async def until_drained(self, task: TaskName) -> None:
        """Wait until nothing waits for a task."""
        await until(
            lambda: not self.pending(task) and all(t.state == "done" for t in self.tasks(task)),
            f"{task} of {self.chat} to be drained",
            timeout_seconds=2 * WAIT_SECONDS,
        )


@dataclass(frozen=True, slots=True)
class Circle(Talk):
    """A group that only one test uses."""

    room: Room

    @property
    def one(self) -> Person:
        return self.room.asker

    @property
    def two(self) -> Person:
        return self.room.other

    async def say(self, who: Person, *texts: str, at: int | None = None) -> list[Utterance]:
        """Let somebody say texts, a second apart."""
        begin = self.bot.client.clock.now() if at is None else at
        world = self.bot.world
        return await self.tell_all(
            world.say(self.room.id, who.user_id, text, at=begin + 1_000 * number)
            for number, text in enumerate(texts)
        )

    async def reflect(self, word: str) -> Task:
        """Let the operator have the group reflected now, and return what came of it."""
        task, before = TASKS[word], self._trials(TASKS[word])
        told = await self.room.order(f"/反思 {word}")
        assert "已安排整理" in told, told
        await until(lambda: self._trials(task) > before, f"{task} of {self.chat} to be tried")
        return self.tasks(task)[-1]

    def _trials(self, task: TaskName) -> int:
        return sum(t.attempts + (t.state in ("done", "stopped")) for t in self.tasks(task))

    async def learn(self, word: str, who: Person, text: str, script: Script) -> Task:
        """Let somebody say something, and reflect it."""
        await self.say(who, text)
        self.mind.will(self.chat, TASKS[word], script)
        return await self.reflect(word)


@dataclass(frozen=True, slots=True)
class Friendship(Talk):
    """A private chat that only one test uses."""

    friend: Person

    async def say(self, *texts: str, at: int | None = None) -> list[Utterance]:
        """Let the friend say texts, a second apart; those of long ago are not answered."""
        begin = self.bot.client.clock.now() if at is None else at
        world = self.bot.world
        return await self.tell_all(
            world.whisper(self.friend.user_id, text, at=begin + 1_000 * number)
            for number, text in enumerate(texts)
        )

    async def ask(self, text: str) -> str:
        """Let the friend say something and return the answer."""
        client = self.bot.client
        before = client.records.sent_count(self.chat)
        await self.bot.scene.whisper(self.friend.user_id, text)
        sent = await client.wait_for_sent(before + 1, chat=self.chat, timeout_seconds=WAIT_SECONDS)
        return "\n".join(one.text for one in sent[before:])


def new_circle(bot: RunningBot, mind: Mind, *people: Person, name: str = "测试群") -> Circle:
    """Found a group of the operator and of ``people``, or of three new ones."""
    room = new_room(bot, name, *people)
    if people:
        room = Room(bot, room.id, people[0], people[-1], room.nudger)
    return Circle(bot, mind, room.chat, room)


def new_friendship(bot: RunningBot, mind: Mind) -> Friendship:
    friend = new_friend(bot)
    return Friendship(bot, mind, bot.world.private_chat(friend.user_id), friend)


async def tick(bot: RunningBot, mind: Mind) -> None:
    """Wait until the worker has looked at everything that is there now, and done what was due."""
    for _ in range(2):
        watch = new_circle(bot, mind)
        await watch.say(watch.one, "看一眼")
        await watch.reflect("group")


async def set_to(bot: RunningBot, key: str, value: object) -> None:
    """Let the operator change a setting for all chats."""
    answered = await bot.tell(f"/设置 {key} {value}")
    assert "已生效" in answered, answered


async def remembered(bot: RunningBot, scope: Scope) -> dict[str, Any]:
    """Return what an export of a scope holds now, without the cursors."""
    async with open_database(bot.database, now=SystemClock().now()) as db:
        return (await exported_scope(db, scope))["documents"]


async def texts_of(bot: RunningBot, scope: Scope, document: str) -> list[str]:
    return [entry["text"] for entry in (await remembered(bot, scope))[document]]


def proofs(entry: Mapping[str, Any]) -> list[str]:
    """Return the ids of the messages that an exported entry rests on."""
    return [each["message_id"] for each in entry["evidence"]]
