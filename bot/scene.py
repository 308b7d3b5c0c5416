"""Scene: all that is known when a turn begins, read once."""

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime, time

from bot.app import App
from bot.budget import chat_budget_is_spent
from bot.clock import local_time
from bot.conversation.floor import Question
from bot.conversation.order import in_order
from bot.conversation.prompt import CONTEXT_LINES, KEPT_TURNS, context_of, kept_turns
from bot.model import StoredMessage, Turn
from bot.settings import Settings
from bot.store.chats import situation
from bot.store.messages import messages_by_rows, newest_with_id, recent_messages
from bot.store.turns import TurnLoad, recent_turns, sent_count, turn_load

RECENT_MESSAGES = CONTEXT_LINES + 2 * KEPT_TURNS
"""So many messages are read to find the context among them."""

LONGEST_RUN = 200
"""More turns than this are not read: neither shown, nor looked through for loops."""


@dataclass(frozen=True, slots=True)
class Scene:
    """All that is known when a turn begins."""

    question: Question
    settings: Settings
    chat_name: str
    recent: list[StoredMessage]
    turns: list[Turn]
    """The newest answered turns, more than the prompt shows."""
    kept: int
    """How many of them it shows."""
    load: TurnLoad
    is_budget_spent: bool
    """The day's answers have cost all that ``dailyTokenBudget`` allows."""
    quotes: list[StoredMessage]
    now: int

    @property
    def shown_turns(self) -> list[Turn]:
        """The turns that the prompt shows."""
        return self.turns[max(0, len(self.turns) - self.kept) :]

    @property
    def context(self) -> list[StoredMessage]:
        """What was said since the turn before."""
        recent = in_order(self.recent)
        return context_of(recent, self.turns, self.question.messages)


async def read_scene(app: App, question: Question) -> Scene:
    """Read what a turn has to know. Messages of the question are as they stand now: one may have
    been recalled, or its forward been read."""
    chat = question.chat
    now = app.clock.now()
    settings = app.settings.of(chat)
    least = max(1, settings.session_max_messages // 2)
    run = min(max(2 * least, settings.max_consecutive_turns + 1), LONGEST_RUN)
    today = day_start(app, now)
    messages, recent, turns, count, load, known = await asyncio.gather(
        messages_by_rows(app.db, [stored.row_id for stored in question.messages]),
        recent_messages(app.db, chat, RECENT_MESSAGES),
        recent_turns(app.db, chat, run),
        sent_count(app.db, chat),
        turn_load(app.db, chat, question.sender_id, now=now, day_start=today),
        situation(app.db, chat, question.sender_id),
    )
    # One may have its answer already, as when the connection came and went meanwhile.
    answered = {line.message_id for turn in turns for line in turn.lines if line.part == "question"}
    messages = [stored for stored in messages if stored.row_id not in answered]
    return Scene(
        question=replace(question, messages=tuple(in_order(messages))),
        settings=settings,
        chat_name=known.name,
        recent=recent,
        turns=turns,
        kept=kept_turns(count, least),
        load=load,
        is_budget_spent=await chat_budget_is_spent(app, chat, today),
        quotes=await _quotes(app, messages),
        now=now,
    )


async def _quotes(app: App, messages: list[StoredMessage]) -> list[StoredMessage]:
    quoted = {s.message.reply_to for s in messages if s.message.reply_to is not None}
    chat = messages[0].message.chat if messages else None
    found = [await newest_with_id(app.db, chat, wanted) for wanted in quoted] if chat else []
    shown = {stored.row_id for stored in messages}
    return [q for q in found if q and q.recalled_at is None and q.row_id not in shown]


def day_start(app: App, now: int) -> int:
    """Return when the local day of ``now`` began, both in UTC milliseconds."""
    local = local_time(now, app.config.timezone)
    midnight = datetime.combine(local.date(), time(), app.config.timezone)
    return round(midnight.timestamp() * 1000)
