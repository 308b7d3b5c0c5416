"""Whatever happens in between: nothing that somebody who opted out said is anywhere for longer than
it may be, and nothing else is lost."""

import json
import tempfile
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from hypothesis import given, settings
from hypothesis import strategies as st

from bot.embed import embed_all
from bot.llm.protocol import ModelRequest
from bot.llm.spelling import SpellingEmbedder
from bot.model import Member
from bot.opt_out import erase_hidden
from bot.simulate import Utterance, segments
from bot.store.ingest import KEPT_MS
from bot.store.message_search import Window, kept
from bot.worker import tick
from tests.memory.workshop import diary
from tests.store.rows import indexed
from tests.verbs.stage import AT_BOT, BEAR, BOT, FISH, GROUP, NOON, OTHER_GROUP, Stage, open_stage
from tests.verbs.stage import asked as newest

A_FISH = Member(str(BOT), str(FISH))

Deed = Literal[
    "say", "ask", "quote", "whisper", "keep", "leave", "come back", "recall", "wait", "work",
    "embed", "die",
]  # fmt: skip


@dataclass(frozen=True)
class Step:
    """One thing that happens, by whom if that matters, where, and to which of what there is."""

    deed: Deed
    is_fish: bool
    is_elsewhere: bool
    place: float


DEEDS: tuple[Deed, ...] = (
    *("say", "say", "ask", "ask", "quote", "whisper", "keep", "leave", "leave", "come back"),
    *("recall", "wait", "work", "work", "embed", "die"),
)
steps = st.lists(
    st.builds(
        Step,
        st.sampled_from(DEEDS),
        st.booleans(),
        st.booleans(),
        st.floats(0, 1, exclude_max=True),
    ),
    min_size=4,
    max_size=24,
)


def chatty(request: ModelRequest) -> str:
    """Repeat whatever is said, in answers, in memory and in summaries."""
    if request.purpose.startswith("reflect"):
        return diary(request)
    if request.purpose == "summarize":
        said = [json.loads(one)["text"] for one in _lines(request.messages[0].content)]
        return json.dumps({"current_discussion": "；".join(said)}, ensure_ascii=False)
    return "你说：" + json.loads(_lines(newest(request))[-1])["text"]


def _lines(prompt: str) -> list[str]:
    return [line for line in prompt.splitlines() if line.startswith('{"id"')]


