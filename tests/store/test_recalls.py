"""Recalls: what is taken back leaves everything that is kept, whenever the notice comes."""

import json

import pytest

from bot.model import Chat, Segment, TurnLine, TurnPart
from bot.store.database import Database
from bot.store.messages import (
    EARLY_RECALL_MS,
    Recall,
    messages_by_rows,
    newest_with_id,
    recall_message,
    recent_messages,
    replace_text,
    unanswered_messages,
)
from bot.store.turns import NewTurn, add_turn, finish_turn, recent_turns, sent_count, settle_turns
from tests.store.rows import (
    ALICE,
    BOT,
    GROUP,
    MINUTE,
    NOON,
    OTHER_GROUP,
    PRIVATE,
    SECOND,
    own,
    pending,
    rows,
    said,
    store,
    store_apart,
    value,
    values,
)

LATER = NOON + 30 * SECOND
SECRET = "我的门牌是八栋"


async def recall(
    db: Database, platform_id: str = "700", *, at: int = LATER, chat: Chat = GROUP
) -> int | None:
    """Take a message back and return its row."""
    if not await values(db, "SELECT id FROM chats WHERE peer_id = ?", chat.id):
        await store(db, said("别的", id="1", chat=chat))
    async with db.transaction() as tx:
        taken = await recall_message(tx, Recall(chat, platform_id, ALICE, at))
    return None if taken is None else taken.row_id


async def take_turn(db: Database, *lines: TurnLine, started_at: int = NOON + SECOND) -> int:
    """Keep a turn that is being sent."""
    turn = NewTurn(
        chat=GROUP,
        user_id=ALICE,
        asked_at=NOON,
        started_at=started_at,
        addressed=True,
        third_party=False,
        context_until=1,
        lines=lines,
    )
    async with db.transaction() as tx:
        turn_id = await add_turn(tx, turn, "sending", at=started_at)
    assert turn_id is not None
    return turn_id


async def finish(db: Database, turn_id: int, **sent: int) -> None:
    """Keep that the turn was sent."""
    async with db.transaction() as tx:
        positions = {int(name.removeprefix("line_")): row for name, row in sent.items()}
        await finish_turn(tx, turn_id, "sent", sent=positions, at=NOON + 2 * SECOND)


async def told(db: Database) -> list[list[str]]:
    """Return the lines of the turns that the conversation shows."""
    return [[line.text for line in turn.lines] for turn in await recent_turns(db, GROUP, 99)]


def line(row: int | None, part: TurnPart, shown: str) -> TurnLine:
    """Return one line of a turn."""
    return TurnLine(row, part, shown)


# --- the message itself -----------------------------------------------------------------------


async def test_a_recall_leaves_a_tombstone_without_text(db: Database):
    (receipt,) = await store(db, said(SECRET, mentions=("30002",)))
    assert await recall(db) == receipt.row_id
    (row,) = await rows(db, "SELECT * FROM messages")
    assert (row["text"], row["segments"], row["mentions"]) == ("", "[]", "[]")
    assert (row["recalled_at"], row["recalled_by"]) == (LATER, ALICE)
    assert await recent_messages(db, GROUP, 9) == []
    assert await messages_by_rows(db, [receipt.row_id]) == []
    assert await unanswered_messages(db, BOT, NOON - MINUTE) == []
    tombstone = await newest_with_id(db, GROUP, "700")
    assert tombstone is not None
    assert tombstone.recalled_at == LATER


async def test_a_second_recall_changes_nothing(db: Database):
    await store(db, said(SECRET), said("还有", id="701"))
    await recall(db)
    before = await rows(db, "SELECT * FROM messages")
    assert await recall(db, at=LATER + SECOND) is None
    assert await rows(db, "SELECT * FROM messages") == before
    assert await pending(db) == {"group": 1, "member-batch": 1}


async def test_a_recall_means_the_newest_row_with_the_id(db: Database):
    old, new = await store_apart(db, said("旧的话"), said("新的话", at=NOON + MINUTE))
    assert await recall(db) == new.row_id
    assert await recall(db) is None
    (left,) = await recent_messages(db, GROUP, 9)
    assert left.row_id == old.row_id


async def test_a_recall_in_one_chat_touches_no_other(db: Database):
    await store(db, said(id="7"), said(id="7", chat=OTHER_GROUP), said(id="7", chat=PRIVATE))
    await recall(db, "7", chat=OTHER_GROUP)
    assert len(await recent_messages(db, GROUP, 9)) == 1
    assert len(await recent_messages(db, PRIVATE, 9)) == 1
    assert await recent_messages(db, OTHER_GROUP, 9) == []


