"""Order in memory: pins, notes that rise, expire and are folded, changes that are undone."""

import json
from zoneinfo import ZoneInfo

import pytest

from bot.consolidate import Tidied, consolidate, last_night, tend
from bot.memory.tiers import KEEP_WORKING
from bot.model import Chat, Stream
from bot.remember import remember
from bot.store.memory import StreamWriter, rewrite
from bot.store.queries import load
from bot.store.revisions import KEPT_MS
from tests.memory.workshop import (
    BEAR,
    BOT,
    FISH,
    GROUP,
    MINUTE,
    OF_FISH,
    OF_GROUP,
    OPERATOR,
    OTHER_GROUP,
    PRIVATE,
    Workshop,
)

HOUR, DAY = 60, 24 * 60
MINE = Chat(BOT, "private", OPERATOR)
STREAM_OF_GROUP = Stream(OF_GROUP, GROUP)


async def note(shop: Workshop, text: str, by: str = FISH, chat: Chat = GROUP) -> str:
    """Let a note of what somebody says be written, and return its label."""
    rows = await shop.hear(text, by=by, chat=chat, pending=False)
    return (await remember(shop.app, chat, by, rows, text)).label


async def of_group(shop: Workshop, text: str) -> str:
    rows = await shop.hear(text, pending=False)
    return (await remember(shop.app, GROUP, FISH, rows, text, about="group")).label


async def use(shop: Workshop, text: str, times: int) -> None:
    """Have packed an entry on so many days."""
    async with shop.app.db.transaction() as tx:
        await tx.execute_fetchall("UPDATE entries SET uses = ? WHERE text = ?", (times, text))


async def tiers(shop: Workshop) -> dict[str, tuple[str, str]]:
    """Document and tier of each living entry, by its text."""
    rows = await shop.rows("SELECT text, document, tier FROM entries WHERE ended_at IS NULL")
    return {text: (document, tier) for text, document, tier in rows}


# --- notes ------------------------------------------------------------------------------------


async def test_a_note_rises_after_an_hour_and_again_after_a_week_of_use(shop: Workshop):
    await note(shop, "在备考")
    await shop.pass_time(HOUR)
    assert "1 条升级" in await shop.command("/整理")
    assert await tiers(shop) == {"在备考": ("note", "episodic")}
    await use(shop, "在备考", 2)
    await shop.pass_time(7 * DAY)
    assert await consolidate(shop.app) == Tidied(promoted=1)
    assert await tiers(shop) == {"在备考": ("profile", "profile")}
    [entry] = (await shop.export(OF_FISH))["documents"]["profile"]
    assert entry["type"] == "note"
    assert len(entry["evidence"]) == 1


async def test_a_note_that_nobody_used_expires_after_a_month_and_not_before(shop: Workshop):
    await note(shop, "在备考")
    await shop.pass_time(HOUR)
    await consolidate(shop.app)
    await shop.pass_time(30 * DAY - 1)
    assert await consolidate(shop.app) == Tidied()
    await shop.pass_time(1)
    assert "1 条过期" in await shop.command("/整理")
    assert await shop.texts(OF_FISH) == []


async def test_what_is_asked_to_be_kept_stays(shop: Workshop):
    await shop.command("/记住 我不吃香菜", by=FISH)
    await shop.pass_time(400 * DAY)
    assert await consolidate(shop.app) == Tidied()


async def test_the_policy_of_the_chat_counts(shop: Workshop):
    await note(shop, "在备考")
    await note(shop, "在搬家", chat=OTHER_GROUP)
    await shop.set(GROUP, memoryPolicy="chat")
    await shop.pass_time(12 * HOUR)
    assert await consolidate(shop.app) == Tidied(promoted=1, expired=1)
    assert await tiers(shop) == {"在搬家": ("note", "episodic")}


