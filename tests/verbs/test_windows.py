"""Conversations that outgrow a window: nobody hears of it, and the newest is always there."""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.conversation.fitting import tokens, tool_tokens
from bot.conversation.tokens import estimator
from bot.errors import ContextTooLong, ModelUnavailable
from bot.llm.protocol import ModelRequest
from bot.llm.scripted import Line, calling
from bot.tools.kit import BUILT_IN
from tests.verbs.conversing import is_summary, pass_minutes, state_of, summary_of, texts_of
from tests.verbs.stage import AT_BOT, FISH, GROUP, Stage, asked, open_stage, shown_texts, told
from tests.verbs.staged_tool import StagedTool, look

COUNT = estimator("cjk")
NO_LIMITS = {
    "replyPerMemberPerMinute": 1_000,
    "replyPerMemberPerDay": 10_000,
    "replyGlobalPerMinute": 1_000,
    "replyDebounceSeconds": 0,
    "replyMinGapSeconds": 0,
    "sendGapSeconds": 0,
    "dailyTokenBudget": {"chat": 10**12},
}


def size(request: ModelRequest) -> int:
    return tokens(request.messages, COUNT) + tool_tokens(request.tools, COUNT)


class SmallModel:
    """A model whose window holds so many tokens; it may count otherwise than the estimate, and may
    keep to itself how many those are."""

    def __init__(self, window_tokens: int, *, ratio: float = 1.0, tells: bool = False) -> None:
        self.window_tokens = window_tokens
        self.ratio = ratio
        self.tells = tells
        self.refused: list[ModelRequest] = []
        self.taken: list[ModelRequest] = []

    def __call__(self, request: ModelRequest) -> Line:
        if size(request) * self.ratio <= self.window_tokens:
            self.taken.append(request)
            return f"第{len(self.taken)}个回答" + "答" * 300
        self.refused.append(request)
        return ContextTooLong("too long", window_tokens=self.window_tokens if self.tells else None)


async def talk(stage: Stage, turns: int, chars: int = 300, first: int = 0) -> None:
    for number in range(first, first + turns):
        stage.say(GROUP, FISH, AT_BOT, f" 第{number}问" + "问" * chars)
        await stage.advance(40)


@pytest.mark.parametrize("tells", [True, False], ids=["told", "not told"])
@pytest.mark.parametrize("ratio", [1.0, 2.5])
async def test_a_conversation_goes_on_whatever_the_window(
    tmp_path: Path, ratio: float, tells: bool
):
    model = SmallModel(round(4_500 * ratio) + 1_500, ratio=ratio, tells=tells)
    async with open_stage(tmp_path, answer=model) as stage:
        await stage.set(**NO_LIMITS)
        await talk(stage, 40)
        assert len(model.taken) == 40
        assert not any("抱歉" in text for text in stage.texts())
        assert shown_texts(asked(model.taken[-1]))[-1].startswith("@小忆(10001) 第39问")
    # What one refusal taught holds for the next turns: most are not refused at all.
    assert len(model.refused) < 20
    assert told(model.taken[-1])[-1].startswith("第39个回答")


async def test_after_a_refusal_as_much_is_sent_as_may_be(tmp_path: Path):
    model = SmallModel(10**9)
    async with open_stage(tmp_path, answer=model) as stage:
        await stage.set(**NO_LIMITS)
        await talk(stage, 12)
        before = size(model.taken[-1])
        model.window_tokens = before - 1
        await talk(stage, 1)
        assert len(model.refused) == 1
        assert len(told(model.taken[-1])) >= len(told(model.refused[0])) - 3
        assert told(model.taken[-1]) == told(model.refused[0])[-len(told(model.taken[-1])) :]


async def test_a_known_window_is_kept_to_without_asking(tmp_path: Path):
    model = SmallModel(8_000)
    async with open_stage(
        tmp_path, answer=model, chat_model="own-model", openai_base_url="http://127.0.0.1:9/v1"
    ) as stage:
        await stage.set(**NO_LIMITS, modelWindows={"own-model": 8_000}, contextBudgetRatio=0.5)
        await talk(stage, 16)
    assert model.refused == []
    assert 3_000 < max(map(size, model.taken)) <= 4_000


async def test_a_message_longer_than_the_window_is_answered_all_the_same(tmp_path: Path):
    model = SmallModel(2_800)
    async with open_stage(tmp_path, answer=model) as stage:
        stage.say(GROUP, FISH, AT_BOT, " " + "问" * 4_000)
        await stage.advance(40)
        (text,) = stage.texts()
    assert text.startswith("第1个回答")
    assert asked(model.taken[-1]).count("问") >= 200


async def test_results_of_tools_give_way_before_the_turn_fails(tmp_path: Path):
    model = SmallModel(10_500)
    tool = StagedTool("果" * 4_000)
    async with open_stage(tmp_path, answer=model, tools=(tool,)) as stage:
        await stage.set(**NO_LIMITS)

        def call(request: ModelRequest) -> Line:
            line = model(request)
            return line if isinstance(line, ContextTooLong) else calling(look())

        stage.model.enqueue(call, call, call)
        await talk(stage, 1)
        assert not any("抱歉" in text for text in stage.texts())
    results = [each.content for each in model.taken[-1].messages if each.role == "tool"]
    assert len(results) == 3
    assert len(results[0]) < len(results[-1])


