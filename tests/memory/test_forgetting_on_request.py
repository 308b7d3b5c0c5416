"""Forgetting on request: whose entries, and that nothing brings them back."""

import asyncio

import pytest

from bot.compress import TASK
from bot.consolidate import consolidate
from bot.model import ANONYMOUS_ID, Chat, Sender, Stream, entry_label
from bot.remember import remember
from bot.store.chats import card_changed
from bot.store.memory import StreamWriter, rewrite
from bot.store.messages import recent_messages
from bot.store.revisions import undo_revision
from tests.memory.workshop import (
    BEAR,
    BOT,
    CAT,
    FISH,
    GROUP,
    OF_BEAR,
    OF_FISH,
    OF_GROUP,
    OPERATOR,
    OTHER_GROUP,
    PRIVATE,
    Workshop,
    say_of,
)

UNKNOWN = "没有这条记忆"
STREAM_OF_FISH = Stream(OF_FISH, GROUP)
STREAM_OF_GROUP = Stream(OF_GROUP, GROUP)


async def forget(shop: Workshop, which: str, by: str = FISH, chat: Chat = GROUP) -> str:
    return await shop.command(f"/忘记 {which}", by=by, chat=chat)


async def learn(shop: Workshop, stream: Stream, text: str, *rows: int, **fields: str) -> str:
    """Let a stream hold an entry that rests on some messages, and return its label."""
    numbers: list[int] = []

    def add(writer: StreamWriter) -> None:
        document = fields.get("document", "profile")
        assert document in ("profile", "daily", "memory", "note")
        numbers.append(writer.add(document, text, [rows], source_task="command"))

    async with shop.app.db.transaction() as tx:
        await rewrite(tx, {stream: add}, at=shop.now, by="group", why="idle")
    return entry_label(numbers[0])


# --- what goes --------------------------------------------------------------------------------


async def test_a_forgotten_entry_leaves_no_word_of_itself_in_memory(shop: Workshop):
    [row] = await shop.hear("我对花生过敏得厉害")
    await shop.idle()
    assert "花生" in await shop.command("/我的记忆", by=FISH, chat=PRIVATE)
    answer = await forget(shop, "我#0001")
    assert "忘记了你的记忆 #0001" in answer
    assert "花生" not in answer
    for table in ("entries", "revisions", "streams", "entry_index", "snapshots"):
        assert "花生" not in str(await shop.rows(f"SELECT * FROM {table}")), table
    assert await shop.rows("SELECT * FROM proofs") == []
    [[text, forgotten_at]] = await shop.rows(
        "SELECT text, forgotten_at FROM messages WHERE id = ?", row
    )
    assert text == "我对花生过敏得厉害"
    assert forgotten_at == shop.now


async def test_what_else_rests_on_the_same_message_goes_along_and_is_counted(shop: Workshop):
    await shop.hear("我周末去爬山")
    await shop.idle()
    assert len(await shop.texts(OF_GROUP)) == len(await shop.texts(OF_FISH)) == 1
    assert "另外 1 条" in await forget(shop, "我#0001")
    assert await shop.texts(OF_GROUP) == await shop.texts(OF_FISH) == []


async def test_what_others_said_stays(shop: Workshop):
    await shop.hear("我爱爬山")
    await shop.hear("我爱钓鱼", by=BEAR)
    await shop.idle()
    await forget(shop, "我#0001")
    assert await shop.texts(OF_BEAR) == ["我爱钓鱼"]
    assert await shop.texts(OF_GROUP) == ["我爱钓鱼"]


async def test_reading_the_messages_again_yields_nothing(shop: Workshop):
    """The group's task has not read yet what the members' task has."""
    await shop.set(memoryMemberBatchMessages=1)
    await shop.hear("我对花生过敏")
    await shop.tick()
    assert await shop.texts(OF_FISH) == ["我对花生过敏"]
    assert (await shop.cursors())["group"] == 0
    await forget(shop, "我#0001")
    await shop.hear("大家好", by=BEAR)
    await shop.idle()
    assert [shown.texts for shown in shop.asked("group")] == [["大家好"]]
    assert await shop.texts(OF_GROUP) == ["大家好"]
    assert await shop.texts(OF_FISH) == []


