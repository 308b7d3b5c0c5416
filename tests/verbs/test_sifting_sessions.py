"""The decision model at work: noise stays out of summaries, and summaries out of other talk."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bot.errors import ModelUnavailable
from bot.llm.protocol import ModelAnswer, ModelRequest
from bot.model import Usage
from bot.store.usage import add_usage
from tests.verbs.conversing import (
    at_bot,
    converse_on,
    is_summary,
    lines_of,
    pass_minutes,
    state_of,
    summary_of,
    texts_of,
)
from tests.verbs.stage import FISH, GROUP, NOON, Stage, asked, open_stage

REST_SECONDS = 150
RULE = {"text": "Do: 说中文", "authorId": str(FISH), "refs": [1]}
HINT = {"text": "Do: 简短些", "authorId": str(FISH), "refs": [1]}


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    """The program with a decision model."""
    start = NOON + 60_000
    async with open_stage(
        tmp_path, start=start, decision_model="small-model", openai_api_key="k"
    ) as opened:
        yield opened


def decides(stage: Stage, *answers: str | Exception | ModelAnswer) -> None:
    stage.model.enqueue(*answers, purpose="decide")


def requests(stage: Stage, purpose: str) -> list[ModelRequest]:
    return [request for request in stage.model.requests if request.purpose == purpose]


def noise(*turns: int, confidence: float = 0.9, **more: Any) -> str:
    items = [{"turn": turn, "kind": "thanks", "confidence": confidence} for turn in turns]
    return json.dumps({"noise": items, **more})


async def ask(stage: Stage) -> str:
    """Ask something in the group and return the newest message of the prompt."""
    await stage.advance(REST_SECONDS)
    stage.say(GROUP, FISH, *at_bot("周六去吗"))
    await stage.advance(5)
    return asked(requests(stage, "chat")[-1])


async def test_noise_is_in_no_summary_and_counts_as_read(stage: Stage):
    decides(stage, noise(2, 3))
    stage.model.enqueue("{}", purpose="summarize")
    turns = await converse_on(stage, 16)
    await pass_minutes(stage, 0)
    (request,) = requests(stage, "summarize")
    assert texts_of(request)[:3] == ["问题1", "回答1", "问题4"]
    assert [line["turn"] for line in lines_of(request)][:3] == [1, 1, 2]
    assert (await state_of(stage)).summary_cursor == turns[-1]
    assert texts_of_all(requests(stage, "decide")[0])[2] == "问题2"


def texts_of_all(request: ModelRequest) -> list[str]:
    return [line["text"] for line in lines_of(request, "对话")]


async def test_where_all_is_noise_nobody_is_asked_for_a_summary(stage: Stage):
    decides(stage, noise(*range(1, 17)))
    await converse_on(stage, 16)
    await pass_minutes(stage, 0)
    assert requests(stage, "summarize") == []
    state = await state_of(stage)
    assert (state.new_turns, state.window_turns) == (0, 8)


@pytest.mark.parametrize(
    "answer",
    [
        ModelUnavailable("down"),
        "不知道",
        ModelAnswer(noise(1), "length", "m", "e"),
        noise(1, 2, confidence=0.6),
    ],
)
async def test_whatever_fails_everything_is_summarised(stage: Stage, answer: Any):
    decides(stage, answer)
    stage.model.enqueue("{}", purpose="summarize")
    await converse_on(stage, 16)
    await pass_minutes(stage, 0)
    assert len(texts_of(requests(stage, "summarize")[0])) == 32


async def test_a_decision_that_was_overturned_leaves_the_summary(stage: Stage):
    decides(stage, noise(), noise(overturned=[{"id": "k1", "refs": [1]}]))
    stage.model.enqueue(summary_of(RULE, HINT), "{}", purpose="summarize")
    await converse_on(stage, 16)
    await pass_minutes(stage, 0)
    await converse_on(stage, 16, first=17)
    await pass_minutes(stage, 0)
    (left,) = json.loads((await state_of(stage)).summary)["key_decisions"]
    assert left["text"] == "Do: 简短些"
    shown = lines_of(requests(stage, "summarize")[-1], "现有概要")
    assert [line.get("decision") for line in shown] == ["Do: 简短些"]


async def _summarised(stage: Stage, *, role: str = "") -> None:
    decides(stage, noise())
    stage.model.enqueue(
        summary_of(RULE, topics=["爬山", "买菜"], current="等人"), purpose="summarize"
    )
    await converse_on(stage, 16, role=role)
    await pass_minutes(stage, 0)


async def test_a_turn_is_shown_the_entries_that_bear_on_it(stage: Stage):
    await _summarised(stage)
    decides(stage, '{"keep": ["p1"]}')
    prompt = await ask(stage)
    assert "爬山" in prompt
    assert not any(words in prompt for words in ("买菜", "等人", "说中文"))
    decision = requests(stage, "decide")[-1].messages[0].content
    assert "周六去吗" in decision
    assert [line["id"] for line in lines_of(requests(stage, "decide")[-1], "条目")] == [
        *("k1", "p1", "p2", "c")
    ]


async def test_what_binds_is_always_shown_and_not_asked_about(stage: Stage):
    await _summarised(stage, role="owner")
    decides(stage, '{"keep": []}')
    prompt = await ask(stage)
    assert "Do: 说中文" in prompt
    assert "【背景】" not in prompt
    assert "说中文" not in requests(stage, "decide")[-1].messages[0].content


async def test_where_nothing_is_left_there_is_no_block(stage: Stage):
    await _summarised(stage)
    decides(stage, '{"keep": []}')
    assert "概要" not in await ask(stage)


@pytest.mark.parametrize("answer", [ModelUnavailable("down"), "不知道", '{"keep": "p1"}'])
async def test_whatever_fails_everything_is_shown(stage: Stage, answer: Any):
    await _summarised(stage)
    decides(stage, answer)
    prompt = await ask(stage)
    assert all(words in prompt for words in ("爬山", "买菜", "等人", "说中文"))


async def test_without_a_summary_nobody_is_asked(stage: Stage):
    assert "概要" not in await ask(stage)
    assert requests(stage, "decide") == []


async def test_once_the_days_budget_is_spent_nobody_is_asked_and_everything_is_shown(
    stage: Stage,
):
    await _summarised(stage)
    await stage.set(dailyTokenBudget={"decide": 1})
    await add_usage(stage.app.db, Usage("decide", "m", "e", stage.now, 1, 9, 0, 0, True))
    count = len(requests(stage, "decide"))
    assert "爬山" in await ask(stage)
    assert len(requests(stage, "decide")) == count


async def test_without_a_decision_model_nobody_is_asked(tmp_path: Path):
    async with open_stage(tmp_path, start=NOON + 60_000) as stage:
        stage.model.enqueue(summary_of(topics=["爬山"]), purpose="summarize")
        await converse_on(stage, 16)
        await pass_minutes(stage, 0)
        assert "爬山" in await ask(stage)
        assert all(is_summary(r) or r.purpose == "chat" for r in stage.model.requests)