async def test_a_server_with_too_many_tools_takes_none_of_ours_away(tmp_path: Path):
    greedy = tuple(StagedTool(name=f"look_{'x' * 1_000}_{number}") for number in range(300))
    model = SmallModel(32_000, tells=True)
    async with open_stage(tmp_path, answer=model, tools=greedy) as stage:
        await stage.set(**NO_LIMITS)
        await talk(stage, 1)
        names = [spec.name for spec in model.taken[-1].tools]
        assert names[: len(BUILT_IN)] == [tool.spec.name for tool in BUILT_IN]
        assert len(BUILT_IN) < len(names) < len(BUILT_IN) + len(greedy)
        assert not any("抱歉" in text for text in stage.texts())


async def test_what_is_left_out_of_one_prompt_is_not_lost(tmp_path: Path):
    model = SmallModel(4_200, tells=True)
    async with open_stage(tmp_path, answer=model) as stage:
        await stage.set(**NO_LIMITS)
        await talk(stage, 12)
        few = len(told(model.taken[-1]))
        model.window_tokens = 10**9
        stage.app.calibrations.clear()
        await talk(stage, 1)
        assert len(told(model.taken[-1])) > few
    assert told(model.taken[-1])[-few:][:-1] == told(model.taken[-2])[-few + 1 :]


async def test_turns_that_do_not_fit_leave_the_window_once_they_are_summarised(tmp_path: Path):
    model = SmallModel(4_000, tells=True)
    async with open_stage(tmp_path, answer=model) as stage:
        # Six turns are always shown, and with twelve the window is full.
        await stage.set(**NO_LIMITS, sessionMaxMessages=12)
        stage.model.enqueue(summary_of(current="很久以前"), purpose="summarize")
        await talk(stage, 7)
        assert await pass_minutes(stage, 0) == 0
        await talk(stage, 3, first=7)
        assert len(told(model.taken[-1])) < 9
        assert await pass_minutes(stage, 0) == 1
        state = await state_of(stage)
        assert (state.window_turns, state.compactions, state.new_turns) == (6, 1, 0)
        assert "很久以前" in state.summary


# Turns as people make them, and summaries of them, by one and the same small model


class Mind:
    """A model of a small window that answers, and that reads what leaves the prompts.

    Attributes:
        read: how often a summary that was answered well has read each question.
    """

    def __init__(self, chance: Random) -> None:
        self.small = SmallModel(32_000, ratio=1.4)
        self.answered = 0
        self.read: Counter[int] = Counter()
        self._chance = chance

    def __call__(self, request: ModelRequest) -> Line:
        if is_summary(request) and self._chance.random() < 0.2:
            return ModelUnavailable("down")
        line = self.small(request)
        if isinstance(line, ContextTooLong):
            return line
        if not is_summary(request):
            self.answered += 1
            return line
        self.read.update(numbers_in(texts_of(request)))
        return summary_of(current=f"读到{self.read.total()}")


def numbers_in(texts: Iterable[str]) -> list[int]:
    """Return the numbers of the questions of ``talk``."""
    return [int(number) for text in texts for number in re.findall(r"第(\d+)问", text)]


@pytest.mark.long
@pytest.mark.timeout(1_800)
async def test_ten_thousand_turns_at_32_k(tmp_path: Path):
    await _many_turns(tmp_path, 10_000)


async def test_a_long_conversation_at_32_k(tmp_path: Path):
    await _many_turns(tmp_path, 120)


async def _many_turns(path: Path, turns: int) -> None:
    """Nobody hears of the window; each turn is in it, or was read by exactly one summary."""
    chance = Random(turns)
    mind = Mind(chance)
    async with open_stage(path, answer=mind) as stage:
        limits = {**NO_LIMITS, "dailyTokenBudget": {"chat": 10**12, "summarize": 10**12}}
        await stage.set(**limits, sessionMaxMessages=20, replyMaxChars=2_000, memoryEnabled=False)
        done = 0
        while done < turns:
            some = min(chance.randint(1, 30), turns - done)
            await talk(stage, some, chars=1_500, first=done)
            done += some
            await pass_minutes(stage, chance.choice([0, 1, 5]))
            await _check(stage, mind.read)
        assert mind.answered == turns
        assert not any("抱歉" in text for text in stage.texts())
        state = await state_of(stage)
        passed = await stage.rows("SELECT message_id FROM quarantine")
    assert (passed, state.compactions > 0) == ([], True)
    assert sum(mind.read.values()) >= turns - state.window_turns
    refused = [request for request in mind.small.refused if not is_summary(request)]
    assert len(refused) <= turns // 20 + 5


async def _check(stage: Stage, read: Counter[int]) -> None:
    state = await state_of(stage)
    questions = await stage.rows(
        "SELECT l.turn_id, l.text FROM turn_lines AS l WHERE l.part = 'question'"
    )
    for turn_id, line in questions:
        (number,) = numbers_in([line])
        assert read[number] == (turn_id <= state.summary_cursor), number
        assert read[number] or turn_id > state.window_start, number


@settings(max_examples=15, deadline=None)
@given(windows=st.lists(st.integers(2_600, 30_000), min_size=3, max_size=8))
async def test_no_window_that_holds_the_rules_makes_anybody_apologise(
    tmp_path_factory: pytest.TempPathFactory, windows: list[int]
):
    model = SmallModel(10**9)
    async with open_stage(tmp_path_factory.mktemp("windows"), answer=model) as stage:
        await stage.set(**NO_LIMITS)
        for window in windows:
            model.window_tokens = window
            await talk(stage, 1, chars=1_000)
        assert len(model.taken) == len(windows)
        assert not any("抱歉" in text for text in stage.texts())
