"""Turns: what is kept of them, what the conversation shows, what counts against the limits."""

from typing import Literal

import pytest

from bot.model import Chat, TurnLine
from bot.store.database import Database
from bot.store.messages import Recall, recall_message, unanswered_messages
from bot.store.sqlite import in_order
from bot.store.turns import (
    NewTurn,
    TurnLoad,
    add_turn,
    finish_turn,
    load_call,
    load_of,
    recent_turns,
    sent_count,
    settle_turns,
)
from tests.store.rows import (
    ALICE,
    BOT,
    BRUNO,
    GROUP,
    MINUTE,
    NOON,
    OTHER_GROUP,
    SECOND,
    own,
    rows,
    said,
    store,
    values,
)

State = Literal["sending", "silent", "failed"]
HOUR = 60 * MINUTE


async def take(
    db: Database,
    question: int,
    state: State = "sending",
    *,
    answers: tuple[str, ...] = ("答",),
    at: int = NOON,
    chat: Chat = GROUP,
    by: str = ALICE,
    addressed: bool = True,
) -> int:
    """Keep a turn about one message row."""
    lines = (TurnLine(question, "question", f"问{question}"),)
    turn = NewTurn(
        chat=chat,
        user_id=by,
        asked_at=at - SECOND,
        started_at=at,
        addressed=addressed,
        third_party=True,
        context_until=question,
        lines=lines + tuple(TurnLine(None, "answer", text) for text in answers),
        model="m1",
        endpoint="e1",
    )
    async with db.transaction() as tx:
        turn_id = await add_turn(tx, turn, state, at=at)
    assert turn_id is not None
    return turn_id


async def finish(
    db: Database,
    turn_id: int,
    *,
    sent: dict[int, int] | None = None,
    error: str = "",
    drops_unsent: bool = False,
) -> None:
    """Keep that a turn was sent."""
    async with db.transaction() as tx:
        await finish_turn(
            tx,
            turn_id,
            "sent",
            sent=sent or {},
            at=NOON + 5 * SECOND,
            error=error,
            drops_unsent=drops_unsent,
        )


async def ask(db: Database, count: int = 1, chat: Chat = GROUP, by: str = ALICE) -> list[int]:
    """Store questions and return their rows."""
    messages = [said(id=f"{by}-{n}", at=NOON + n, chat=chat, by=by) for n in range(count)]
    return [receipt.row_id for receipt in await store(db, *messages)]


async def test_a_turn_reads_back_as_it_was_kept(db: Database):
    (asked,) = await ask(db)
    (sent,) = await store(db, own())
    turn_id = await take(db, asked)
    await finish(db, turn_id, sent={1: sent.row_id})
    (turn,) = await recent_turns(db, GROUP, 9)
    assert (turn.id, turn.user_id, turn.third_party) == (turn_id, ALICE, True)
    assert (turn.asked_at, turn.answered_at) == (NOON - SECOND, NOON + 5 * SECOND)
    assert turn.context_until == asked
    assert turn.lines == (
        TurnLine(asked, "question", f"问{asked}"),
        TurnLine(sent.row_id, "answer", "答"),
    )


async def test_the_conversation_shows_the_newest_sent_turns_oldest_first(db: Database):
    questions = await ask(db, 5)
    turns = [await take(db, question) for question in questions]
    for turn_id in turns[:4]:
        await finish(db, turn_id)
    await take(db, questions[0], "silent")
    await take(db, questions[0], "failed")
    assert [turn.id for turn in await recent_turns(db, GROUP, 3)] == turns[1:4]
    assert await sent_count(db, GROUP) == 4
    assert await recent_turns(db, OTHER_GROUP, 3) == []
    assert await sent_count(db, OTHER_GROUP) == 0


async def test_what_may_have_been_sent_stays_in_the_conversation(db: Database):
    (asked,) = await ask(db)
    turn_id = await take(db, asked, answers=("一",))
    await finish(db, turn_id, error="SendTimedOut")
    (turn,) = await recent_turns(db, GROUP, 9)
    assert [line.text for line in turn.lines] == [f"问{asked}", "一"]


async def test_what_was_not_sent_leaves_a_turn_that_broke_off(db: Database):
    (asked,) = await ask(db)
    (sent,) = await store(db, own())
    turn_id = await take(db, asked, answers=("一", "二", "三"))
    await finish(db, turn_id, sent={1: sent.row_id}, error="SendRejected", drops_unsent=True)
    (turn,) = await recent_turns(db, GROUP, 9)
    assert [line.text for line in turn.lines] == [f"问{asked}", "一"]
    assert await values(db, "SELECT error FROM turns") == ["SendRejected"]


async def test_a_turn_that_was_begun_before_a_crash_counts_as_sent(db: Database):
    asked, later = await ask(db, 2)
    (elsewhere,) = await ask(db, chat=Chat("10002", "group", GROUP.id))
    turn_id = await take(db, asked)
    running = await take(db, later, at=NOON + MINUTE)
    await take(db, elsewhere, chat=Chat("10002", "group", GROUP.id))
    async with db.transaction() as tx:
        await settle_turns(tx, BOT, NOON + MINUTE, NOON + MINUTE)
    assert [turn.id for turn in await recent_turns(db, GROUP, 9)] == [turn_id]
    assert await values(db, "SELECT id FROM turns WHERE state = 'sending'") == [
        running,
        running + 1,
    ]


