"""Who may learn what: for every place where something was said, every place where it may be shown.

What is expected stands in tables written by hand. A new way by which memory is shown is one more
``Surface``: how a turn looks through it, and its table.
"""

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from bot.conversation.tokens import estimator
from bot.llm.protocol import ModelRequest
from bot.memory.pack import TokenBudget
from bot.model import Chat, Scope, Stream
from bot.prefetch import prefetch
from bot.store.memory import StreamWriter, rewrite
from bot.worker import tick
from tests.store.rows import said, store
from tests.verbs.remembering import compress_now, well
from tests.verbs.stage import (
    AT_BOT,
    BEAR,
    BOT,
    FISH,
    GROUP,
    OPERATOR,
    OTHER_GROUP,
    Stage,
    whole,
)

PLACES = {
    "private of A": Chat(str(BOT), "private", str(FISH)),
    "private of B": Chat(str(BOT), "private", str(BEAR)),
    "group 1": Chat(str(BOT), "group", str(GROUP)),
    "group 2": Chat(str(BOT), "group", str(OTHER_GROUP)),
    "private of the operator": Chat(str(BOT), "private", str(OPERATOR)),
}
PEOPLE = {"A": FISH, "B": BEAR, "the operator": OPERATOR}

# Everything that is remembered: where it was said, whose it is, and in which documents.

OF_A_PERSON = "profile pattern summary daily memory note"
OF_A_GROUP = "profile summary daily memory note"
REMEMBERED = {
    ("private of A", "A"): OF_A_PERSON,
    ("private of B", "B"): OF_A_PERSON,
    ("group 1", "group"): OF_A_GROUP,
    ("group 1", "A"): OF_A_PERSON,
    ("group 1", "B"): OF_A_PERSON,
    ("group 2", "group"): OF_A_GROUP,
    ("group 2", "A"): OF_A_PERSON,
    ("group 2", "B"): OF_A_PERSON,
}

Origin = tuple[str, str]
Shown = Mapping[Origin, str]


@dataclass(frozen=True)
class Turn:
    """Somebody speaks somewhere."""

    place: str
    speaker: str

    def __str__(self) -> str:
        return f"{self.place}, {self.speaker} speaks"


TURNS = (
    Turn("private of A", "A"),
    Turn("group 1", "A"),
    Turn("group 1", "B"),
    Turn("group 2", "A"),
)

# What may be shown, besides what only shows where a person's groups may know of each other.

IN_PROMPTS: Mapping[Turn, Shown] = {
    Turn("private of A", "A"): {
        ("private of A", "A"): "profile pattern summary daily memory",
        ("group 1", "A"): "profile pattern summary daily memory",
        ("group 2", "A"): "profile pattern summary daily memory",
    },
    Turn("group 1", "A"): {
        ("group 1", "group"): "profile summary daily memory",
        ("group 1", "A"): "profile pattern summary",
    },
    Turn("group 1", "B"): {
        ("group 1", "group"): "profile summary daily memory",
        ("group 1", "B"): "profile pattern summary",
    },
    Turn("group 2", "A"): {
        ("group 2", "group"): "profile summary daily memory",
        ("group 2", "A"): "profile pattern summary",
    },
}
IN_OWN_MEMORY: Mapping[Turn, Shown] = {
    Turn("private of A", "A"): {
        ("private of A", "A"): "profile pattern summary daily memory note",
        ("group 1", "A"): "profile pattern summary daily memory note",
        ("group 2", "A"): "profile pattern summary daily memory note",
    },
    Turn("group 1", "A"): {("group 1", "A"): "profile pattern summary note"},
    Turn("group 1", "B"): {("group 1", "B"): "profile pattern summary note"},
    Turn("group 2", "A"): {("group 2", "A"): "profile pattern summary note"},
}
ACROSS: Mapping[Turn, Shown] = {
    Turn("private of A", "A"): {},
    Turn("group 1", "A"): {("group 2", "A"): "profile pattern summary"},
    Turn("group 1", "B"): {("group 2", "B"): "profile pattern summary"},
    Turn("group 2", "A"): {("group 1", "A"): "profile pattern summary"},
}