@dataclass
class Talk:
    """What was said, and what must therefore be gone, or be there."""

    root: Path
    opened: AsyncExitStack
    stage: Stage = field(init=False)
    count: int = 0
    is_out: bool = False
    said: dict[str, Utterance] = field(default_factory=dict)
    """Of this run of the program."""
    of_fish: set[str] = field(default_factory=set)
    kept: dict[str, int] = field(default_factory=dict)
    """What is kept for its turn, and until when at most."""
    gone: set[str] = field(default_factory=set)
    standing: set[str] = field(default_factory=set)

    async def begin(self, at: int = NOON) -> None:
        stage = await self.opened.enter_async_context(
            open_stage(self.root, answer=chatty, start=at, embedder=SpellingEmbedder())
        )
        self.stage, self.said = stage, {}
        await stage.set(
            replyDebounceSeconds=0, replyMinGapSeconds=0, replyPerMemberPerMinute=1_000,
            replyPerMemberPerDay=1_000, replyGlobalPerMinute=1_000, sendGapSeconds=0,
            sendPerChatPerMinute=1_000, sendPerAccountPerMinute=1_000, memoryIdleMinutes=1,
            maxConsecutiveTurns=1_000, summaryEveryMinutes=1, sessionMaxMessages=4,
        )  # fmt: skip

    async def die(self) -> None:
        """End the program right after somebody opts out, and begin again."""
        await self.stage.app.opt_outs.add(A_FISH, at=self.stage.now)
        self._left()
        await self._check_hidden()
        at = self.stage.now
        await self.opened.aclose()
        await self.begin(at)
        await erase_hidden(self.stage.app)

    async def do(self, step: Step) -> None:
        who, group = (FISH if step.is_fish else BEAR), OTHER_GROUP if step.is_elsewhere else GROUP
        stage = self.stage
        match step.deed:
            case "say":
                self._note(stage.say(group, who, self._text()), who)
            case "ask":
                self._note(stage.say(group, who, AT_BOT, f" {self._text()}"), who, to_bot=True)
            case "quote":
                await self._quote(step.place)
            case "whisper":
                self._note(stage.whisper(who, self._text()), who, to_bot=True)
            case "keep":
                self._note(stage.say(group, who, f"/记住 {self._text()}"), who)
            case "leave":
                for words in ("/别记我", "/别记我 确认"):
                    stage.say(group, FISH, words)
                    await stage.advance(2)
                if not self.is_out:
                    self._left()
            case "come back":
                stage.say(group, FISH, "/记我")
                self.is_out = False
            case "recall":
                await self._recall(step.place)
            case "wait":
                await stage.clock.advance(step.place * 30 * 3600)
            case "work":
                await stage.clock.advance(120)
                await tick(stage.app)
            case "embed":
                stage.spawn(embed_all(stage.app))
            case "die":
                await self.die()
        await self.stage.advance(3)

    def _text(self) -> str:
        self.count += 1
        return f"第{self.count}件小事呀"

    def _note(self, spoken: Utterance, who: int, *, to_bot: bool = False) -> None:
        text = f"第{self.count}件小事呀"
        self.said[text] = spoken
        if who != FISH:
            self.standing.add(text)
            return
        self.of_fish.add(text)
        if not self.is_out:
            self.standing.add(text)
        elif to_bot:
            self.kept[text] = self.stage.now + KEPT_MS
        else:
            self.gone.add(text)

    def _left(self) -> None:
        self.is_out = True
        self.gone |= self.of_fish
        self.standing -= self.of_fish
        self.kept.clear()

    async def _quote(self, place: float) -> None:
        if not self.said:
            return
        quoted = list(self.said.values())[int(place * len(self.said))]
        if quoted.chat.is_group:
            reply = segments.reply(quoted.message_id)
            spoken = self.stage.say(int(quoted.chat.id), BEAR, reply, AT_BOT, f" {self._text()}")
            self._note(spoken, BEAR)

    async def _recall(self, place: float) -> None:
        if self.said:
            text = list(self.said)[int(place * len(self.said))]
            self.stage.recall(self.said.pop(text))
            self.gone.add(text)
            self.standing.discard(text)
            self.kept.pop(text, None)

    async def check(self) -> None:
        stage = self.stage
        await stage.settle()
        await tick(stage.app)
        over = {text for text, until in self.kept.items() if until <= stage.now}
        self.gone |= over
        for text in over:
            del self.kept[text]
        everything = await self._everything()
        assert [text for text in self.gone if text in everything] == []
        stored = {text for (text,) in await stage.rows("SELECT text FROM messages")}
        assert [text for text in self.standing if not any(text in one for one in stored)] == []
        vectors = (
            "SELECT count(*) FROM message_vectors AS v JOIN messages AS m ON m.id = v.message_id"
            " WHERE m.forgotten_at IS NOT NULL OR m.recalled_at IS NOT NULL"
        )
        assert await stage.rows(vectors) == [(0,)]
        await self._check_hidden()

    async def _check_hidden(self) -> None:
        for chat in (self.stage.group, self.stage.other_group):
            for text in sorted(self.of_fish & self.gone)[:3]:
                found = await kept(self.stage.app.db, chat, [text], Window(), 5)
                senders = {one.message.sender.user_id for one in found.messages}
                assert str(FISH) not in senders

    async def _everything(self) -> str:
        tables = await self.stage.rows(
            "SELECT name FROM sqlite_master WHERE type = 'table'"
            " AND sql NOT LIKE 'CREATE VIRTUAL %'"
        )
        rows = [await self.stage.rows(f'SELECT * FROM "{name}"') for (name,) in tables]
        tokens = sorted(indexed(self.stage.app.db.path).items())
        entries = await self.stage.rows("SELECT words, pairs FROM entry_index")
        return f"{rows} {tokens} {entries}"


@given(steps)
@settings(max_examples=40, deadline=None)
async def test_who_opted_out_is_nowhere_for_longer_than_allowed(found: list[Step]):
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncExitStack() as opened:
            talk = Talk(Path(folder), opened)
            await talk.begin()
            for step in found:
                await talk.do(step)
            await talk.check()