async def test_what_a_task_that_begins_anew_reads_is_not_it(shop: Workshop):
    await shop.hear("我对花生过敏")
    await shop.idle()
    await forget(shop, "我#0001")
    async with shop.app.db.transaction() as tx:
        await tx.execute_fetchall("UPDATE revisions SET task_id = NULL")
        await tx.execute_fetchall("DELETE FROM tasks")
        await tx.execute_fetchall("UPDATE cursors SET last_id = 0")
    await shop.hear("大家好", by=BEAR)
    await shop.idle()
    assert [shown.texts for shown in shop.asked("group")] == [["我对花生过敏"], ["大家好"]]
    assert await shop.texts(OF_FISH) == []


async def test_a_forgotten_message_is_no_context_and_no_quote_any_more(shop: Workshop):
    [row] = await shop.hear("我对花生过敏")
    await shop.idle()
    await forget(shop, "我#0001")
    shown = await recent_messages(shop.app.db, GROUP, 20)
    assert row not in [stored.row_id for stored in shown]
    [[platform_id]] = await shop.rows("SELECT platform_id FROM messages WHERE id = ?", row)
    await shop.hear("真的吗", by=BEAR, reply_to=platform_id)
    await shop.idle()
    [line] = shop.asked("group")[-1].lines
    assert "quote" not in line


async def test_a_message_that_waits_is_not_counted_any_more(shop: Workshop):
    [row] = await shop.hear("我对花生过敏")
    await learn(shop, STREAM_OF_FISH, "对花生过敏", row)
    assert (await shop.pending())["group"] == 1
    await forget(shop, "我#0001")
    assert (await shop.pending())["group"] == 0


async def test_what_a_model_reads_meanwhile_proves_nothing(shop: Workshop):
    [row] = await shop.hear("我对花生过敏")
    await learn(shop, STREAM_OF_FISH, "对花生过敏", row)
    await shop.pass_time(15)
    shop.model.hold()
    working = asyncio.create_task(shop.tick())
    await shop.model.until_asked(2)
    await forget(shop, "我#0001")
    shop.model.release()
    await working
    assert await shop.texts(OF_GROUP) == await shop.texts(OF_FISH) == []


async def test_answers_that_repeat_it_lose_their_text(shop: Workshop):
    [row] = await shop.hear("我对花生过敏")
    await learn(shop, STREAM_OF_FISH, "对花生过敏", row)
    own = await shop.say_own("记得你对花生过敏，别吃")
    await forget(shop, "我#0001")
    assert await shop.values("SELECT text FROM messages WHERE id = ?", own) == [""]


async def test_a_compressed_entry_takes_its_sources_along(shop: Workshop):
    rows = [(await shop.hear(text))[0] for text in ("周一去爬山了", "周二去钓鱼了")]
    labels = [await learn(shop, STREAM_OF_FISH, f"事 {row}", row, document="daily") for row in rows]
    assert labels == ["0001", "0002"]

    def compress(writer: StreamWriter) -> None:
        writer.compress("爬山钓鱼两件事", "2026-07-29", [1, 2], source_task=TASK)
        for number in (1, 2):
            writer.end(number, "compressed", "")

    async with shop.app.db.transaction() as tx:
        await rewrite(tx, {STREAM_OF_FISH: compress}, at=shop.now, by=TASK, why="count")
    assert "另外 2 条" in await forget(shop, "我#0003")
    assert await shop.texts(OF_FISH) == []
    assert await shop.values("SELECT DISTINCT text FROM entries") == [""]
    assert await shop.values("SELECT DISTINCT ended_by FROM entries") == ["forgotten"]


async def test_what_was_made_of_it_tells_nothing_of_it_any_more_and_the_rest_returns(
    shop: Workshop,
):
    """A source that lives again may still be told of by another line that it went into."""
    await shop.hear("x", by=BEAR)
    rows = [(await shop.hear(text, by=CAT))[0] for text in ("人01 请客了", "人03 搬家了")]
    for row in rows:
        await learn(shop, STREAM_OF_GROUP, f"{FISH} 的事 {row}", row, document="daily")

    def compress(writer: StreamWriter) -> None:
        writer.compress("请客和搬家", "2026-07-29", [1, 2], source_task=TASK)
        writer.end(2, "compressed", "")

    async with shop.app.db.transaction() as tx:
        await rewrite(tx, {STREAM_OF_GROUP: compress}, at=shop.now, by=TASK, why="count")
    await forget(shop, "群#0001")
    assert await shop.texts(OF_GROUP) == [f"{FISH} 的事 {rows[1]}"]
    assert "请客和搬家" not in str(await shop.rows("SELECT * FROM entries"))
    assert "请客和搬家" not in str(await shop.rows("SELECT * FROM revisions"))