IN_PACKS: Mapping[Turn, Shown] = {
    Turn("private of A", "A"): {
        ("private of A", "A"): "profile pattern daily memory note",
        ("group 1", "A"): "profile pattern daily memory note",
        ("group 2", "A"): "profile pattern daily memory note",
    },
    Turn("group 1", "A"): {
        ("group 1", "group"): "profile daily memory note",
        ("group 1", "A"): "profile pattern note",
    },
    Turn("group 1", "B"): {
        ("group 1", "group"): "profile daily memory note",
        ("group 1", "B"): "profile pattern note",
    },
    Turn("group 2", "A"): {
        ("group 2", "group"): "profile daily memory note",
        ("group 2", "A"): "profile pattern note",
    },
}
PACKS_ACROSS: Mapping[Turn, Shown] = {
    turn: dict.fromkeys(shown, "profile pattern") for turn, shown in ACROSS.items()
}


async def in_pack(stage: Stage, turn: Turn) -> str:
    """What a turn is reminded of that asks for each document by its name."""
    chat, by = PLACES[turn.place], str(PEOPLE[turn.speaker])
    budget = TokenBudget(32_768, estimator("cjk"))
    packs = [await prefetch(stage.app, chat, by, word, budget) for word in OF_A_PERSON.split()]
    return "\n".join(pack.render() for pack in packs)


async def in_prompt(stage: Stage, turn: Turn) -> str:
    """The whole prompt of a turn."""
    count = len(stage.model.requests)
    speak(stage, turn, "说说看")
    await stage.advance(60)
    assert len(stage.model.requests) == count + 1
    return whole(stage.model.requests[-1])


async def in_own_memory(stage: Stage, turn: Turn) -> str:
    """What the speaker is told of themselves."""
    return await answer(stage, turn, "/我的记忆")


@dataclass(frozen=True)
class Surface:
    """A way by which memory is shown."""

    look: Callable[[Stage, Turn], Awaitable[str]]
    expected: Mapping[Turn, Shown]
    across: Mapping[Turn, Shown]


SURFACES = {
    "prompt": Surface(in_prompt, IN_PROMPTS, ACROSS),
    "pack": Surface(in_pack, IN_PACKS, PACKS_ACROSS),
    "/我的记忆": Surface(in_own_memory, IN_OWN_MEMORY, ACROSS),
}


def mark(origin: Origin, document: str) -> str:
    return f"〈{origin[0]}·{origin[1]}·{document}〉"


def marks(shown: Shown) -> set[str]:
    return {mark(origin, one) for origin, documents in shown.items() for one in documents.split()}


def marks_in(text: str) -> set[str]:
    return set(re.findall("〈[^〉]+〉", text))


def stream_of(origin: Origin) -> Stream:
    chat = PLACES[origin[0]]
    owner = origin[1]
    scope = Scope(chat.bot_id, "group", chat.id)
    if owner != "group":
        scope = Scope(chat.bot_id, "member", str(PEOPLE[owner]))
    return Stream(scope, chat)


async def remember_everything(stage: Stage) -> None:
    """Let every stream hold one thing in each document, resting on a message of its own chat."""
    for number, (origin, documents) in enumerate(REMEMBERED.items()):
        stream = stream_of(origin)
        by = str(PEOPLE.get(origin[1], FISH))
        message = said("话", id=f"m{number}", at=stage.now + number, chat=stream.origin, by=by)
        [receipt] = await store(stage.app.db, message, pending=False)

        def add(writer: StreamWriter) -> None:
            for document in documents.split():
                text, row = mark(origin, document), receipt.row_id
                if document == "summary":
                    writer.summarise(text, [row])
                else:
                    dated: Any = document
                    date = "2026-07-29" if document in ("daily", "memory") else None
                    writer.add(dated, text, [[row]], date=date, source_task="group")

        async with stage.app.db.transaction() as tx:
            await rewrite(tx, {stream: add}, at=stage.now, by="test", why="")


def speak(stage: Stage, turn: Turn, words: str) -> None:
    who, chat = PEOPLE[turn.speaker], PLACES[turn.place]
    if not chat.is_group:
        stage.whisper(who, words)
    elif words.startswith("/"):
        stage.say(int(chat.id), who, words)
    else:
        stage.say(int(chat.id), who, AT_BOT, " ", words)