async def test_the_older_notes_are_folded_into_one_that_keeps_their_evidence(shop: Workshop):
    for number in range(1, 12):
        await note(shop, f"便签 {number}")
        await shop.pass_time(0.1)
    assert "3 条便签合并成 1 条" in await shop.command("/整理")
    found = await tiers(shop)
    folded = "#0001 便签 1；#0002 便签 2；#0003 便签 3"
    assert found[folded] == ("note", "episodic")
    assert len(found) == KEEP_WORKING + 1
    documents = (await shop.export(OF_FISH))["documents"]
    [fold] = [entry for entry in documents["note"] if entry["text"] == folded]
    assert len(fold["evidence"]) == 3
    assert await consolidate(shop.app) == Tidied()


async def test_a_recall_gives_the_other_notes_back(shop: Workshop):
    for number in range(1, 11):
        await note(shop, f"便签 {number}")
    await consolidate(shop.app)
    await shop.recall(1)
    assert sorted(await shop.texts(OF_FISH)) == sorted(f"便签 {n}" for n in range(2, 11))


async def test_a_pin_saves_a_note_from_being_folded_and_from_its_end(shop: Workshop):
    label = await note(shop, "钥匙在门口")
    for number in range(1, 12):
        await note(shop, f"便签 {number}")
    await shop.command(f"/置顶 成员 {FISH} #{label}", chat=MINE)
    await shop.command("/整理")
    assert (await tiers(shop))["钥匙在门口"] == ("note", "working")
    await shop.pass_time(400 * DAY)
    for _ in range(3):
        await consolidate(shop.app)
        await shop.pass_time(40 * DAY)
    assert await shop.texts(OF_FISH) == ["钥匙在门口"]


async def test_only_this_chat_is_tidied_by_command(shop: Workshop):
    await note(shop, "在备考")
    await note(shop, "在搬家", chat=OTHER_GROUP)
    await shop.pass_time(HOUR)
    await shop.command("/整理")
    assert await tiers(shop) == {"在备考": ("note", "episodic"), "在搬家": ("note", "working")}


async def test_where_memory_is_off_nothing_changes(shop: Workshop):
    await note(shop, "在备考")
    await shop.pass_time(HOUR)
    await shop.set(memoryEnabled=False)
    assert "已关闭" in await shop.command("/整理")
    assert await consolidate(shop.app) == Tidied()


async def test_what_a_reflection_wrote_is_never_touched(shop: Workshop):
    await shop.hear("我去爬山了")
    await shop.idle()
    before = await shop.rows("SELECT * FROM entries")
    await use(shop, "我去爬山了", 0)
    await shop.pass_time(400 * DAY)
    assert await consolidate(shop.app) == Tidied()
    assert await shop.rows("SELECT * FROM entries") == before


async def test_members_cannot_tidy(shop: Workshop):
    await note(shop, "在备考")
    await shop.pass_time(HOUR)
    assert await shop.command("/整理", by=BEAR) == ""
    assert await tiers(shop) == {"在备考": ("note", "working")}


async def test_all_that_tidying_did_can_be_undone(shop: Workshop):
    await note(shop, "老便签")
    await shop.pass_time(HOUR)
    await consolidate(shop.app)
    await shop.pass_time(30 * DAY - HOUR)
    await note(shop, "在备考")
    await shop.pass_time(HOUR)
    for number in range(1, 11):
        await note(shop, f"便签 {number}")
    before = await tiers(shop)
    assert await consolidate(shop.app) == Tidied(promoted=1, expired=1, folded=2, folds=1)
    [number] = (await shop.rows("SELECT max(id) FROM revisions"))[0]
    assert "已撤销" in await shop.command(f"/撤销 {number}")
    assert await tiers(shop) == before
    again = await consolidate(shop.app)
    assert again.expired == 0


# --- each night -------------------------------------------------------------------------------