async def test_a_summary_that_was_made_from_it_is_cleared(shop: Workshop):
    await shop.hear("我对花生过敏")
    shop.model.enqueue("{}", purpose="reflect.group")
    shop.model.enqueue(
        say_of(
            FISH,
            profile=[{"type": "note", "text": "对花生过敏", "refs": [1]}],
            summary="小鱼对花生过敏",
        ),
        purpose="reflect.member-batch",
    )
    await shop.idle()
    await forget(shop, "我#0001")
    assert (await shop.export(OF_FISH))["documents"]["summary"] == {}
    assert "花生" not in str(await shop.rows("SELECT * FROM revisions"))


async def test_undo_does_not_bring_it_back(shop: Workshop):
    await shop.command("/记住 我不吃香菜", by=FISH)
    await forget(shop, "#0001")
    for number in await shop.values("SELECT id FROM revisions"):
        async with shop.app.db.transaction() as tx:
            await undo_revision(tx, number, by=OPERATOR, at=shop.now)
        await shop.command(f"/撤销 {number}")
    assert await shop.texts(OF_FISH) == []
    assert "香菜" not in str(await shop.rows("SELECT * FROM entries"))


async def test_undoing_what_ended_it_does_not_bring_it_back_either(shop: Workshop):
    [row] = await shop.hear("我爱爬山")
    await learn(shop, STREAM_OF_FISH, "爱爬山", row)
    [pin] = [2]
    await shop.command(f"/置顶 成员 {FISH} #0001")
    await forget(shop, "我#0001")
    await shop.command(f"/撤销 {pin}")
    assert await shop.texts(OF_FISH) == []


async def end(shop: Workshop, how: str) -> None:
    """Let the first entry of a person end, with a way back."""

    def work(writer: StreamWriter) -> None:
        if how == "compressed":
            writer.compress("不吃香菜这样的菜", "2026-07-29", [1], source_task=TASK)
        assert how in ("superseded", "compressed", "expired")
        writer.end(1, how, "又吃香菜了" if how == "superseded" else "")

    async with shop.app.db.transaction() as tx:
        await rewrite(tx, {STREAM_OF_FISH: work}, at=shop.now, by="group", why="idle")


@pytest.mark.parametrize("how", ["undone", "superseded", "compressed", "expired"])
async def test_an_entry_that_ended_can_be_forgotten_and_never_returns(shop: Workshop, how: str):
    await shop.command("/记住 我不吃香菜", by=FISH)
    await (shop.command("/撤销 1") if how == "undone" else end(shop, how))
    for which in ("#0001", "群#0001", f"成员 {FISH} #0001"):
        assert await forget(shop, which, by=BEAR) == UNKNOWN
        assert await forget(shop, which, by=OPERATOR) == UNKNOWN
    assert "忘记了你的记忆 #0001" in await forget(shop, "#0001")
    for _ in range(3):
        for number in await shop.values("SELECT id FROM revisions"):
            await shop.command(f"/撤销 {number}")
    assert await shop.texts(OF_FISH) == []
    for table in ("entries", "revisions", "entry_index"):
        assert "香菜" not in str(await shop.rows(f"SELECT * FROM {table}")), table
    assert await forget(shop, "#0001") == UNKNOWN


async def test_the_change_is_on_record_without_a_word_of_it(shop: Workshop):
    await shop.command("/记住 我不吃香菜", by=FISH)
    await forget(shop, "#0001")
    records = await shop.rows("SELECT by, why, before, after FROM revisions ORDER BY id")
    assert records == [(FISH, "command", "{}", "{}"), (FISH, "forget #0001", "{}", "{}")]


async def test_a_folded_note_takes_the_notes_along_that_it_stands_for(shop: Workshop):

    for number in range(10):
        rows = await shop.hear(f"话 {number}")
        await remember(shop.app, GROUP, FISH, rows, f"便签 {number}")
    await consolidate(shop.app, GROUP)
    assert len(await shop.texts(OF_FISH)) == 9
    await forget(shop, f"#{entry_label(11)}")
    assert sorted(await shop.texts(OF_FISH)) == [f"便签 {number}" for number in range(2, 10)]


