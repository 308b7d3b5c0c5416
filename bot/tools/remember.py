"""remember: note what the turn's sender says of themselves, or of the group."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from bot.conversation.tools import ToolOutput, ToolSpec
from bot.errors import NotRemembered, ToolError
from bot.memory.wording import ENTRY_MAX_CHARS
from bot.remember import remember
from bot.tools.arguments import Arguments, read, schema_of
from bot.tools.surroundings import Surroundings


class Asked(Arguments):
    """What a model may ask."""

    text: str = Field(min_length=1, max_length=ENTRY_MAX_CHARS)
    about: Literal["me", "group"] = Field("me", description="me 提问者本人；group 本群")


class Remember:
    """Writes a note that rests on what the sender said in this turn; see ``bot/remember.py``."""

    spec = ToolSpec(
        "remember",
        "记下提问者刚才亲口说的、以后有用的事，一句话。不要记关于别人的事。",
        schema_of(Asked),
    )
    timeout_seconds = 15.0
    operators_only = False

    async def run(
        self, surroundings: Surroundings, arguments: Mapping[str, Any]
    ) -> str | ToolOutput:
        """Return the note as it was kept."""
        asked = read(Asked, arguments)
        question = surroundings.scene.question
        rows = tuple(stored.row_id for stored in question.messages)
        about = "sender" if asked.about == "me" else "group"
        try:
            kept = await remember(
                surroundings.app,
                question.chat,
                question.sender_id,
                rows,
                asked.text,
                about=about,
            )
        except NotRemembered as refused:
            raise ToolError(f"没有记：{refused}") from refused
        done = "记下了" if kept.is_new else "早就记着"
        return ToolOutput(f"{done} #{kept.label}：{kept.text}", rows)