async def test_the_event_of_a_recalled_message_does_not_bring_its_text_back(db: Database):
    await store(db, said(SECRET))
    await recall(db)
    (receipt,) = await store(db, said(SECRET))
    assert (receipt.is_new, receipt.recalled) == (False, True)
    assert await values(db, "SELECT text FROM messages") == [""]


async def test_the_echo_of_a_recalled_own_message_does_not_bring_its_text_back(db: Database):
    await store(db, own("我在", id="9"))
    await recall(db, "9")
    (receipt,) = await store(db, own("我在", id="9", at=NOON + SECOND, sequence=4))
    assert (receipt.is_new, receipt.recalled) == (False, True)
    assert await values(db, "SELECT text FROM messages") == [""]


async def test_a_forward_that_was_fetched_too_late_stays_out_of_a_tombstone(db: Database):
    (receipt,) = await store(db, said("[合并转发]"))
    await recall(db)
    async with db.transaction() as tx:
        await replace_text(tx, receipt.row_id, "转发的内容")
    assert await values(db, "SELECT text FROM messages") == [""]


async def test_nothing_of_a_recalled_text_is_left_in_the_file(db: Database):
    await store(db, said(SECRET))
    await recall(db)
    async with db.reader() as connection:
        await connection.execute_fetchall("PRAGMA wal_checkpoint(TRUNCATE)")
    assert SECRET.encode() not in db.path.read_bytes()


# --- what waits for reflection ----------------------------------------------------------------


async def test_a_recalled_message_waits_no_longer(db: Database):
    await store(db, said("一", id="1"), said("二", id="2", at=NOON + 1))
    await recall(db, "1")
    assert await pending(db) == {"group": 1, "member-batch": 1}
    await recall(db, "2")
    assert await pending(db) == {"group": 0, "member-batch": 0}


async def test_when_nothing_waits_nothing_is_old(db: Database):
    await store(db, said("一", id="1"))
    await recall(db, "1")
    times = "SELECT DISTINCT oldest_pending_at, newest_pending_at FROM cursors"
    assert [tuple(row) for row in await rows(db, times)] == [(None, None)]
    await store(db, said("二", id="2", at=NOON + MINUTE))
    assert [tuple(row) for row in await rows(db, times)] == [(NOON + MINUTE, NOON + MINUTE)]


async def test_what_waits_spans_its_oldest_and_its_newest_arrival(db: Database):
    await store_apart(
        db,
        said(id="1", at=NOON),
        said(id="2", at=NOON + 9),
        said(id="3", at=NOON + 5),
        said(id="4", at=NOON - 5),
    )
    times = "SELECT DISTINCT oldest_pending_at, newest_pending_at FROM cursors"
    assert [tuple(row) for row in await rows(db, times)] == [(NOON - 5, NOON + 9)]


async def test_what_was_reflected_already_is_not_taken_off_the_counter(db: Database):
    first, _ = await store(db, said("一", id="1"), said("二", id="2"))
    async with db.transaction() as tx:
        await tx.execute_fetchall(
            "UPDATE cursors SET last_id = ?, pending = 1 WHERE task = 'group'", (first.row_id,)
        )
    await recall(db, "1")
    assert await pending(db) == {"group": 1, "member-batch": 1}


async def test_a_recalled_command_was_never_counted(db: Database):
    await store(db, said("/帮助", id="1", kind="command"), said("好", id="2"))
    await recall(db, "1")
    assert await pending(db) == {"group": 1, "member-batch": 1}


# --- recalls that come first ------------------------------------------------------------------


async def test_a_recall_that_comes_first_waits_for_its_message(db: Database):
    await recall(db, at=NOON)
    (receipt,) = await store(db, said(SECRET, at=NOON + 9 * MINUTE, mentions=("30002",)))
    assert (receipt.is_new, receipt.recalled) == (True, True)
    (row,) = await rows(db, "SELECT * FROM messages WHERE platform_id = '700'")
    assert (row["text"], row["segments"], row["mentions"]) == ("", "[]", "[]")
    assert (row["recalled_at"], row["recalled_by"]) == (NOON, ALICE)
    assert await pending(db) == {"group": 1, "member-batch": 1}


