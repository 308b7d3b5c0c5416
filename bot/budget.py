"""Budget: how much of the day's tokens is spent; see ``docs/architecture.md``, "Models"."""

from bot.app import App
from bot.clock import day_start
from bot.model import Chat
from bot.store.usage import tokens_since

REFLECTIONS = ("reflect.group", "reflect.member-batch", "reflect.private-owner")
"""The purposes that share the budget ``reflect``."""


async def chat_budget_is_spent(app: App, chat: Chat, day_start: int) -> bool:
    """Whether the answers of this local day have cost all that ``dailyTokenBudget`` allows."""
    budget = app.settings.of(chat).daily_token_budget.chat
    return await tokens_since(app.db, day_start, ["chat"]) >= budget


async def reflection_budget_is_spent(app: App) -> bool:
    """Whether the reflections of this local day have cost all that is allowed; they then wait."""
    since = day_start(app.clock.now(), app.config.timezone)
    budget = app.settings.general.daily_token_budget.reflect
    return await tokens_since(app.db, since, REFLECTIONS) >= budget
