"""Conversations of a running bot: over kills, in the worker's hands, and from the command line."""

import json
from pathlib import Path
from typing import Any

import pytest

from bot.simulate.provider import ModelServer, ReceivedRequest
from tests.e2e.command import Outcome, command
from tests.e2e.harness import KEY, QUICK, Room, RunningBot, new_room, prompt, until, whole_prompt

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
