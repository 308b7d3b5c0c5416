"""Tools on the stage: a turn that somebody's message begins, and what a tool gives it."""

from collections.abc import Iterable
from itertools import count
from typing import Any

from bot.conversation.floor import Question
from bot.conversation.tools import ToolOutput
from bot.model import Chat, Message, StoredMessage
from bot.scene import read_scene
from bot.store.messages import messages_by_rows
from bot.tools.kit import toolbox
from bot.tools.surroundings import Surroundings
from tests.store.rows import own, said, store
from tests.verbs.stage import BOT, FISH, GROUP, OTHER_GROUP, Stage

HERE = Chat(str(BOT), "group", str(GROUP))
THERE = Chat(str(BOT), "group", str(OTHER_GROUP))
ALONE = Chat(str(BOT), "private", str(FISH))

_ids = count(1)


def spoken(stage: Stage, text: str, chat: Chat = HERE, by: int = FISH, **fields: Any) -> Message:
    """Return a message of now that nobody has stored yet."""
    given = {"at": stage.now, "chat": chat, "id": f"t{next(_ids)}", **fields}
    if by == BOT:
        return own(text, **given)
    return said(text, by=str(by), **given)


async def stored(stage: Stage, *messages: Message) -> list[int]:
    """Store messages and return their rows."""
    receipts = await store(stage.app.db, *messages, pending=False)
    return [receipt.row_id for receipt in receipts]


async def kept(stage: Stage, row_ids: Iterable[int]) -> tuple[StoredMessage, ...]:
    return tuple(await messages_by_rows(stage.app.db, row_ids))


async def turn(
    stage: Stage,
    text: str = "问一下",
    chat: Chat = HERE,
    by: int = FISH,
    *,
    shown: Iterable[int] = (),
    **fields: Any,
) -> Surroundings:
    """Let somebody ask something, and return what the tools of that turn may know."""
    return await _turn(stage, [spoken(stage, text, chat, by, **fields)], shown)


async def question(stage: Stage, *texts: str) -> Surroundings:
    """Let fish ask something in several messages."""
    return await _turn(stage, [spoken(stage, text) for text in texts], ())


async def _turn(stage: Stage, said: list[Message], shown: Iterable[int]) -> Surroundings:
    rows = await stored(stage, *said)
    messages = await kept(stage, rows)
    chat, sender_id = said[0].chat, said[0].sender.user_id
    asked = Question(chat, sender_id, messages, True, stage.now, stage.now)
    scene = await read_scene(stage.app, asked)
    return Surroundings(stage.app, scene, frozenset([*rows, *shown]))


async def output(surroundings: Surroundings, name: str, /, **arguments: Any) -> ToolOutput:
    """Return what a tool gives a turn."""
    [tool] = [tool for tool in toolbox(surroundings.app) if tool.spec.name == name]
    given = await tool.run(surroundings, arguments)
    return ToolOutput(given) if isinstance(given, str) else given


async def use(surroundings: Surroundings, name: str, /, **arguments: Any) -> str:
    """Return the text that a tool gives a turn."""
    return (await output(surroundings, name, **arguments)).text