async def test_each_night_memory_is_tended_once(shop: Workshop):
    await note(shop, "在备考")
    await shop.pass_time(HOUR)
    assert await tend(shop.app)
    assert await tiers(shop) == {"在备考": ("note", "episodic")}
    assert not await tend(shop.app)
    await shop.pass_time(16 * HOUR)
    assert await tend(shop.app)
    assert not await tend(shop.app)


async def test_one_stream_that_cannot_be_tended_keeps_no_other_from_it(shop: Workshop):
    await note(shop, "在备考")
    await note(shop, "在搬家", chat=OTHER_GROUP)
    await shop.pass_time(HOUR)
    async with shop.app.db.transaction() as tx:
        await tx.execute_fetchall(
            "CREATE TRIGGER broken BEFORE UPDATE ON entries WHEN old.text = '在备考' "
            "BEGIN SELECT raise(ABORT, 'broken'); END"
        )
    assert await tend(shop.app)
    assert await tiers(shop) == {"在备考": ("note", "working"), "在搬家": ("note", "episodic")}
    assert "没有整理成" in await shop.command("/整理")


async def test_only_proofs_of_what_changes_are_read_while_the_write_lock_is_held(shop: Workshop):
    await note(shop, "在备考")
    rows = await shop.hear("我在搬家", pending=False)
    statements: list[str] = []
    async with shop.app.db.transaction() as tx:
        await tx.set_trace_callback(statements.append)
    assert await consolidate(shop.app) == Tidied()
    await remember(shop.app, GROUP, FISH, rows, "在搬家")
    assert any("FROM entries" in statement for statement in statements)
    read = [one for one in statements if one.lstrip("- \n").upper().startswith("SELECT")]
    assert [one for one in read if "proof" in one and "json_each('[2]')" not in one] == []


async def test_the_notes_of_one_chat_are_found_without_looking_through_the_others(shop: Workshop):
    queries = load("notes")
    async with shop.app.db.reader() as connection:
        plan = await connection.execute_fetchall(
            f"EXPLAIN QUERY PLAN {queries.streams_with_notes_here.sql}",
            {"bot_id": BOT, "kind": "group", "peer_id": GROUP.id},
        )
    assert [row["detail"] for row in plan if row["detail"].startswith("SCAN")] == []


def test_the_night_is_at_four_in_the_time_zone_of_the_chat():
    noon = 1_785_297_600_000
    shanghai, utc = ZoneInfo("Asia/Shanghai"), ZoneInfo("UTC")
    assert last_night(noon, shanghai) == noon - 8 * HOUR * MINUTE
    assert last_night(noon - 8 * HOUR * MINUTE - 1, shanghai) == noon - 32 * HOUR * MINUTE
    assert last_night(noon, utc) == noon


async def test_changes_are_kept_for_180_days(shop: Workshop):
    await shop.command("/记住 我不吃香菜", by=FISH)
    await shop.pass_time(1)
    await shop.command("/记住 我不吃葱", by=FISH)
    await shop.pass_time(KEPT_MS / MINUTE)
    await tend(shop.app)
    assert await shop.values("SELECT id FROM revisions") == [2]
    assert len(await shop.texts(OF_FISH)) == 2


# --- pins -------------------------------------------------------------------------------------


async def pinned(shop: Workshop) -> list[str]:
    return await shop.values("SELECT text FROM entries WHERE pinned = 1")


async def test_a_groups_admin_pins_what_is_the_groups_and_takes_it_off_again(shop: Workshop):
    label = await of_group(shop, "每月聚餐")
    assert f"已置顶，不会被压缩或过期：#{label} 便签：每月聚餐" in await shop.command(
        f"/置顶 #{label}", by=FISH
    )
    assert await pinned(shop) == ["每月聚餐"]
    await shop.command(f"/置顶 群#{label}", by=FISH)
    assert "已取消" in await shop.command(f"/置顶 #{label} 取消", by=FISH)
    assert await pinned(shop) == []
    whys = await shop.values("SELECT why FROM revisions ORDER BY id")
    assert whys == ["remember", "pin", "unpin"]