async def test_a_recall_after_it_is_a_recall(shop: Workshop):
    [row] = await shop.hear("我对花生过敏")
    await shop.idle()
    await forget(shop, "我#0001")
    await shop.recall(row)
    assert "花生" not in await shop.all_text()


# --- whose ------------------------------------------------------------------------------------


async def test_nobody_forgets_what_is_anothers(shop: Workshop):
    await shop.command("/记住 我不吃香菜", by=FISH)
    for which in ("#0001", f"成员 {FISH} #0001", "我#0001", "群#0001"):
        assert await forget(shop, which, by=BEAR) == UNKNOWN
    assert await forget(shop, "#0001", by=OPERATOR) == UNKNOWN
    assert await shop.texts(OF_FISH) == ["我不吃香菜"]


async def test_an_unknown_entry_is_answered_like_anothers(shop: Workshop):
    await shop.command("/记住 我不吃香菜", by=FISH)
    assert await forget(shop, "#zzzz") == UNKNOWN
    assert await forget(shop, "#000000000001", by=BEAR) == UNKNOWN


@pytest.mark.parametrize(
    "words",
    [
        "",
        "#",
        "#ilou",
        "第一条",
        "#0001 多余",
        "-1",
        "' OR 1=1 --",
        "群 20001 0001",
        "#" + "z" * 13,
        "#0001;#0002",
    ],
)
async def test_what_names_no_entry_gets_told_how_it_is_meant(shop: Workshop, words: str):
    await shop.command("/记住 我不吃香菜", by=FISH)
    assert "用法" in await forget(shop, words)
    assert await shop.texts(OF_FISH) == ["我不吃香菜"]


async def test_everything_at_once_is_refused_with_what_to_do(shop: Workshop):
    await shop.command("/记住 我不吃香菜", by=FISH)
    assert "逐条" in await forget(shop, "全部")
    assert await shop.texts(OF_FISH) == ["我不吃香菜"]


async def test_what_was_said_in_private_is_unknown_in_a_group(shop: Workshop):
    await shop.command("/记住 我怕黑", by=FISH, chat=PRIVATE)
    assert await forget(shop, "#0001") == UNKNOWN
    assert "忘记了" in await forget(shop, "#0001", chat=PRIVATE)


async def test_in_private_all_of_ones_own_can_be_forgotten(shop: Workshop):
    await shop.command("/记住 我不吃香菜", by=FISH)
    await shop.command("/记住 我不吃葱", by=FISH, chat=OTHER_GROUP)
    assert "忘记了" in await forget(shop, "#0002", chat=PRIVATE)
    assert await shop.texts(OF_FISH) == ["我不吃香菜"]


async def test_what_may_not_cross_groups_is_unknown_in_another(shop: Workshop):
    await shop.command("/记住 我不吃香菜", by=FISH)
    await shop.set(memoryMemberCrossGroup=False)
    assert await forget(shop, "#0001", chat=OTHER_GROUP) == UNKNOWN
    await shop.set(memoryMemberCrossGroup=True)
    assert "忘记了" in await forget(shop, "#0001", chat=OTHER_GROUP)


async def test_of_another_group_only_what_a_turn_may_read_is_known(shop: Workshop):
    [row] = await shop.hear("我去爬山了")
    await learn(shop, STREAM_OF_FISH, "去爬山了", row, document="daily")
    assert await forget(shop, "#0001", chat=OTHER_GROUP) == UNKNOWN
    assert "忘记了" in await forget(shop, "#0001")


async def test_a_groups_entry_that_rests_on_ones_own_words_alone_can_be_forgotten(shop: Workshop):
    [mine] = await shop.hear("每周三例会")
    [other] = await shop.hear("每周五聚餐", by=BEAR)
    await learn(shop, STREAM_OF_GROUP, "每周三例会", mine)
    await learn(shop, STREAM_OF_GROUP, "每周五聚餐", other)
    both = await learn(shop, STREAM_OF_GROUP, "例会和聚餐都定了", mine, other)
    assert await forget(shop, "群#0002") == UNKNOWN
    assert await forget(shop, f"群#{both}") == UNKNOWN
    assert "本群的记忆 #0001" in await forget(shop, "群#0001")


async def test_the_bots_words_beside_them_do_not_matter(shop: Workshop):
    [mine] = await shop.hear("每周三例会")
    own = await shop.say_own("好的，记下了")
    await learn(shop, STREAM_OF_GROUP, "每周三例会", mine, own)
    assert "忘记了" in await forget(shop, "群#0001")


