"""Budget: how much of the day's tokens is spent; see ``docs/architecture.md``, "Token budget"."""

from collections.abc import Mapping
from typing import Literal

from bot.alert import alert
from bot.app import App
from bot.clock import day_start
from bot.llm.protocol import Purpose
from bot.store.alerts import claim_alert
from bot.store.usage import tokens_since, usage_since

BUDGETS: Mapping[str, tuple[Purpose, ...]] = {
    "chat": ("chat",),
    "reflect": ("reflect.group", "reflect.member-batch", "reflect.private-owner"),
    "compress": ("compress.group", "compress.member"),
    "summarize": ("summarize",),
    "decide": ("decide",),
    "vision": ("vision",),
    "embed": ("embed",),
}
"""The purposes that share each budget of ``dailyTokenBudget``."""

BUDGET_WORDS: Mapping[str, str] = {
    "chat": "回复",
    "reflect": "记忆整理",
    "compress": "记忆压缩",
    "summarize": "会话概要",
    "decide": "判断",
    "vision": "看图",
    "embed": "向量",
}

WARNING_SHARE = 0.8
"""Operators are told once so much of a budget is spent."""


async def budget_is_spent(
    app: App, name: Literal["reflect", "compress", "summarize", "decide", "vision", "embed"]
) -> bool:
    """Whether such work has cost, on this local day, all that is allowed; it then waits."""
    budget = getattr(app.settings.general.daily_token_budget, name)
    return await tokens_since(app.db, _today(app), BUDGETS[name]) >= budget


async def warn_of_budgets(app: App) -> None:
    """Tell the operators, once on each local day, of every budget that is spent by 80 %."""
    spent = await _spent_today(app)
    for name in BUDGETS:
        budget = getattr(app.settings.general.daily_token_budget, name)
        is_due = 0 < WARNING_SHARE * budget <= spent[name]
        if is_due and await _is_news(app, name):
            await alert(app, _warning(name, spent[name], budget))


async def _spent_today(app: App) -> dict[str, int]:
    sums = await usage_since(app.db, _today(app))
    tokens = {one.purpose: one.prompt_tokens + one.completion_tokens for one in sums}
    return {
        name: sum(tokens.get(purpose, 0) for purpose in purposes)
        for name, purposes in BUDGETS.items()
    }


async def _is_news(app: App, name: str) -> bool:
    async with app.db.transaction() as tx:
        return await claim_alert(tx, f"budget.{name}", at=app.clock.now(), due_before=_today(app))


def _warning(name: str, spent: int, budget: int) -> str:
    return (
        f"今天的{BUDGET_WORDS[name]}已用 {spent:,} / {budget:,} token；"
        f"用完后这类调用要等到明天。可用 /设置 dailyTokenBudget 调整。"
    )


def _today(app: App) -> int:
    return day_start(app.clock.now(), app.config.timezone)
