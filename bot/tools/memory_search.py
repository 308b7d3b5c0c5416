"""memory_search: what of memory this turn may read and has not been shown."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from bot.conversation.tokens import estimator
from bot.conversation.tools import ToolOutput, ToolSpec
from bot.errors import ToolError
from bot.inject import recall_pack
from bot.memory.pack import TokenBudget
from bot.memory.policy import policy
from bot.prefetch import Recall, pack_of, related
from bot.store.entry_search import evidence
from bot.store.snapshots import recollection
from bot.tools.arguments import Arguments, read, schema_of
from bot.tools.surroundings import Surroundings

BUDGET_TOKENS = 1_200
"""What is found may cost this much."""

LOOKED_AT = 24
"""So many entries are weighed, the best by their words, and as many by their meaning."""


class Asked(Arguments):
    """What a model may ask."""

    query: str = Field(min_length=1, max_length=200)


class MemorySearch:
    """Looks into memory by the rule of every turn: what its sender may read here."""

    spec = ToolSpec(
        "memory_search",
        "在你的长期记忆里搜索（提问者本人的，和本群的）。上面已经显示的不再列出。",
        schema_of(Asked),
    )
    timeout_seconds = 15.0
    operators_only = False

    async def run(
        self, surroundings: Surroundings, arguments: Mapping[str, Any]
    ) -> str | ToolOutput:
        """Return entries, one a line, with their numbers."""
        asked = read(Asked, arguments)
        app, scene = surroundings.app, surroundings.scene
        if not scene.settings.memory_enabled:
            raise ToolError("记忆已关闭。")
        sender_id = scene.question.sender_id
        found = await related(app, scene.chat, sender_id, asked.query, LOOKED_AT)
        recall = Recall(policy(scene.settings.memory_policy), app.config.timezone, scene.now)
        budget = TokenBudget(BUDGET_TOKENS, estimator(scene.settings.token_estimator))
        packed = pack_of(found, recall, budget, shown=await _shown(surroundings))
        if not packed.lines:
            return "没有找到。"
        # The answer and what is kept of it rest on these: a recall has to reach both.
        rows = await evidence(app.db, packed.row_ids)
        return ToolOutput(packed.render(), tuple(rows))


async def _shown(surroundings: Surroundings) -> frozenset[int]:
    """Return the rows of the entries that the prompt of this turn shows."""
    app, scene = surroundings.app, surroundings.scene
    known = await recollection(
        app.db,
        scene.chat,
        scene.question.sender_id,
        cross_group=scene.settings.memory_member_cross_group,
    )
    kept = (one for one in known.kept.values() if not one.stale)
    shown = frozenset(row for one in kept for row in one.shown)
    return shown.union(recall_pack(app, scene, shown).row_ids)
