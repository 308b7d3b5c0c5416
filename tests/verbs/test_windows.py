"""Conversations that outgrow a window: nobody hears of it, and the newest is always there."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.conversation.fitting import tokens, tool_tokens
from bot.conversation.tokens import estimator
from bot.errors import ContextTooLong
from bot.llm.protocol import ModelRequest
from bot.llm.scripted import Line, calling
from bot.tools.kit import BUILT_IN
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


async def talk(stage: Stage, turns: int, chars: int = 300) -> None:
    for number in range(turns):
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
    model = SmallModel(2_600)
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
    model = SmallModel(4_000, tells=True)
    async with open_stage(tmp_path, answer=model) as stage:
        await stage.set(**NO_LIMITS)
        await talk(stage, 12)
        few = len(told(model.taken[-1]))
        model.window_tokens = 10**9
        stage.app.calibrations.clear()
        await talk(stage, 1)
        assert len(told(model.taken[-1])) > few
    assert told(model.taken[-1])[-few:][:-1] == told(model.taken[-2])[-few + 1 :]


@pytest.mark.long
@pytest.mark.timeout(900)
async def test_ten_thousand_turns_at_32_k(tmp_path: Path):
    await _many_turns(tmp_path, 10_000)


async def test_a_long_conversation_at_32_k(tmp_path: Path):
    await _many_turns(tmp_path, 120)


async def _many_turns(path: Path, turns: int) -> None:
    model = SmallModel(32_000, ratio=1.4)
    async with open_stage(path, answer=model) as stage:
        await stage.set(**NO_LIMITS, sessionMaxMessages=40, replyMaxChars=2_000)
        await talk(stage, turns, chars=1_500)
        assert len(model.taken) == turns
        assert not any("抱歉" in text for text in stage.texts())
    assert len(model.refused) <= turns // 20 + 5


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