@pytest.mark.parametrize(("waited_ms", "recalled"), [(-1, True), (0, False), (MINUTE, False)])
async def test_a_recall_waits_ten_minutes_and_no_longer(
    db: Database, waited_ms: int, recalled: bool
):
    await recall(db, at=NOON)
    (receipt,) = await store(db, said(SECRET, at=NOON + EARLY_RECALL_MS + waited_ms))
    assert receipt.recalled == recalled
    assert await value(db, "SELECT text FROM messages WHERE platform_id = '700'") == (
        "" if recalled else SECRET
    )


async def test_a_recall_that_comes_first_twice_waits_once(db: Database):
    await recall(db, at=NOON)
    await recall(db, at=NOON + SECOND)
    (receipt,) = await store(db, said(SECRET, at=NOON + 2 * SECOND))
    assert receipt.recalled
    assert await recall(db, at=NOON + MINUTE) is None
    assert await value(db, "SELECT count(*) FROM early_recalls") == 0


async def test_a_recall_that_came_first_takes_one_message_only(db: Database):
    await recall(db, at=NOON)
    first, second = await store_apart(
        db, said("撤回的", at=NOON + SECOND), said("新的话", at=NOON + 2 * SECOND)
    )
    assert (first.recalled, second.recalled) == (True, False)


async def test_both_copies_of_an_own_message_know_that_it_was_recalled_first(db: Database):
    await recall(db, "9", at=NOON)
    receipts = await store(db, own(id="9", at=NOON + 1), own(id="9", at=NOON + SECOND))
    assert [receipt.recalled for receipt in receipts] == [True, True]


async def test_recalls_that_waited_in_vain_are_forgotten(db: Database):
    await recall(db, "1000", at=NOON)
    await recall(db, "1001", at=NOON + EARLY_RECALL_MS + SECOND)
    assert await values(db, "SELECT platform_id FROM early_recalls") == ["1001"]


# --- turns ------------------------------------------------------------------------------------


async def test_a_turn_whose_question_is_recalled_leaves_the_conversation(db: Database):
    (asked,) = await store(db, said(SECRET))
    turn_id = await take_turn(
        db, line(asked.row_id, "question", SECRET), line(None, "answer", "好")
    )
    await finish(db, turn_id)
    assert await sent_count(db, GROUP) == 1
    await recall(db)
    assert await told(db) == []
    assert await sent_count(db, GROUP) == 0
    assert await values(db, "SELECT text FROM turn_lines") == ["好"]


async def test_a_turn_with_another_question_left_stays_without_the_recalled_one(db: Database):
    one, two = await store(db, said("第一个问题"), said("第二个问题", id="701"))
    await finish(
        db,
        await take_turn(
            db,
            line(one.row_id, "question", "第一个问题"),
            line(two.row_id, "question", "第二个问题"),
            line(None, "answer", "好"),
        ),
    )
    await recall(db, "700")
    assert await told(db) == [["第二个问题", "好"]]
    await recall(db, "701")
    assert await told(db) == []


async def test_a_recalled_message_leaves_the_context_and_the_quotes_of_turns(db: Database):
    shown, asked = await store(db, said("旁边的话"), said("问题", id="701"))
    for part in ("context", "quote"):
        await finish(
            db,
            await take_turn(
                db,
                line(shown.row_id, part, "旁边的话"),
                line(asked.row_id, "question", "问题"),
                line(None, "answer", "好"),
            ),
        )
    await recall(db, "700")
    assert await told(db) == [["问题", "好"], ["问题", "好"]]


async def test_a_recalled_answer_leaves_its_turn(db: Database):
    asked, answered = await store(db, said("问题"), own("答案", id="9"))
    turn_id = await take_turn(
        db, line(asked.row_id, "question", "问题"), line(None, "answer", "答案")
    )
    await finish(db, turn_id, line_1=answered.row_id)
    await recall(db, "9")
    assert await told(db) == [["问题"]]


@pytest.mark.parametrize("dies", [False, True])
async def test_a_question_that_is_recalled_during_the_send_stays_out(db: Database, dies: bool):
    (asked,) = await store(db, said(SECRET))
    turn_id = await take_turn(
        db, line(asked.row_id, "question", SECRET), line(None, "answer", "好")
    )
    await recall(db)
    if dies:
        async with db.transaction() as tx:
            await settle_turns(tx, BOT, LATER, LATER)
    else:
        await finish(db, turn_id)
    assert await told(db) == []


async def test_a_turn_for_a_recalled_question_is_not_begun(db: Database):
    one, two = await store(db, said("一个问题"), said("又一个", id="701"))
    await recall(db, "701")
    turn = NewTurn(
        chat=GROUP,
        user_id=ALICE,
        asked_at=NOON,
        started_at=NOON,
        addressed=True,
        third_party=False,
        context_until=2,
        lines=(line(one.row_id, "question", "一个问题"), line(two.row_id, "question", "又一个")),
    )
    async with db.transaction() as tx:
        assert await add_turn(tx, turn, "sending", at=NOON) is None
    assert await value(db, "SELECT count(*) FROM turns") == 0