async def answer(stage: Stage, turn: Turn, words: str) -> str:
    """What a command is answered."""
    told = len(stage.sent)
    speak(stage, turn, words)
    await stage.advance(60)
    return "\n".join(stage.texts()[told:])


BEFORE = {
    Turn("private of A", "A"): Turn("group 1", "A"),
    Turn("group 1", "A"): Turn("group 1", "B"),
    Turn("group 1", "B"): Turn("group 1", "A"),
    Turn("group 2", "A"): Turn("group 2", "B"),
}
"""The turn right before, of another member where there is one."""


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("turn", TURNS, ids=str)
@pytest.mark.parametrize("for_all", [True, False], ids=["all-across", "none-across"])
@pytest.mark.parametrize("for_oneself", [True, False], ids=["own-across", "own-not-across"])
@pytest.mark.parametrize("is_first", [True, False], ids=["first", "after-another"])
async def test_a_turn_shows_what_its_place_may_know_and_nothing_else(
    stage: Stage, surface: str, turn: Turn, for_all: bool, for_oneself: bool, is_first: bool
):
    await remember_everything(stage)
    await stage.set(memoryMemberCrossGroup=for_all)
    if not for_oneself:
        assert "跨群：关" in await answer(stage, turn, "/跨群 关")
    if not is_first:
        await SURFACES[surface].look(stage, BEFORE[turn])
    found = marks_in(await SURFACES[surface].look(stage, turn))
    expected = marks(SURFACES[surface].expected[turn])
    if for_all and for_oneself:
        expected |= marks(SURFACES[surface].across[turn])
    assert found == expected


async def test_what_one_decides_about_their_groups_binds_nobody_else(stage: Stage):
    await remember_everything(stage)
    await answer(stage, Turn("group 1", "A"), "/跨群 关")
    found = marks_in(await in_prompt(stage, Turn("group 1", "B")))
    assert found >= marks(ACROSS[Turn("group 1", "B")])


async def test_turns_in_turn_show_each_speaker_alone(stage: Stage):
    await remember_everything(stage)
    for turn in (*TURNS, *reversed(TURNS), *TURNS):
        found = marks_in(await in_prompt(stage, turn))
        assert found == marks(IN_PROMPTS[turn]) | marks(ACROSS[turn]), turn
        await stage.advance(60)


async def test_a_switch_holds_in_the_very_next_turn(stage: Stage):
    await remember_everything(stage)
    turn = Turn("group 1", "A")
    for words, is_across in (("/跨群 关", False), ("/跨群 开", True), ("/跨群 关", False)):
        await answer(stage, turn, words)
        found = marks_in(await in_prompt(stage, turn))
        assert (found & marks(ACROSS[turn]) != set()) == is_across


# What operators are shown: in groups no more than anybody, elsewhere nothing said in private.

OPERATOR_IN_GROUP_1 = Turn("group 1", "the operator")
OPERATOR_ALONE = Turn("private of the operator", "the operator")
ASKED: list[tuple[Turn, str, Shown]] = [
    (OPERATOR_IN_GROUP_1, f"/记忆 群 {GROUP}", {("group 1", "group"): OF_A_GROUP}),
    (OPERATOR_IN_GROUP_1, f"/记忆 群 {OTHER_GROUP}", {}),
    (OPERATOR_IN_GROUP_1, f"/记忆 成员 {FISH}", {}),
    (OPERATOR_ALONE, f"/记忆 群 {GROUP}", {("group 1", "group"): OF_A_GROUP}),
    (
        OPERATOR_ALONE,
        f"/记忆 成员 {FISH}",
        {("group 1", "A"): OF_A_PERSON, ("group 2", "A"): OF_A_PERSON},
    ),
]


@pytest.mark.parametrize(("turn", "words", "shown"), ASKED)
async def test_operators_are_shown_what_their_place_may_know(
    stage: Stage, turn: Turn, words: str, shown: Shown
):
    await remember_everything(stage)
    assert marks_in(await answer(stage, turn, words)) == marks(shown)


async def test_an_operator_who_talks_is_shown_nothing_of_others(stage: Stage):
    await remember_everything(stage)
    found = marks_in(await in_prompt(stage, OPERATOR_IN_GROUP_1))
    assert found == marks({("group 1", "group"): "profile summary daily memory"})
    assert marks_in(await in_prompt(stage, OPERATOR_ALONE)) == set()


