"""Conversations of a running bot: over kills, in the worker's hands, and from the command line."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bot.simulate import Utterance
from bot.simulate.provider import ModelServer, ReceivedRequest, Silence
from tests.e2e.command import Outcome, command
from tests.e2e.harness import (
    KEY,
    QUICK,
    Room,
    RunningBot,
    new_room,
    prompt,
    until,
    whole_prompt,
)
from tests.store.rows import indexed

SETTINGS = {**QUICK, "sessionMaxMessages": 4}
SUMMARY = '{"past_discussions": [{"topic": "算术"}], "current_discussion": "还在数数"}'


def mind(request: ReceivedRequest) -> str:
    """Answer with a number, and summaries with one."""
    if request.purpose == "summarize":
        return SUMMARY
    return f"第{len(prompt(request)) // 2}个回答"


@pytest.fixture
def models(model_server: ModelServer) -> ModelServer:
    model_server.requests.clear()
    model_server.answer = mind
    return model_server


async def session(bot: RunningBot, models: ModelServer, *arguments: str) -> Outcome:
    """Run ``python -m bot session`` beside the bot, with the same model."""
    return await command(
        "session",
        *arguments,
        DATABASE_URL=f"sqlite:///{bot.database}",
        CHAT_MODEL="example-model",
        OPENAI_BASE_URL=models.base_url,
        OPENAI_API_KEY=KEY,
        INITIAL_SETTINGS=json.dumps(SETTINGS),
    )


def answers(request: ReceivedRequest) -> int:
    return sum(message["role"] == "assistant" for message in prompt(request))


async def test_turn_six_after_a_kill_sees_turns_one_to_five(tmp_path: Path, models: ModelServer):
    async with RunningBot(tmp_path, models) as bot:
        room = new_room(bot)
        for number in range(1, 6):
            await room.asked(f"第{number}问")
        await bot.kill()
        await bot.start()
        await room.asked("第6问")
        last = bot.requests()[-1]
        assert answers(last) == 5
        assert all(f"第{number}问" in whole_prompt(last) for number in range(1, 7))


async def test_the_worker_summarises_what_the_next_prompts_show_no_more(
    tmp_path: Path, models: ModelServer
):
    environ = {"WORKER_INTERVAL_SECONDS": "0.2"}
    async with RunningBot(tmp_path, models, settings=SETTINGS, environ=environ) as bot:
        room = new_room(bot)
        for number in range(1, 5):
            await room.asked(f"第{number}问")
        await until(lambda: bot.rows("SELECT 1 FROM sessions WHERE compactions = 1"), "a fold")
        await room.asked("然后呢")
        last = bot.requests()[-1]
        assert answers(last) == 2
        assert "还在数数" in prompt(last)[-1]["content"]
        assert "第1问" not in whole_prompt(last)
        (summarising,) = bot.requests("summarize")
        assert "第1问" in whole_prompt(summarising)


async def test_a_window_and_its_summary_survive_a_kill(tmp_path: Path, models: ModelServer):
    environ = {"WORKER_INTERVAL_SECONDS": "0.2"}
    async with RunningBot(tmp_path, models, settings=SETTINGS, environ=environ) as bot:
        room = new_room(bot)
        for number in range(1, 5):
            await room.asked(f"第{number}问")
        await until(lambda: bot.rows("SELECT 1 FROM sessions WHERE compactions = 1"), "a fold")
        await bot.kill()
        await bot.start()
        await room.asked("然后呢")
        last = bot.requests()[-1]
        assert answers(last) == 2
        assert all(f"第{number}问" in whole_prompt(last) for number in (3, 4))
        assert "还在数数" in prompt(last)[-1]["content"]
        assert len(bot.requests("summarize")) == 1


async def test_a_kill_while_a_summary_is_made_loses_nothing(tmp_path: Path, models: ModelServer):
    environ = {"WORKER_INTERVAL_SECONDS": "0.2"}
    async with RunningBot(tmp_path, models, settings=SETTINGS, environ=environ) as bot:
        room = new_room(bot)
        for number in range(1, 4):
            await room.asked(f"第{number}问")
        models.enqueue(Silence(), purpose="summarize")
        await room.asked("第4问")
        await until(lambda: bot.requests("summarize"), "a call")
        await bot.kill()
        assert bot.rows("SELECT summary, summary_cursor, window_start FROM sessions") == [
            ("", 0, 0)
        ]
        await bot.start()
        await until(lambda: bot.rows("SELECT 1 FROM sessions WHERE compactions = 1"), "a fold")
        again = bot.requests("summarize")[-1]
        assert all(f"第{number}问" in whole_prompt(again) for number in range(1, 5))
        await room.asked("然后呢")
        assert answers(bot.requests()[-1]) == 2
        assert "还在数数" in prompt(bot.requests()[-1])[-1]["content"]


async def _talked(bot: RunningBot) -> Room:
    room = new_room(bot)
    for number in range(1, 4):
        await room.asked(f"第{number}问")
    return room


def told(outcome: Outcome) -> dict[str, Any]:
    assert outcome.status == 0, outcome.errors
    return json.loads(outcome.output)


async def test_a_session_is_shown_folded_and_cleared_from_the_command_line(
    tmp_path: Path, models: ModelServer
):
    async with RunningBot(tmp_path, models, settings=SETTINGS) as bot:
        room = await _talked(bot)
        place = ("group", str(room.id))
        assert told(await session(bot, models, *place))["window_turns"] == 3
        folded = told(await session(bot, models, *place, "compact"))
        assert folded == {"removed": 1, "is_whole": True}
        shown = told(await session(bot, models, *place))
        assert (shown["window_turns"], shown["new_turns"]) == (2, 0)
        assert shown["summary"]["current_discussion"] == "还在数数"
        assert told(await session(bot, models, *place, "summary"))["turns"] == 3
        assert told(await session(bot, models, *place, "reset", "summary")) == {"removed": 2}
        await room.asked("然后呢")
        assert answers(bot.requests()[-1]) == 0
        assert "还在数数" in whole_prompt(bot.requests()[-1])
        told(await session(bot, models, *place, "reset", "all"))
        await room.asked("还有呢")
        assert "还在数数" not in whole_prompt(bot.requests()[-1])
        refused = await session(bot, models, *place, "remove")
        assert (refused.status, "--yes" in refused.errors) == (1, True)
        assert bot.rows("SELECT 1 FROM messages WHERE text LIKE '%第1问%'")
        told(await session(bot, models, *place, "remove", "--yes"))
        assert not bot.rows("SELECT 1 FROM messages WHERE text LIKE '%第1问%'")


@dataclass(frozen=True, slots=True)
class Left:
    """What a reset from the command line leaves."""

    turns: int
    """Earlier turns in the next prompt."""
    summary: bool
    context: bool
    """What was said before is context of the next question."""
    search: bool
    """A search without a date reaches before it."""
    text: bool
    """What was said is still stored, in both indices, and found by a search with a date."""


MATRIX = {
    "compact": Left(turns=2, summary=True, context=True, search=True, text=True),
    "summary": Left(turns=3, summary=True, context=True, search=True, text=True),
    "reset summary": Left(turns=0, summary=True, context=True, search=True, text=True),
    "reset all": Left(turns=0, summary=False, context=False, search=False, text=True),
    "remove --yes": Left(turns=0, summary=False, context=False, search=False, text=False),
}
SAID = "湖边的路很好走"
FOUND = "湖边的路"


@pytest.mark.parametrize("deed", MATRIX)
async def test_each_reset_from_the_command_line_clears_what_it_says_and_nothing_else(
    tmp_path: Path, models: ModelServer, deed: str
):
    left = MATRIX[deed]
    environ = {"EMBEDDING_MODEL": "vectors-small", "WORKER_INTERVAL_SECONDS": "0.2"}
    async with RunningBot(tmp_path, models, settings=SETTINGS, environ=environ) as bot:
        room = await _talked(bot)
        await room.order("/记住 我每周三开例会", who=room.asker)
        place = ("group", str(room.id))
        # There is a summary, whatever is done to it.
        told(await session(bot, models, *place, "summary"))
        spoken = await room.say(room.other, SAID)
        await until(lambda: _kept(bot, spoken)[1:] == (True, True), "both indices")
        told(await session(bot, models, *place, *deed.split()))
        await room.asked("然后呢")
        last = bot.requests()[-1]
        assert answers(last) == left.turns
        assert ("还在数数" in whole_prompt(last)) == left.summary
        assert (f'"text": "{SAID}"' in whole_prompt(last)) == left.context
        assert (SAID in await room.order(f"/搜 {FOUND}")) == left.search
        assert (SAID in await room.order(f"/搜 {FOUND} 自 2026-01-01")) == left.text
        assert _kept(bot, spoken) == ((SAID, True, True) if left.text else ("", False, False))
        assert "我每周三开例会" in whole_prompt(last)


def _kept(bot: RunningBot, spoken: Utterance) -> tuple[str, bool, bool]:
    """Return the stored text of a message, and whether it is in the index and has a vector."""
    ((row_id, text),) = bot.rows(
        "SELECT id, text FROM messages WHERE platform_id = ?", str(spoken.message_id)
    )
    vectors = bot.rows("SELECT 1 FROM message_vectors WHERE message_id = ?", row_id)
    return text, row_id in indexed(bot.database), bool(vectors)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("group", "29999"), "nothing is known of group 29999"),
        (("group", "29999", "reset"), "reset summary, or reset all"),
        (("group", "29999", "compact", "all"), "reset summary, or reset all"),
    ],
)
async def test_what_cannot_be_done_is_said(
    tmp_path: Path, models: ModelServer, arguments: tuple[str, ...], words: str
):
    async with RunningBot(tmp_path, models) as bot:
        outcome = await session(bot, models, *arguments)
    assert (outcome.status, outcome.output) == (1, "")
    assert words in outcome.errors
