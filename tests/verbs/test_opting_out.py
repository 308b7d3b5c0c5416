"""Opting out: nothing is recorded of somebody any more, and what was kept of them is gone."""

from bot.model import Chat
from bot.opt_out import erase_what_was_kept
from bot.worker import tick
from tests.store.rows import indexed
from tests.verbs.stage import (
    AT_BOT,
    BOT,
    FISH,
    GROUP,
    Stage,
    asked,
)

DAY_SECONDS = 24 * 3600
HERE = Chat(str(BOT), "group", str(GROUP))


async def opt_out(stage: Stage, who: int = FISH, group: int = GROUP) -> None:
    stage.say(group, who, "/别记我")
    await stage.advance(2)
    stage.say(group, who, "/别记我 确认")
    await stage.advance(5)


async def texts_of(stage: Stage, who: int = FISH) -> list[str]:
    rows = await stage.rows(
        "SELECT text FROM messages JOIN members AS m ON m.id = member_id"
        " WHERE m.user_id = ? ORDER BY messages.id",
        str(who),
    )
    return [text for (text,) in rows]


async def test_opting_out_is_asked_for_twice_and_says_what_will_happen(stage: Stage):
    stage.say(GROUP, FISH, "/别记我")
    await stage.advance(2)
    assert "不能恢复" in stage.texts()[0]
    assert "60 秒内发送 /别记我 确认" in stage.texts()[0]
    stage.say(GROUP, FISH, "今天吃火锅")
    await stage.advance(2)
    assert "今天吃火锅" in await texts_of(stage)
    stage.say(GROUP, FISH, "/别记我 确认")
    await stage.advance(5)
    assert "不再记录你" in stage.texts()[1]
    assert "3 条消息" in stage.texts()[1]
    assert set(await texts_of(stage)) == {""}


async def test_what_an_opted_out_person_says_leaves_a_tombstone(stage: Stage):
    await opt_out(stage)
    stage.say(GROUP, FISH, "我家在湖边路 3 号")
    await stage.advance(2)
    [row] = await stage.rows(
        "SELECT text, segments, mentions, sender_name, forgotten_at IS NOT NULL, kept_until"
        " FROM messages ORDER BY id DESC LIMIT 1"
    )
    assert row == ("", "[]", "[]", "", 1, None)
    assert "湖边" not in await dump(stage)


async def dump(stage: Stage) -> str:
    """Everything that the tables hold, and every token of the index of messages."""
    tables = await stage.rows(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL %'"
    )
    rows = [await stage.rows(f'SELECT * FROM "{name}"') for (name,) in tables]
    return f"{rows} {sorted(indexed(stage.app.db.path).items())}"


async def test_who_addresses_the_bot_is_answered_and_kept_for_a_day_at_most(stage: Stage):
    await opt_out(stage)
    stage.model.enqueue("十点")
    stage.say(GROUP, FISH, AT_BOT, " 药店几点开门")
    await stage.advance(5)
    assert stage.texts()[-1] == "十点"
    assert "药店几点开门" in asked(stage.model.requests[-1])
    assert any("药店" in text for text in await texts_of(stage))
    await stage.clock.advance(DAY_SECONDS - 10)
    assert await erase_what_was_kept(stage.app) == 0
    await stage.clock.advance(10)
    await tick(stage.app)
    assert set(await texts_of(stage)) == {""}
    assert "药店" not in await dump(stage)