async def test_members_pin_nothing(shop: Workshop):
    label = await of_group(shop, "每月聚餐")
    assert await shop.command(f"/置顶 #{label}", by=BEAR) == ""
    assert await pinned(shop) == []


async def test_a_groups_admin_does_not_reach_members_nor_other_groups(shop: Workshop):
    mine = await note(shop, "在备考")
    rows = await shop.hear("别处的事", chat=OTHER_GROUP, pending=False)
    await remember(shop.app, OTHER_GROUP, FISH, rows, "别处的事", about="group")
    for which in (f"#{mine}", f"成员 {FISH} #{mine}", f"我#{mine}", "群 20002 #0001"):
        assert await shop.command(f"/置顶 {which}", by=FISH) == "没有这条记忆"
    assert await shop.command(f"/置顶 成员 {FISH} #{mine}", by=FISH, chat=PRIVATE) == ""
    assert await pinned(shop) == []


async def test_operators_pin_a_members_entry_without_showing_it_to_the_group(shop: Workshop):
    mine = await note(shop, "在备考")
    answer = await shop.command(f"/置顶 成员 {FISH} #{mine}")
    assert "已置顶" in answer
    assert "备考" not in answer
    assert await pinned(shop) == ["在备考"]
    assert "在备考" in await shop.command(f"/置顶 成员 {FISH} #{mine} 取消", chat=MINE)


async def test_operators_reach_nothing_that_others_said_in_private(shop: Workshop):
    mine = await note(shop, "怕黑", chat=PRIVATE)
    for chat in (GROUP, MINE):
        answer = await shop.command(f"/置顶 成员 {FISH} #{mine}", chat=chat)
        assert answer == "没有这条记忆"
    assert await pinned(shop) == []


@pytest.mark.parametrize("words", ["", "#0001 永远", "第一条", "成员 #", "群 小鱼 #0001"])
async def test_a_pin_that_cannot_be_understood_says_how_it_is_meant(shop: Workshop, words: str):
    await of_group(shop, "每月聚餐")
    assert "用法" in await shop.command(f"/置顶 {words}")
    assert await pinned(shop) == []


async def test_a_pin_can_be_undone(shop: Workshop):
    label = await of_group(shop, "每月聚餐")
    await shop.command(f"/置顶 #{label}")
    await shop.command("/撤销 2")
    assert await pinned(shop) == []


# --- undo -------------------------------------------------------------------------------------


async def test_changes_are_listed_without_a_word_of_anybodys(shop: Workshop):
    await of_group(shop, "每月聚餐")
    await shop.command("/记住 我不吃香菜", by=FISH)
    await note(shop, "怕黑", chat=PRIVATE)
    answer = await shop.command("/撤销")
    assert "1  07-29 12:00 群：30001（对话里记下），1 行" in answer
    assert "2  07-29 12:00 成员 30001：30001（有人要求），1 行" in answer
    assert "\n3" not in answer
    for words in ("聚餐", "香菜", "怕黑"):
        assert words not in answer


async def test_that_somebody_forgot_something_is_not_listed_and_what_they_forgot_neither(
    shop: Workshop,
):
    await of_group(shop, "每月聚餐")
    await shop.command("/记住 我不吃香菜", by=FISH)
    await shop.command("/忘记 我#0001", by=FISH)
    assert (await shop.command("/撤销")).splitlines()[1:] == [
        "1  07-29 12:00 群：30001（对话里记下），1 行"
    ]
    await shop.command("/忘记 群#0001", by=FISH)
    assert await shop.command("/撤销") == "还没有改动。"
    assert "没有可以撤销的" in await shop.command("/撤销 3")