# What tasks read and change: their own streams.

READ_BY_TASKS: Mapping[tuple[str, str], Shown] = {
    ("group 1", "reflect.group"): {("group 1", "group"): OF_A_GROUP},
    ("group 1", "reflect.member-batch"): {
        ("group 1", "A"): OF_A_PERSON,
        ("group 1", "B"): OF_A_PERSON,
    },
    ("group 2", "reflect.group"): {("group 2", "group"): OF_A_GROUP},
    ("group 2", "reflect.member-batch"): {
        ("group 2", "A"): OF_A_PERSON,
        ("group 2", "B"): OF_A_PERSON,
    },
    ("private of A", "reflect.private-owner"): {("private of A", "A"): OF_A_PERSON},
}


def retract_all(request: ModelRequest) -> str:
    """Retract everything that the scopes can hold, shown or not."""
    labels = [f"{number:04}" for number in range(1, 10)] + [f"000{c}" for c in "abcdefghjkmnp"]
    refs = [
        json.loads(line)["ref"]
        for line in request.messages[0].content.splitlines()
        if line.startswith('{"ref"')
    ]
    retract = [{"id": label, "refs": refs, "why": "不对"} for label in labels]
    if request.purpose == "reflect.member-batch":
        members = [{"senderId": str(who), "retract": retract} for who in (FISH, BEAR)]
        return json.dumps({"members": members})
    return json.dumps({"retract": retract})


async def ended(stage: Stage) -> set[str]:
    rows = await stage.rows("SELECT text FROM entries WHERE ended_at IS NOT NULL")
    return {text for (text,) in rows}


@pytest.mark.parametrize(("place", "purpose"), READ_BY_TASKS)
async def test_a_reflection_reads_and_changes_its_own_streams_alone(
    stage: Stage, place: str, purpose: str
):
    await remember_everything(stage)
    await stage.set(recallTokenBudget=0)
    chat = PLACES[place]
    speak(stage, Turn(place, "A"), "我说错了，都不对")
    await stage.advance(30)
    count = len(stage.model.requests)
    kind: Any = purpose
    # A batch that refuses more than half is asked once more.
    stage.model.enqueue(retract_all, retract_all, purpose=kind)
    for other in {"reflect.group", "reflect.member-batch", "reflect.private-owner"} - {purpose}:
        another: Any = other
        stage.model.enqueue("{}", purpose=another)
    await stage.advance(16 * 60)
    await tick(stage.app)
    asked = [r for r in stage.model.requests[count:] if r.purpose == purpose and r.chat == chat]
    expected = marks(READ_BY_TASKS[place, purpose])
    assert asked
    for request in asked:
        assert marks_in(whole(request)) == expected
    gone = await ended(stage)
    assert gone
    assert gone <= expected


@pytest.mark.parametrize("origin", REMEMBERED, ids=" of ".join)
async def test_a_compression_reads_and_changes_its_own_stream_alone(stage: Stage, origin: Origin):
    await remember_everything(stage)
    await stage.set(memoryMemberKeepRecent=1, memoryGroupKeepRecent=1)
    stream = stream_of(origin)
    before = await ended(stage)

    def add(writer: StreamWriter) -> None:
        for number in range(4):
            writer.add(
                "daily",
                mark(origin, f"daily {number}"),
                [[row]],
                date="2026-07-28",
                source_task="group",
            )

    [[row]] = await stage.rows("SELECT max(id) FROM messages")
    async with stage.app.db.transaction() as tx:
        await rewrite(tx, {stream: add}, at=stage.now, by="test", why="")
    purpose: Any = "compress.group" if origin[1] == "group" else "compress.member"
    stage.model.enqueue(well, purpose=purpose)
    await compress_now(stage, stream, "command")
    [request] = [r for r in stage.model.requests if r.purpose == purpose]
    own = f"〈{origin[0]}·{origin[1]}·"
    assert marks_in(whole(request))
    assert all(one.startswith(own) for one in marks_in(whole(request)))
    gone = await ended(stage) - before
    assert gone
    assert all(one.startswith(own) for one in gone)
