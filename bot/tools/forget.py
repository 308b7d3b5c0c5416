"""forget: find what the sender may have forgotten, and say how they do it. Forgets nothing."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from bot.conversation.tools import ToolOutput, ToolSpec
from bot.errors import ToolError
from bot.forget import Found, group_entry, own_entry
from bot.model import entry_number
from bot.prefetch import fitting
from bot.tools.arguments import Arguments, read, schema_of
from bot.tools.surroundings import Surroundings

LOOKED_AT = 8
PROPOSED = 3
"""More entries than this are not proposed at once."""

UNKNOWN = "没有找到提问者可以忘记的记忆。"


class Asked(Arguments):
    """What a model may ask."""

    id: str = Field("", max_length=16, description="记忆编号，如 00a2")
    query: str = Field("", max_length=200, description="不知道编号时：要忘记的内容")


class Forget:
    """Proposes; the person confirms with the command, by the rights of the command."""

    spec = ToolSpec(
        "forget",
        "提问者想让你忘记某条记忆时用。只会找出那条记忆，并给出本人要发送的命令；"
        "把命令告诉对方，不要说已经忘了。",
        schema_of(Asked),
    )
    timeout_seconds = 15.0
    operators_only = False

    async def run(
        self, surroundings: Surroundings, arguments: Mapping[str, Any]
    ) -> str | ToolOutput:
        """Return the entries that may be meant, each with the command that forgets it."""
        asked = read(Asked, arguments)
        if bool(asked.id) == bool(asked.query):
            raise ToolError("参数不对。id 和 query 要给其中一个")
        if surroundings.scene.question.messages[-1].message.sender.anonymous:
            return UNKNOWN
        if asked.id:
            found = await _numbered(surroundings, asked.id)
        else:
            found = await _described(surroundings, asked.query)
        if not found:
            return UNKNOWN
        start = next((s for s in surroundings.app.config.command_start if s), "")
        is_group = surroundings.scene.chat.is_group
        lines = [_line(one, start, is_group) for one in found]
        rows = [row for one in found for proof in one.entry.proofs for row in proof]
        head = "还没有忘记。请本人发送下面的命令确认："
        return ToolOutput("\n".join((head, *lines)), tuple(dict.fromkeys(rows)))


async def _numbered(surroundings: Surroundings, label: str) -> list[Found]:
    """Return what a number may mean: the sender's own entry, and in a group the group's."""
    number = entry_number(label)
    if number is None:
        raise ToolError("参数不对。id 是 # 后面的编号")
    return await _forgettable(surroundings, number)


async def _forgettable(surroundings: Surroundings, number: int) -> list[Found]:
    app, chat = surroundings.app, surroundings.scene.chat
    user_id = surroundings.scene.question.sender_id
    found = [await own_entry(app, chat, user_id, number)]
    if chat.is_group:
        found.append(await group_entry(app, chat, user_id, number, chat.id))
    return [one for one in found if one]


async def _described(surroundings: Surroundings, query: str) -> list[Found]:
    """Return what fits a description best, of what the sender may have forgotten."""
    scene = surroundings.scene
    sender_id = scene.question.sender_id
    fits = await fitting(surroundings.app, scene.chat, sender_id, query, LOOKED_AT)
    found: list[Found] = []
    for fit in fits:
        same = await _forgettable(surroundings, fit.number)
        found += [one for one in same if one.entry.text == fit.text and one not in found]
    return found[:PROPOSED]


def _line(found: Found, start: str, is_group: bool) -> str:
    whose = ("群" if found.is_of_group else "我") if is_group else ""
    text = found.entry.text if found.is_shown else "（在这里不能显示）"
    return f"{start}忘记 {whose}#{found.entry.label} — {text}"
