"""Budget: how much of the day's tokens is spent; see ``docs/architecture.md``, "Models"."""

from bot.app import App
from bot.model import Chat
from bot.store.usage import tokens_since


async def chat_budget_is_spent(app: App, chat: Chat, day_start: int) -> bool:
    """Whether the answers of this local day have cost all that ``dailyTokenBudget`` allows."""
    budget = app.settings.of(chat).daily_token_budget.chat
    return await tokens_since(app.db, day_start, ["chat"]) >= budget