async def test_a_turn_without_its_chat_keeps_nothing(db: Database):
    await ask(db)
    with pytest.raises(Exception, match=r"FOREIGN KEY|NOT NULL"):
        await take(db, 1, chat=OTHER_GROUP)
    assert await rows(db, "SELECT * FROM turns") == []
    assert await rows(db, "SELECT * FROM turn_lines") == []


# --- what a crash left unanswered -------------------------------------------------------------


async def test_only_messages_of_people_that_no_turn_took_up_are_unanswered(db: Database):
    asked, left, _ = await ask(db, 3)
    await take(db, asked)
    await store(
        db,
        said("/帮助", id="c", kind="command"),
        own(),
        said(id="old", at=NOON - MINUTE, received_at=NOON),
        said(id="other", chat=Chat("10002", "group", GROUP.id)),
    )
    async with db.transaction() as tx:
        await recall_message(tx, Recall(GROUP, f"{ALICE}-2", ALICE, NOON))
    found = await unanswered_messages(db, BOT, NOON - SECOND)
    assert [stored.row_id for stored in found] == [left]
    assert found[0].message.chat == GROUP


async def test_a_message_shown_as_context_only_is_unanswered(db: Database):
    shown, asked = await ask(db, 2)
    turn = NewTurn(
        chat=GROUP,
        user_id=ALICE,
        asked_at=NOON,
        started_at=NOON,
        addressed=True,
        third_party=False,
        context_until=asked,
        lines=(TurnLine(shown, "context", "旁"), TurnLine(asked, "question", "问")),
    )
    async with db.transaction() as tx:
        await add_turn(tx, turn, "sending", at=NOON)
    assert [s.row_id for s in await unanswered_messages(db, BOT, NOON)] == [shown]


# --- limits -----------------------------------------------------------------------------------


async def load(
    db: Database, by: str = ALICE, chat: Chat = GROUP, *, now: int = NOON, before: int | None = None
) -> TurnLoad:
    """Return what was taken lately, in a day that began an hour ago."""
    call = load_call(chat, by, now, now - HOUR, now + 1 if before is None else before)
    async with db.reader() as connection:
        ((row,),) = await in_order(connection, call)
    return load_of(row)


async def test_nobody_has_taken_turns_at_first(db: Database):
    assert await load(db) == TurnLoad(0, 0, (), 0)


async def test_turns_count_for_their_member_their_chat_and_all(db: Database):
    (one,) = await ask(db)
    (two,) = await ask(db, chat=OTHER_GROUP, by=BRUNO)
    await take(db, one, at=NOON - 2 * HOUR)
    await take(db, one, at=NOON - 30 * MINUTE, addressed=False)
    await take(db, one, at=NOON - 20 * SECOND)
    await take(db, two, at=NOON - 10 * SECOND, chat=OTHER_GROUP, by=BRUNO)
    minute = (NOON - 20 * SECOND, NOON - 10 * SECOND)
    assert await load(db) == TurnLoad(1, 2, minute, 1)
    assert await load(db, BRUNO) == TurnLoad(1, 1, minute, 1)
    assert await load(db, BRUNO, OTHER_GROUP) == TurnLoad(1, 1, minute, 0)


async def test_of_all_turns_only_those_from_before_the_start_are_told(db: Database):
    (one,) = await ask(db)
    for ago in (50, 20, 10):
        await take(db, one, at=NOON - ago * SECOND)
    lately = await load(db, before=NOON - 20 * SECOND)
    assert lately == TurnLoad(3, 3, (NOON - 50 * SECOND,), 0)


async def test_turns_from_before_the_clock_was_set_back_use_up_no_limit(db: Database):
    (asked,) = await ask(db)
    await take(db, asked, addressed=False)
    assert await load(db, now=NOON - 5 * MINUTE) == TurnLoad(0, 1, (), 0)


async def test_a_turn_in_which_the_bot_stayed_silent_does_not_count(db: Database):
    (asked,) = await ask(db)
    await take(db, asked, "silent", addressed=False)
    assert await load(db, now=NOON + 1) == TurnLoad(0, 0, (), 0)


async def test_a_failed_turn_counts(db: Database):
    (asked,) = await ask(db)
    await take(db, asked, "failed")
    assert await load(db, now=NOON + 1) == TurnLoad(1, 1, (NOON,), 0)


async def test_taking_a_question_back_gives_no_turn_back(db: Database):
    (asked,) = await ask(db)
    turn_id = await take(db, asked, addressed=False)
    await finish(db, turn_id)
    before = await load(db, now=NOON + 1)
    async with db.transaction() as tx:
        await recall_message(tx, Recall(GROUP, f"{ALICE}-0", ALICE, NOON))
    assert await load(db, now=NOON + 1) == before == TurnLoad(1, 1, (NOON,), 1)
