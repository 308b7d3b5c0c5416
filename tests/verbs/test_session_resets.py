"""What a reset clears and what it leaves; the commands and limits of who may ask for it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot.app import App
from bot.commands.session import USAGE
from bot.compact import compact
from bot.embed import embed_all
from bot.llm.spelling import SpellingEmbedder
from bot.model import Chat
from bot.session import (
    rebuild_summary,
    remove_session,
    reset_all,
    reset_summary,
    session_of_chat,
)
from bot.store.messages import messages_by_rows
from tests.store.rows import indexed
from tests.verbs.conversing import (
    CHAT,
    at_bot,
    converse_on,
    is_summary,
    lines_of,
    pass_minutes,
    polite,
    state_of,
    summary_of,
    take_back,
)
from tests.verbs.remembering import OF_GROUP, held, remember
from tests.verbs.stage import (
    BEAR,
    CAT,
    FISH,
    GROUP,
    OPERATOR,
    Stage,
    asked,
    open_stage,
    shown_texts,
    told,
    whole,
)
from tests.verbs.tooling import turn, use

REST_SECONDS = 150
OWNER = "test"


@pytest.fixture
async def stage(tmp_path: Path):
    """The program with a model that answers everything."""
    async with open_stage(tmp_path, answer=polite) as opened:
        await opened.advance(60)
        yield opened


# The matrix


@dataclass(frozen=True, slots=True)
class Left:
    """What a reset leaves."""

    turns: int
    """Earlier turns in the next prompt."""
    summary: bool
    context: bool
    """What was said before is context of the next question."""
    search: bool
    """A search without a date reaches before it."""
    text: bool
    """What was said is still stored, in both indices, and found by a search with a date."""
    memory: bool = True


MATRIX = {
    "compact": Left(turns=8, summary=True, context=True, search=True, text=True),
    "summary": Left(turns=14, summary=True, context=True, search=True, text=True),
    "reset summary": Left(turns=0, summary=True, context=True, search=True, text=True),
    "reset all": Left(turns=0, summary=False, context=False, search=False, text=True),
    "remove": Left(turns=0, summary=False, context=False, search=False, text=False),
}

DEEDS: dict[str, Callable[[App, Chat], Awaitable[object]]] = {
    "compact": lambda app, chat: compact(app, chat, OWNER),
    "summary": lambda app, chat: rebuild_summary(app, chat, OWNER),
    "reset summary": reset_summary,
    "reset all": reset_all,
    "remove": remove_session,
}

SAID = "刚才说的事"
DAY = "2026-07-29"


async def by_function(stage: Stage, name: str) -> None:
    await DEEDS[name](stage.app, CHAT)


async def by_command(stage: Stage, name: str) -> None:
    await deed(stage, f"/会话 {name}")
    if name == "remove":
        await deed(stage, "/会话 remove 确认")


@pytest.fixture
async def embedding_stage(tmp_path: Path):
    async with open_stage(tmp_path, answer=polite, embedder=SpellingEmbedder()) as opened:
        await opened.advance(60)
        yield opened


@pytest.mark.parametrize("way", [by_function, by_command])
@pytest.mark.parametrize("name", MATRIX)
async def test_each_reset_clears_what_it_says_and_nothing_else(
    embedding_stage: Stage, name: str, way: Callable[[Stage, str], Awaitable[None]]
):
    stage, left = embedding_stage, MATRIX[name]
    await remember(stage, OF_GROUP, 1, document="memory", text="每周三例会")
    await converse_on(stage, 14)
    await pass_minutes(stage, 15)
    spoken = stage.say(GROUP, BEAR, SAID)
    await stage.advance(REST_SECONDS)
    await embedded(stage)
    ((row_id,),) = await stage.rows(
        "SELECT id FROM messages WHERE platform_id = ?", str(spoken.message_id)
    )
    await way(stage, name)
    await stage.advance(5)
    stage.say(GROUP, FISH, *at_bot("然后呢"))
    await stage.advance(10)
    prompt = [r for r in stage.model.requests if r.purpose == "chat"][-1]
    assert len(told(prompt)) == left.turns
    assert ('{"current": "在约时间"}' in asked(prompt)) == left.summary
    assert (SAID in shown_texts(asked(prompt))) == left.context
    assert await searches(stage) == [left.search] * 4
    assert await searches(stage, since=DAY) == [left.text] * 4
    assert await stored_as(stage, row_id) == (
        (SAID, True, True) if left.text else ("", False, False)
    )
    kept = [e.text for e in await held(stage, OF_GROUP, "memory")]
    assert (kept == ["每周三例会"]) == left.memory
    assert ("每周三例会" in whole(prompt)) == left.memory


async def embedded(stage: Stage) -> None:
    task = stage.spawn(embed_all(stage.app))
    while not task.done():
        await stage.advance(1)


async def searches(stage: Stage, since: str = "") -> list[bool]:
    """Whether what was said is found by a model, however it looks, and by people."""
    surroundings = await turn(stage, "问一下", by=CAT)
    ways = (
        {"mode": "list", "limit": 32},
        {"mode": "search", "query": SAID},
        {"mode": "search", "match": "keyword", "query": SAID},
    )
    found = [await use(surroundings, "chat_history", **way, since=since) for way in ways]
    found.append(await command(stage, f"/搜 {SAID[:4]} {f'自 {since}' if since else ''}", CAT))
    return [SAID in text for text in found]


async def stored_as(stage: Stage, row_id: int) -> tuple[str, bool, bool]:
    """Return the stored text of a message, and whether it is in the index and has a vector."""
    ((text,),) = await stage.rows("SELECT text FROM messages WHERE id = ?", row_id)
    vectors = await stage.rows("SELECT 1 FROM message_vectors WHERE message_id = ?", row_id)
    return text, row_id in indexed(stage.app.db.path), bool(vectors)


async def test_what_the_resets_return(stage: Stage):
    await converse_on(stage, 14)
    done = await compact(stage.app, CHAT, OWNER)
    assert (done.removed, done.is_whole) == (6, True)
    assert (await compact(stage.app, CHAT, OWNER)).removed == 0
    rebuilt = await rebuild_summary(stage.app, CHAT, OWNER)
    assert (rebuilt.turns, rebuilt.entries, rebuilt.is_whole) == (14, 2, True)
    assert await reset_summary(stage.app, CHAT) == 8
    assert await reset_all(stage.app, CHAT) == 0


async def test_a_chat_of_which_nothing_is_known_has_nothing_to_fold(stage: Stage):
    elsewhere = Chat(CHAT.bot_id, "group", "20009")
    assert (await compact(stage.app, elsewhere, OWNER)).removed == 0
    assert (await session_of_chat(stage.app, elsewhere)).summary.is_empty


async def test_what_is_cleared_is_never_summarised_later(stage: Stage):
    await converse_on(stage, 12)
    await reset_summary(stage.app, CHAT)
    await converse_on(stage, 8, first=20)
    await pass_minutes(stage, 15)
    (request,) = [r for r in stage.model.requests if is_summary(r)]
    assert lines_of(request)[0]["text"] == "问题20"
    await rebuild_summary(stage.app, CHAT, OWNER)
    assert lines_of(stage.model.requests[-1])[0]["text"] == "问题20"


async def test_a_call_that_runs_while_the_session_is_reset_leaves_no_summary(stage: Stage):
    await converse_on(stage, 16)
    stage.model.hold()
    working = stage.spawn(pass_minutes(stage, 0))
    await stage.model.until_asked()
    await reset_all(stage.app, CHAT)
    stage.model.release()
    await working
    state = await state_of(stage)
    assert (state.summary, state.window_turns, state.new_turns) == ("", 0, 0)


async def summarised(stage: Stage, turns: int) -> None:
    """Let so many turns be in a summary that talks of fishing."""
    await converse_on(stage, turns)
    stage.model.enqueue(summary_of(current="在说钓鱼"), purpose="summarize")
    await pass_minutes(stage, 15)
    assert "钓鱼" in (await state_of(stage)).summary


async def test_a_rebuild_that_fails_takes_nothing_away_and_is_tried_again_by_itself(stage: Stage):
    await summarised(stage, 9)
    before = await state_of(stage)
    stage.model.enqueue("我不会", purpose="summarize")
    rebuilt = await rebuild_summary(stage.app, CHAT, OWNER)
    assert (rebuilt.turns, rebuilt.entries, rebuilt.is_whole) == (0, 1, False)
    after = await state_of(stage)
    assert (after.summary, after.summary_cursor) == (before.summary, before.summary_cursor)
    await pass_minutes(stage, 1)
    assert "在约时间" in (await state_of(stage)).summary
    assert lines_of(stage.model.requests[-1])[0]["text"] == "问题1"


async def test_a_past_cleared_by_another_process_stays_out_of_the_turn_in_the_making(
    stage: Stage, tmp_path: Path
):
    stage.say(GROUP, BEAR, "刚才说的事")
    await stage.advance(REST_SECONDS)
    stage.model.hold()
    stage.say(GROUP, FISH, *at_bot("问"))
    await stage.advance(5)
    assert "刚才说的事" in shown_texts(asked(stage.model.requests[-1]))
    async with open_stage(tmp_path, start=stage.now) as other:
        await reset_all(other.app, CHAT)
    stage.model.release()
    await stage.advance(REST_SECONDS)
    stage.say(GROUP, FISH, *at_bot("再问"))
    await stage.advance(10)
    assert told(stage.model.requests[-1]) == ["好的"]
    assert "刚才说的事" not in whole(stage.model.requests[-1])


async def test_a_rebuild_survives_a_restart(tmp_path: Path):
    async with open_stage(tmp_path, answer=polite) as stage:
        await summarised(stage, 9)
        stage.model.enqueue("我不会", purpose="summarize")
        await rebuild_summary(stage.app, CHAT, OWNER)
        later = stage.now + 60_000
    async with open_stage(tmp_path, answer=polite, start=later) as stage:
        assert "钓鱼" in (await state_of(stage)).summary
        await pass_minutes(stage, 1)
        assert "在约时间" in (await state_of(stage)).summary
        assert lines_of(stage.model.requests[-1])[0]["text"] == "问题1"


async def test_a_rebuild_whose_second_chunk_fails_goes_on_with_that_chunk(stage: Stage):
    await summarised(stage, 9)
    await stage.set(summaryChunkChars=1)
    stage.model.enqueue(summary_of(current="第一段"), "我不会", purpose="summarize")
    assert (await rebuild_summary(stage.app, CHAT, OWNER)).turns == 1
    assert "第一段" in (await state_of(stage)).summary
    await pass_minutes(stage, 1)
    assert [lines_of(r)[0]["text"] for r in stage.model.requests[-8:]] == [
        f"问题{n}" for n in range(2, 10)
    ]


async def test_a_rebuild_asked_for_while_a_summary_is_made_follows_it(stage: Stage):
    await summarised(stage, 9)
    await converse_on(stage, 8, first=10)
    stage.model.hold()
    working = stage.spawn(pass_minutes(stage, 15))
    await stage.model.until_asked(2)
    assert not (await rebuild_summary(stage.app, CHAT, OWNER)).is_whole
    stage.model.release()
    await working
    texts = [line["text"] for line in lines_of(stage.model.requests[-1])]
    assert texts[0] == "问题1"
    assert "问题17" in texts
    assert (await state_of(stage)).new_turns == 0


async def test_a_rebuild_leaves_a_summary_if_there_is_nothing_to_make_another_from(stage: Stage):
    await summarised(stage, 9)
    await reset_summary(stage.app, CHAT)
    rebuilt = await rebuild_summary(stage.app, CHAT, OWNER)
    assert (rebuilt.turns, rebuilt.entries, rebuilt.is_whole) == (0, 1, True)
    assert "概要不变" in await deed(stage, "/会话 summary")


async def test_what_is_recalled_before_a_rebuild_has_begun_is_in_neither_summary(stage: Stage):
    await summarised(stage, 9)
    stage.model.enqueue("我不会", purpose="summarize")
    await rebuild_summary(stage.app, CHAT, OWNER)
    await take_back(stage, "qgroup3")
    assert (await state_of(stage)).summary == ""
    await pass_minutes(stage, 1)
    assert "问题3" not in [line["text"] for line in lines_of(stage.model.requests[-1])]
    assert "在约时间" in (await state_of(stage)).summary


async def test_what_was_removed_is_neither_quoted_nor_reflected(stage: Stage):
    spoken = stage.say(GROUP, BEAR, "刚才说的事")
    await stage.advance(5)
    await remove_session(stage.app, CHAT)
    ((pending,),) = await stage.rows("SELECT sum(pending) FROM cursors")
    assert pending == 0
    ((row_id,),) = await stage.rows(
        "SELECT id FROM messages WHERE platform_id = ?", str(spoken.message_id)
    )
    assert await messages_by_rows(stage.app.db, [row_id]) == []
    assert "刚才说的事" not in str(await stage.rows("SELECT * FROM messages"))


# The commands


async def command(stage: Stage, text: str, who: int = OPERATOR) -> str:
    """Give a command in the group and return its answer."""
    before = len(stage.sent)
    stage.say(GROUP, who, text)
    await stage.advance(5)
    return "\n".join(sent.text for sent in stage.sent[before:])


async def deed(stage: Stage, text: str) -> str:
    """Give a command that asks the model and return its answer: its lease is renewed meanwhile, so
    that the stage seems to stand still."""
    before = len(stage.sent)
    stage.say(GROUP, OPERATOR, text)
    async with asyncio.timeout(10):
        while len(stage.sent) == before:
            await stage.advance(1)
            await asyncio.sleep(0.01)
    return stage.sent[-1].text


async def test_without_arguments_the_conversation_is_shown(stage: Stage):
    stage.model.enqueue(
        summary_of(
            {"text": "Do: 说中文", "authorId": str(FISH), "refs": [1]},
            topics=["爬山"],
            current="等人",
        ),
        purpose="summarize",
    )
    await converse_on(stage, 16, role="owner")
    await pass_minutes(stage, 0)
    shown = await command(stage, "/会话")
    for words in (
        "窗口：8 轮（总保留 8 轮，到 16 轮时折叠）",
        "折叠或清空过 1 次，0 轮还没有进概要",
        f"〔约定〕Do: 说中文（{FISH}）",
        "〔话题〕2026-07-29 爬山：谈了爬山",
        "〔正在谈〕等人",
    ):
        assert words in shown
    assert "概要：还没有" in await command(stage, "/会话 reset all") + await command(stage, "/会话")


async def test_each_deed_says_what_it_did(stage: Stage):
    await converse_on(stage, 14)
    assert "移出了 6 轮" in await deed(stage, "/会话 compact")
    assert "重读了 14 轮对话，概要现有 2 条" in await deed(stage, "/会话 summary")
    assert "（8 轮），概要和记忆保留" in await command(stage, "/会话 reset summary")
    assert "已清空这里的对话（0 轮）和概要" in await command(stage, "/会话 RESET  all")
    assert await command(stage, "/会话 reset") == USAGE


async def test_what_the_model_does_not_finish_is_said_to_go_on(stage: Stage):
    await converse_on(stage, 14)
    stage.model.enqueue("我不会", purpose="summarize")
    answer = await deed(stage, "/会话 compact")
    assert "移出了 0 轮" in answer
    assert "自动再试" in answer
    stage.model.enqueue("我不会", purpose="summarize")
    assert "概要还是原来的" in await deed(stage, "/会话 summary")


async def test_a_window_that_shows_no_more_than_it_always_does_has_nothing_to_fold(stage: Stage):
    await converse_on(stage, 3)
    assert "没有可以移出的" in await deed(stage, "/会话 compact")


async def test_a_removal_has_to_be_confirmed_within_a_minute_by_who_asked_for_it(stage: Stage):
    await converse_on(stage, 1)
    assert "没有等待确认" in await command(stage, "/会话 remove 确认")
    assert "60 秒" in await command(stage, "/会话 remove")
    assert "没有等待确认" in await command(stage, "/会话 remove 确认", FISH)
    await command(stage, "/会话 remove")
    await stage.advance(61)
    assert "没有等待确认" in await command(stage, "/会话 remove 确认")
    assert await stage.rows("SELECT 1 FROM messages WHERE text = '问题1'")
    await command(stage, "/会话 remove")
    assert "已删除" in await command(stage, "/会话 remove 确认")
    assert not await stage.rows("SELECT 1 FROM messages WHERE text = '问题1'")
    assert "没有等待确认" in await command(stage, "/会话 remove 确认")


@pytest.mark.parametrize("who", [BEAR, CAT])
async def test_members_of_a_group_may_not_reset_its_conversation(stage: Stage, who: int):
    await converse_on(stage, 3)
    assert await command(stage, "/会话 reset all", who) == ""
    assert "只有群主" in await command(stage, "/新会话", who)
    assert (await state_of(stage)).window_turns == 3


async def test_anyone_may_begin_a_new_conversation_in_private_and_keeps_the_summary(stage: Stage):
    chat = Chat(CHAT.bot_id, "private", str(BEAR))
    await converse_on(stage, 16, chat=chat, by=BEAR)
    await pass_minutes(stage, 0)
    stage.whisper(BEAR, "/新会话")
    await stage.advance(5)
    assert "（8 轮），概要和记忆保留" in stage.texts()[-1]
    state = await state_of(stage, chat)
    assert state.window_turns == 0
    assert "在约时间" in state.summary
    stage.whisper(BEAR, "/会话")
    count = len(stage.sent)
    await stage.advance(5)
    assert len(stage.sent) == count


async def test_the_owner_of_a_group_may_begin_a_new_conversation(stage: Stage):
    await converse_on(stage, 3)
    assert "已清空这里的对话（3 轮）" in await command(stage, "/新会话", FISH)
    assert "用法" in await command(stage, "/新会话 现在", FISH)


async def test_a_turn_in_the_making_begins_anew_when_its_conversation_is_cleared(stage: Stage):
    await converse_on(stage, 3)
    await stage.advance(REST_SECONDS)
    stage.model.hold()
    stage.say(GROUP, BEAR, *at_bot("问"))
    await stage.advance(5)
    assert len(told(stage.model.requests[-1])) == 3
    await reset_summary(stage.app, CHAT)
    await stage.advance(5)
    stage.model.release()
    await stage.advance(5)
    assert told(stage.model.requests[-1]) == []
