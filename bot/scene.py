"""Scene: all that is known when a turn begins, read once."""

from dataclasses import dataclass, replace

from bot.app import App
from bot.budget import BUDGETS
from bot.clock import day_start
from bot.conversation.floor import Question
from bot.conversation.order import in_order
from bot.conversation.prompt import CONTEXT_LINES, context_of
from bot.conversation.summary import NO_SUMMARY, SessionSummary
from bot.conversation.window import is_open_to, shown_turns
from bot.memory.pack import most_recalled
from bot.model import Chat, StoredMessage, Turn
from bot.settings import Settings
from bot.store.entry_search import Candidate
from bot.store.moment import Moment, Wanted, read_moment, remembered_now
from bot.store.sessions import SessionState
from bot.store.snapshots import Recollection
from bot.store.turns import TurnLoad

RECENT_MESSAGES = CONTEXT_LINES + 8
"""Among so many of the newest messages the context is looked for: others are the question, the last
answer, and what was recalled."""

LONGEST_RUN = 200
"""More turns than this are not read: neither shown, nor looked through for loops."""


@dataclass(frozen=True, slots=True)
class Scene:
    """All that is known when a turn begins."""

    question: Question
    settings: Settings
    chat_name: str
    told: list[StoredMessage]
    """What was said since the turn before, in no order."""
    turns: list[Turn]
    """The newest answered turns; the prompt shows those of the window."""
    session: SessionState
    recollection: Recollection
    candidates: list[Candidate]
    """Entries that may bear on the question, in no order."""
    load: TurnLoad
    is_budget_spent: bool
    """The day's answers have cost all that ``dailyTokenBudget`` allows."""
    quotes: list[StoredMessage]
    now: int
    kept: frozenset[int] = frozenset()
    """Rows of people who have opted out, kept for the turn that answers them."""
    summary: SessionSummary = NO_SUMMARY
    """What the turn is shown of the summary of the session."""

    @property
    def chat(self) -> Chat:
        """Where the turn is."""
        return self.question.chat

    @property
    def shown_turns(self) -> list[Turn]:
        """The turns that the prompt shows."""
        turns = shown_turns(self.turns, self.session.window_start)
        return [turn for turn in turns if is_open_to(turn, self._reader_id, self.kept)]

    @property
    def is_kept(self) -> bool:
        """Whether what is asked is kept for this turn alone."""
        return not self.kept.isdisjoint(stored.row_id for stored in self.question.messages)

    @property
    def _reader_id(self) -> str:
        """Whose kept turns are shown: the asker's, if this one is kept as well. What is said now is
        else nobody's to see either."""
        return self.question.sender_id if self.is_kept else ""

    @property
    def context(self) -> list[StoredMessage]:
        """What was said since the turn before."""
        reader_id = self._reader_id
        return context_of(
            in_order(self.told),
            [turn for turn in self.turns if is_open_to(turn, reader_id, self.kept)],
            self.question.messages,
            self.session.cleared_before,
            [turn for turn in self.turns if not is_open_to(turn, reader_id, self.kept)],
        )


async def read_scene(app: App, question: Question) -> Scene:
    """Read what a turn has to know. Messages of the question are as they stand now: one may have
    been recalled, or its forward been read."""
    chat = question.chat
    now = app.clock.now()
    settings = app.settings.of(chat)
    quoted = {s.message.reply_to for s in question.messages if s.message.reply_to is not None}
    moment = await read_moment(
        app.db,
        Wanted(
            chat=chat,
            sender_id=question.sender_id,
            row_ids=[stored.row_id for stored in question.messages],
            quoted_ids=sorted(quoted),
            recent=RECENT_MESSAGES,
            turns=min(settings.max_consecutive_turns + 1, LONGEST_RUN),
            most_turns=LONGEST_RUN,
            now=now,
            day_start=day_start(now, app.config.timezone),
            started_at=app.started_at,
            purposes=BUDGETS["chat"],
            cross_group=settings.memory_member_cross_group,
            recalls=_recalls(settings),
        ),
    )
    # Read meanwhile; but nothing is done about a message that may be lost.
    await app.db.durable()
    return Scene(
        question=replace(question, messages=_unanswered(moment)),
        settings=settings,
        chat_name=moment.chat_name,
        told=moment.told,
        turns=moment.turns,
        session=moment.session,
        recollection=moment.recollection,
        candidates=moment.candidates,
        load=moment.load,
        is_budget_spent=moment.tokens >= settings.daily_token_budget.chat,
        quotes=_quotes(moment),
        now=now,
        kept=moment.kept,
    )


async def remembered_anew(app: App, scene: Scene) -> Scene:
    """Return a scene with all that it knows of memory as that stands now."""
    query = "\n".join(stored.message.text for stored in scene.question.messages)
    known, found = await remembered_now(
        app.db,
        scene.chat,
        scene.question.sender_id,
        query,
        cross_group=scene.settings.memory_member_cross_group,
        recalls=_recalls(scene.settings),
    )
    return replace(scene, recollection=known, candidates=found)


def _recalls(settings: Settings) -> int:
    return most_recalled(settings.recall_token_budget) if settings.memory_enabled else 0


def _unanswered(moment: Moment) -> tuple[StoredMessage, ...]:
    """Return what is to be answered; one may have its answer already, as when the connection came
    and went meanwhile."""
    lines = (line for turn in moment.turns for line in turn.lines)
    answered = {line.message_id for line in lines if line.part == "question"}
    return tuple(in_order(s for s in moment.messages if s.row_id not in answered))


def _quotes(moment: Moment) -> list[StoredMessage]:
    """Return the quoted messages that a prompt may show: what people and the model said, as far as
    it is kept."""
    asked = {stored.row_id for stored in moment.messages}
    told = [q for q in moment.quotes if q.message.kind == "chat" and q.message.text]
    spoken = [q for q in told if not q.is_gone]
    return [q for q in spoken if q.row_id not in asked]