# --- quotations -------------------------------------------------------------------------------


async def test_answers_that_quote_a_recalled_text_lose_theirs(db: Database):
    quoting = f"你说“{SECRET}”，我记下了"
    heard, asked = await store(db, said(SECRET), said("记下了吗", id="701"))
    (sent,) = await store(db, own(quoting, id="9", at=NOON + SECOND))
    turn_id = await take_turn(
        db,
        line(heard.row_id, "context", SECRET),
        line(asked.row_id, "question", "记下了吗"),
        line(None, "answer", quoting),
        line(None, "answer", "还有别的吗"),
    )
    await finish(db, turn_id, line_2=sent.row_id)
    await recall(db, "700")
    assert await told(db) == [["记下了吗", "还有别的吗"]]
    (row,) = await rows(db, "SELECT text, segments, recalled_at FROM messages WHERE id = 3")
    assert tuple(row) == ("", "[]", None)


async def test_the_words_beside_an_at_are_a_quotation_too(db: Database):
    segments = (
        Segment("at", {"qq": BOT}),
        Segment("text", {"text": f" {SECRET}"}),
        Segment("image", {"file": "a.jpg"}),
    )
    await store(db, said(f"@群忆({BOT}) {SECRET}[图片]", segments=segments))
    await store(db, own(f"{SECRET}，对吗", id="9", at=NOON + SECOND))
    await recall(db)
    assert await values(db, "SELECT text FROM messages") == ["", ""]


@pytest.mark.parametrize("short", ["好的", "好的呀", "  好的呀  "])
async def test_shorter_texts_are_no_quotation(db: Database, short: str):
    _, asked = await store(db, said(short), said("问题", id="701"))
    await store(db, own("好的呀，没问题", id="9", at=NOON + SECOND))
    turn_id = await take_turn(
        db, line(asked.row_id, "question", "问题"), line(None, "answer", "好的呀，没问题")
    )
    await finish(db, turn_id)
    await recall(db)
    assert await told(db) == [["问题", "好的呀，没问题"]]
    assert len(await recent_messages(db, GROUP, 9)) == 2


async def test_what_people_said_with_the_same_words_stays(db: Database):
    await store(db, said(SECRET), said(f"{SECRET}？", id="701", at=NOON + SECOND))
    await recall(db)
    assert [s.message.text for s in await recent_messages(db, GROUP, 9)] == [f"{SECRET}？"]


async def test_what_the_bot_said_before_or_elsewhere_is_no_quotation(db: Database):
    await store(
        db,
        own(f"{SECRET}吗", id="8", at=NOON - MINUTE),
        own(f"{SECRET}吗", id="9", at=NOON + SECOND, chat=OTHER_GROUP),
        said(SECRET),
    )
    await recall(db)
    assert len(await recent_messages(db, GROUP, 9)) == 1
    assert len(await recent_messages(db, OTHER_GROUP, 9)) == 1


async def test_a_clock_of_the_platform_that_is_fast_hides_no_quotation(db: Database):
    asked, _ = await store(
        db, said(SECRET, at=NOON + 30 * SECOND, received_at=NOON), said("问题", id="701")
    )
    quoting = f"{SECRET}，好"
    await store(db, own(quoting, id="9", at=NOON + SECOND))
    await take_turn(
        db,
        line(asked.row_id, "context", SECRET),
        line(2, "question", "问题"),
        line(None, "answer", quoting),
    )
    await recall(db)
    assert await values(db, "SELECT text FROM messages ORDER BY id") == ["", "问题", ""]
    assert await values(db, "SELECT text FROM turn_lines") == ["问题"]


async def test_a_text_with_wildcards_is_compared_literally(db: Database):
    await store(db, said("%%__%%"), own("百分之百", id="9", at=NOON + SECOND))
    await recall(db)
    assert [s.message.text for s in await recent_messages(db, GROUP, 9)] == ["百分之百"]


async def test_segments_of_unusual_shape_do_not_stop_a_recall(db: Database):
    odd = (Segment("text", {}), Segment("text", {"text": 12345}), Segment("face", {"id": "1"}))
    await store(db, said("[表情]", segments=odd))
    assert await recall(db) is not None
    assert json.loads(await value(db, "SELECT segments FROM messages")) == []