async def test_undoing_what_added_an_entry_ends_it_whatever_it_was_given_since(shop: Workshop):
    label = await of_group(shop, "每月聚餐")
    await of_group(shop, "每月聚餐")
    await shop.command(f"/置顶 #{label}")
    assert "已撤销" in await shop.command("/撤销 1")
    assert await shop.texts(OF_GROUP) == []
    assert "已撤销" in await shop.command("/撤销 4")
    [entry] = (await shop.export(OF_GROUP))["documents"]["note"]
    assert entry["pinned"]
    assert len(entry["evidence"]) == 2


async def test_a_groups_admin_sees_and_undoes_the_groups_alone(shop: Workshop):
    await of_group(shop, "每月聚餐")
    await shop.command("/记住 我不吃香菜", by=BEAR)
    answer = await shop.command("/撤销", by=FISH)
    assert "1  " in answer
    assert BEAR not in answer
    assert await shop.command("/撤销 2", by=FISH) == "没有这个改动"
    assert await shop.command("/撤销 99", by=FISH) == "没有这个改动"
    assert "已撤销改动 1" in await shop.command("/撤销 1", by=FISH)
    assert await shop.texts(OF_GROUP) == []


async def test_changes_of_other_chats_are_unknown_here(shop: Workshop):
    await of_group(shop, "每月聚餐")
    await note(shop, "怕黑", chat=PRIVATE)
    for number in (1, 2):
        assert await shop.command(f"/撤销 {number}", chat=OTHER_GROUP) == "没有这个改动"
        assert await shop.command(f"/撤销 {number}", chat=MINE) == "没有这个改动"
    assert await shop.command("/撤销", chat=OTHER_GROUP) == "还没有改动。"


async def test_members_undo_nothing(shop: Workshop):
    await of_group(shop, "每月聚餐")
    assert await shop.command("/撤销", by=BEAR) == ""
    assert await shop.command("/撤销 1", by=BEAR) == ""
    assert await shop.texts(OF_GROUP) == ["每月聚餐"]


@pytest.mark.parametrize("word", ["x", "-1", "1.5", "1 2", "9" * 30, "²"])
async def test_what_is_no_number_of_a_change_says_how_it_is_meant(shop: Workshop, word: str):
    await of_group(shop, "每月聚餐")
    assert "用法" in await shop.command(f"/撤销 {word}")


async def test_a_change_is_undone_once_and_that_can_be_undone(shop: Workshop):
    await of_group(shop, "每月聚餐")
    await shop.command("/撤销 #1")
    assert "没有可以撤销的" in await shop.command("/撤销 1")
    await shop.command("/撤销 2")
    assert await shop.texts(OF_GROUP) == ["每月聚餐"]


async def test_ten_changes_are_listed_the_newest_first(shop: Workshop):
    for number in range(12):
        await of_group(shop, f"第 {number} 件事")
    lines = (await shop.command("/撤销")).splitlines()[1:]
    assert [line.split("  ")[0] for line in lines] == [str(n) for n in range(12, 2, -1)]


async def test_a_reflection_can_be_undone(shop: Workshop):
    await shop.hear("我去爬山了")
    await shop.idle()
    assert "群记忆（聊天停了），1 行" in await shop.command("/撤销")
    [[number]] = await shop.rows("SELECT id FROM revisions WHERE by = 'group'")
    await shop.command(f"/撤销 {number}")
    assert await shop.texts(OF_GROUP) == []
    assert await shop.texts(OF_FISH) == ["我去爬山了"]


async def test_a_change_of_a_summary_for_no_known_reason_is_listed_without_one(shop: Workshop):
    def add(writer: StreamWriter) -> None:
        writer.summarise("大家好", ())

    await shop.hear("大家好", pending=False)
    async with shop.app.db.transaction() as tx:
        await rewrite(tx, {STREAM_OF_GROUP: add}, at=shop.now, by="somebody", why="?" * 50)
    assert "1  07-29 12:00 群：somebody，1 行" in await shop.command("/撤销")
    assert json.loads((await shop.values("SELECT before FROM revisions"))[0])["entries"] == []
