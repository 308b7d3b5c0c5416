"""What tools were used in turns: kept with them, for as long as a prompt may show it."""

import json

import pytest

from bot.model import ToolRound, ToolUse, TurnLine
from bot.store.database import Database
from bot.store.messages import Heard, drop_quotes, set_apart
from bot.store.tool_history import KEPT_TURNS, RECALLED_RESULT
from bot.store.turns import NewTurn, add_turn, finish_turn, recent_turns
from tests.store.rows import ALICE, GROUP, NOON, OTHER_GROUP, said, store, store_apart, values

ROUND = ToolRound(
    "big",
    "我看看",
    (
        ToolUse("a", "look", '{"q": "西瓜"}', '{"text": "说“好”\\n了"}', (1,)),
        ToolUse("b", "look", "{}", "别的", ()),
    ),
)


async def take(db: Database, question: int, *rounds: ToolRound, at: int = NOON) -> int:
    turn = NewTurn(
        chat=GROUP,
        user_id=ALICE,
        asked_at=at,
        started_at=at,
        addressed=True,
        third_party=False,
        context_until=question,
        lines=(TurnLine(question, "question", "问"), TurnLine(None, "answer", "答")),
        tools=rounds,
    )
    async with db.transaction() as tx:
        turn_id = await add_turn(tx, turn, "sending", at=at)
        assert turn_id is not None
        await finish_turn(tx, turn_id, "sent", sent={}, at=at)
    return turn_id


async def told(db: Database) -> list[tuple[ToolRound, ...]]:
    return [turn.tools for turn in await recent_turns(db, GROUP, 300)]


@pytest.fixture
async def heard(db: Database) -> Database:
    await store_apart(db, *(said(f"第{n}句话", id=str(n)) for n in range(1, 4)))
    return db


async def test_rounds_come_back_as_they_were_kept(heard: Database):
    await take(heard, 2)
    await take(heard, 3, ROUND, ROUND)
    assert await told(heard) == [(), (ROUND, ROUND)]


async def test_a_message_that_is_not_known_is_not_linked(heard: Database):
    use = ToolUse("a", "look", "{}", "x", (1, 999))
    await take(heard, 2, ToolRound("big", "", (use,)))
    assert await values(heard, "SELECT message_id FROM tool_messages") == [1]


async def test_a_message_that_is_forgotten_leaves_the_results_that_show_it(heard: Database):
    await take(heard, 2, ROUND)
    async with heard.transaction() as tx:
        await set_apart(tx, 1, NOON)
    ((one,),) = await told(heard)
    assert [use.result for use in one.uses] == [RECALLED_RESULT, "别的"]
    assert [use.call_id for use in one.uses] == ["a", "b"]


@pytest.mark.parametrize("words", ["说“好吧”", '说"好"\n了，真的', "我看看吧"])
async def test_what_repeats_the_words_of_what_is_gone_loses_them(heard: Database, words: str):
    result = json.dumps({"text": f"他{words}了"}, ensure_ascii=False)
    quoting = ToolRound("big", f"他{words}", (ToolUse("a", "look", json.dumps({"q": 1}), result),))
    await take(heard, 2, quoting, ROUND)
    (chat_id,) = await values(heard, "SELECT chat_id FROM messages WHERE id = 1")
    async with heard.transaction() as tx:
        await drop_quotes(tx, Heard(frozenset([chat_id]), NOON), [words])
    ((first, second),) = await told(heard)
    assert (first.text, first.uses[0].result) == ("", RECALLED_RESULT)
    assert second == ROUND


async def test_only_the_chats_and_times_where_it_was_heard_lose_words(heard: Database):
    await store(heard, said("别处", chat=OTHER_GROUP, id="9"))
    await take(heard, 2, ROUND)
    (here,) = await values(heard, "SELECT chat_id FROM messages WHERE id = 1")
    (there,) = await values(heard, "SELECT chat_id FROM messages WHERE text = '别处'")
    async with heard.transaction() as tx:
        await drop_quotes(tx, Heard(frozenset([there]), NOON), ["我看看", "西瓜西瓜"])
        await drop_quotes(tx, Heard(frozenset([here]), NOON + 1), ["说“好”"])
    assert await told(heard) == [(ROUND,)]


async def test_tools_of_turns_that_no_prompt_shows_any_more_are_forgotten(heard: Database):
    for number in range(KEPT_TURNS + 3):
        await take(heard, 2, ROUND, at=NOON + number)
    with_tools = await values(heard, "SELECT id FROM turns WHERE tools <> '' ORDER BY id")
    assert with_tools == list(range(4, KEPT_TURNS + 4))
    assert await values(heard, "SELECT min(turn_id) FROM tool_messages") == [4]
