"""chat_history: what was said in this chat, for whoever asks in it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import Field

from bot.clock import local_minute
from bot.conversation.moments import DAY_FORM, moment
from bot.conversation.order import in_order
from bot.conversation.tools import ToolOutput, ToolSpec
from bot.errors import ToolError
from bot.model import StoredMessage
from bot.search_messages import latest_messages, messages_around, search_messages
from bot.store.members import bearers, members_named
from bot.store.message_search import Window, keyword_hits
from bot.text import clipped, display_name, json_line
from bot.tools.arguments import Arguments, read, schema_of
from bot.tools.surroundings import Surroundings

BOT = "BOT"
"""What prompts call the bot account."""

NOTHING = "没有找到。已经在对话里的、撤回了的消息不会列出。"

WORDS_ALONE = "（这次只按字词找，没能按意思找）"

GLANCE_CHARS = 160
"""Of a message in a list so much is shown."""

READ_CHARS = 1_200
"""Of a message that is read."""

ALL_CHARS = 3_600
"""All lines together; what does not fit is told by number."""


class Asked(Arguments):
    """What a model may ask."""

    mode: Literal["list", "search", "read"] = Field(
        "list", description="list 列出最近的；search 按 query 搜索；read 看 id 前后或一段时间的全文"
    )
    match: Literal["semantic", "keyword"] = Field(
        "semantic", description="search 用：semantic 按意思；keyword 按原文，多个词用空格隔开"
    )
    query: str = Field("", max_length=200)
    id: int | str = Field("", description="read 用：消息 id")
    sender: str = Field("", max_length=64, description="发言人 QQ 号或名字，机器人是 BOT")
    since: str = Field("", max_length=32, description=DAY_FORM)
    until: str = Field("", max_length=32, description=DAY_FORM)
    limit: int = Field(16, ge=1, le=32)


@dataclass(frozen=True, slots=True)
class _Told:
    """Messages to be shown, the most important first."""

    messages: Sequence[StoredMessage]
    max_chars: int
    marked: frozenset[int] = frozenset()
    """Those that were found, where others stand beside them."""
    note: str = ""
    """What the model has to know beside."""


class ChatHistory:
    """Looks up messages of the chat in which it is called, and of no other."""

    spec = ToolSpec(
        "chat_history",
        "查本聊天以前的消息（只有本聊天；不含上面已显示的）。每行一条 JSON，id 可用于 mode=read。",
        schema_of(Asked),
    )
    timeout_seconds = 15.0
    operators_only = False

    async def run(
        self, surroundings: Surroundings, arguments: Mapping[str, Any]
    ) -> str | ToolOutput:
        """Return messages, one JSON object a line, oldest first."""
        asked = read(Asked, arguments)
        window = await _window(surroundings, asked)
        match asked.mode:
            case "list":
                told = await _listed(surroundings, asked, window, GLANCE_CHARS)
            case "read":
                told = await _read(surroundings, asked, window)
            case "search":
                told = await _searched(surroundings, asked, window)
        return _output(surroundings, told)


async def _window(surroundings: Surroundings, asked: Asked) -> Window:
    return Window(
        sender_id=await _sender_id(surroundings, asked.sender),
        since=_moment(surroundings, "since", asked.since),
        until=_moment(surroundings, "until", asked.until),
        hidden=surroundings.shown_rows,
        not_before=surroundings.scene.session.cleared_before,
    )


def _moment(surroundings: Surroundings, name: str, text: str) -> int | None:
    if not text:
        return None
    at = moment(text, surroundings.app.config.timezone, ends_day=name == "until")
    if at is None:
        raise ToolError(f"参数不对。{name} 要写成 {DAY_FORM}")
    return at


async def _sender_id(surroundings: Surroundings, sender: str) -> str | None:
    """Return whose messages are meant; a name must mean one member of this group."""
    chat = surroundings.scene.chat
    if not sender:
        return None
    if sender.upper() == BOT:
        return chat.bot_id
    if sender.isascii() and sender.isdecimal():
        return sender
    if not chat.is_group:
        raise ToolError("私聊里 sender 只能是对方的 QQ 号或 BOT。")
    db = surroundings.app.db
    ids = await bearers(db, chat, sender)
    # A part of a name will do where nobody bears it whole.
    ids = ids or [one.user_id for one in await members_named(db, chat, sender, 2)]
    if len(ids) != 1:
        raise ToolError("这个名字不是恰好一个人，请改用 QQ 号（可以先用 member_info 查）。")
    return ids[0]


async def _listed(
    surroundings: Surroundings, asked: Asked, window: Window, max_chars: int
) -> _Told:
    chat = surroundings.scene.chat
    found = await latest_messages(surroundings.app, chat, window, asked.limit)
    return _Told(_newest_first(found), max_chars)


async def _read(surroundings: Surroundings, asked: Asked, window: Window) -> _Told:
    wanted = str(asked.id).lstrip("#")
    if not wanted:
        return await _listed(surroundings, asked, window, READ_CHARS)
    if not (wanted.isascii() and wanted.isdecimal() and len(wanted) <= 18):
        raise ToolError("参数不对。id 是消息行里的数字")
    row_id = int(wanted)
    chat = surroundings.scene.chat
    # What stands around a line of the prompt may be read, though the line itself is not repeated.
    around = replace(window, hidden=window.hidden - {row_id})
    found = await messages_around(surroundings.app, chat, row_id, around)
    if not found:
        return _Told((), READ_CHARS)
    nearest = sorted(found, key=lambda stored: abs(stored.row_id - row_id))
    return _Told(nearest[: asked.limit], READ_CHARS, frozenset([row_id]))


async def _searched(surroundings: Surroundings, asked: Asked, window: Window) -> _Told:
    app, scene = surroundings.app, surroundings.scene
    if not asked.query:
        raise ToolError("参数不对。mode=search 要给 query")
    if asked.match == "keyword":
        words = asked.query.split()
        hits = await keyword_hits(app.db, scene.chat, words, window, asked.limit)
        return _Told(_newest_first(hits), GLANCE_CHARS)
    question, asker_id = asked.query, scene.question.sender_id
    found = await search_messages(app, scene.chat, asker_id, question, window, asked.limit)
    hits = [hit.stored for hit in found.hits]
    beside = [stored for hit in found.hits for stored in hit.context]
    marked = frozenset(hit.row_id for hit in hits) if beside else frozenset[int]()
    note = WORDS_ALONE if found.is_lexical_only else ""
    return _Told(_each_once([*hits, *beside]), GLANCE_CHARS, marked, note)


def _newest_first(messages: Iterable[StoredMessage]) -> list[StoredMessage]:
    return in_order(messages)[::-1]


def _each_once(messages: Iterable[StoredMessage]) -> list[StoredMessage]:
    return list({stored.row_id: stored for stored in messages}.values())


def _output(surroundings: Surroundings, told: _Told) -> ToolOutput:
    # Whoever looks messages up, what the prompt shows or hides is decided once more.
    hidden = surroundings.shown_rows
    seen = [s for s in told.messages if s.row_id not in hidden and not s.is_gone]
    lines: dict[int, str] = {}
    room = ALL_CHARS
    for stored in seen:
        line = _line(surroundings, stored, told)
        room -= len(line) + 1
        if room < 0:
            break
        lines[stored.row_id] = line
    if not lines:
        return ToolOutput(NOTHING + told.note)
    shown = [lines[stored.row_id] for stored in in_order(seen) if stored.row_id in lines]
    if left := len(seen) - len(lines):
        shown.append(f"（还有 {left} 条放不下，可以缩小范围再查）")
    if told.note:
        shown.append(told.note)
    return ToolOutput("\n".join(shown), tuple(lines))


def _line(surroundings: Surroundings, stored: StoredMessage, told: _Told) -> str:
    message = stored.message
    sender = message.sender
    is_bot = message.direction == "outbound"
    line: dict[str, object] = {
        "id": stored.row_id,
        "at": local_minute(message.sent_at, surroundings.app.config.timezone),
        "senderId": BOT if is_bot else sender.user_id,
        "senderName": display_name(sender.display_name, sender.user_id),
        "text": clipped(message.text, told.max_chars),
    }
    if stored.row_id in told.marked:
        line["match"] = True
    return json_line(line)