async def test_a_groups_entry_that_names_somebody_can_be_forgotten_by_them(shop: Workshop):
    await shop.hear("大家好")
    [row] = await shop.hear("那谁又迟到了", by=BEAR)
    await learn(shop, STREAM_OF_GROUP, f"{FISH} 常常迟到", row)
    await learn(shop, STREAM_OF_GROUP, "人01 常常请客", row)
    assert await forget(shop, "群#0001", by=CAT) == UNKNOWN
    assert "忘记了" in await forget(shop, "群#0001")
    assert "忘记了" in await forget(shop, "#0002")
    assert await shop.texts(OF_GROUP) == []
    assert await shop.values("SELECT forgotten_at FROM messages WHERE id = ?", row) == [None]


async def test_a_name_that_was_taken_later_gives_no_right(shop: Workshop):
    """Else anybody could call themselves like a word of the group's memory."""

    [row] = await shop.hear("春游定在河边", by=BEAR)
    await shop.hear("好", by=CAT)
    await learn(shop, STREAM_OF_GROUP, "春游定在河边", row)
    await shop.pass_time(1)
    async with shop.app.db.transaction() as tx:
        await card_changed(tx, GROUP, CAT, "春游", shop.now)
    assert await forget(shop, "群#0001", by=CAT) == UNKNOWN
    assert await shop.texts(OF_GROUP) == ["春游定在河边"]


async def test_of_a_name_that_two_bear_the_one_is_meant_who_said_it(shop: Workshop):

    [row] = await shop.hear("我负责春游", by=BEAR, sender=Sender(BEAR, nickname="小队长"))
    await shop.hear("你好", by=CAT, sender=Sender(CAT, nickname="小队长"))
    [other] = await shop.hear("同意")
    await learn(shop, STREAM_OF_GROUP, "小队长负责春游", row, other)
    assert await forget(shop, "群#0001", by=CAT) == UNKNOWN
    assert "忘记了" in await forget(shop, "群#0001", by=BEAR)


async def test_a_number_of_both_is_asked_about_before_anything_goes(shop: Workshop):
    [row] = await shop.hear("每周三例会")
    await learn(shop, STREAM_OF_GROUP, "每周三例会", row)
    await shop.command("/记住 我不吃香菜", by=FISH)
    answer = await forget(shop, "#0001")
    assert "/忘记 我#0001 — 档案：我不吃香菜" in answer
    assert "/忘记 群#0001 — 档案：每周三例会" in answer
    assert len(await shop.texts(OF_FISH)) == len(await shop.texts(OF_GROUP)) == 1
    await forget(shop, "我#0001")
    assert await shop.texts(OF_FISH) == []
    assert "忘记了" in await forget(shop, "#0001")
    assert await shop.texts(OF_GROUP) == []


async def test_a_groups_entry_is_named_by_its_group_in_private(shop: Workshop):
    [row] = await shop.hear("每周三例会")
    await learn(shop, STREAM_OF_GROUP, "每周三例会", row)
    assert await forget(shop, "群#0001", chat=PRIVATE) == UNKNOWN
    assert await forget(shop, "群 20001 #0001", chat=OTHER_GROUP) == UNKNOWN
    assert await forget(shop, "群 20001 #0001", by=BEAR, chat=Chat(BOT, "private", BEAR)) == UNKNOWN
    assert "忘记了" in await forget(shop, "群 20001 #0001", chat=PRIVATE)


async def test_anonymous_members_forget_nothing(shop: Workshop):
    """They all have one id, so nobody knows whose words those were."""
    masked = Sender(ANONYMOUS_ID, nickname="面具", anonymous=True)
    [row] = await shop.hear("匿名说一句", by=ANONYMOUS_ID, sender=masked)
    await learn(shop, STREAM_OF_GROUP, "有人说了一句", row)
    assert await shop.command("/忘记 群#0001", by=CAT, masked=True) == UNKNOWN
    assert await shop.texts(OF_GROUP) == ["有人说了一句"]


async def test_it_can_be_forgotten_while_memory_is_off(shop: Workshop):
    await shop.command("/记住 我不吃香菜", by=FISH)
    await shop.set(memoryEnabled=False)
    assert "忘记了" in await forget(shop, "#0001")
