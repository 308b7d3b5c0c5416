"""member_info: what everybody in a group can see of a member. Never what is remembered."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from bot.app import App
from bot.clock import local_date
from bot.conversation.tools import ToolSpec
from bot.errors import SendError, ToolError
from bot.model import Chat
from bot.onebot.values import integer
from bot.store.members import Membership, called_in, member_of, members_named
from bot.text import display_name, json_line
from bot.tools.arguments import Arguments, read, schema_of
from bot.tools.surroundings import Surroundings

FOUND = 5
"""So many members are told of at once."""

NAMES = 8
"""So many of the names that somebody has or had."""

ROLES = {"owner": "群主", "admin": "管理员", "member": "成员", "": "未知"}
UNKNOWN = "本群没有这个成员。"


class Asked(Arguments):
    """What a model may ask."""

    user_id: str = Field("", max_length=20, description="QQ 号")
    name: str = Field("", max_length=64, description="昵称或群名片，可以是一部分")


class MemberInfo:
    """Tells names, card, role and when somebody joined; in private of the person alone."""

    spec = ToolSpec(
        "member_info",
        "查本群成员的昵称、群名片、曾用名、身份和入群日期；都不给时查提问者本人。",
        schema_of(Asked),
    )
    timeout_seconds = 15.0
    operators_only = False

    async def run(self, surroundings: Surroundings, arguments: Mapping[str, Any]) -> str:
        """Return members, one JSON object a line."""
        asked = read(Asked, arguments)
        app, chat = surroundings.app, surroundings.scene.chat
        sender_id = surroundings.scene.question.sender_id
        if not chat.is_group:
            return await _oneself(surroundings, asked)
        if asked.name and not asked.user_id:
            found = await members_named(app.db, chat, asked.name, FOUND)
        else:
            one = await member_of(app.db, chat, asked.user_id or sender_id)
            found = [one] if one else []
        if not found:
            return UNKNOWN
        joined = await _joined_at(app, chat, found[0]) if len(found) == 1 else None
        return "\n".join([await _line(app, chat, one, joined) for one in found])


async def _oneself(surroundings: Surroundings, asked: Asked) -> str:
    chat = surroundings.scene.chat
    if asked.name or asked.user_id not in ("", chat.id):
        raise ToolError("私聊里只能查对方本人。")
    names = await called_in(surroundings.app.db, chat, chat.id, NAMES)
    return json_line({"userId": chat.id, "names": [display_name(n, chat.id) for n in names]})


async def _joined_at(app: App, chat: Chat, member: Membership) -> int | None:
    """Return when a member joined: as the account saw it, else as the platform says."""
    if member.joined_at is not None or member.left_at is not None:
        return member.joined_at
    try:
        answer = await app.accounts.platform(chat.bot_id).call(
            "get_group_member_info", group_id=int(chat.id), user_id=int(member.user_id)
        )
    except (SendError, ValueError):
        return None
    seconds = integer(answer.get("join_time")) if isinstance(answer, dict) else None
    is_past = seconds is not None and 0 < seconds * 1000 <= app.clock.now()
    return seconds * 1000 if is_past and seconds is not None else None


async def _line(app: App, chat: Chat, member: Membership, joined_at: int | None) -> str:
    # Of who has opted out, only what everybody sees today.
    is_recorded = not app.opt_outs.has(chat.bot_id, member.user_id)
    names = await called_in(app.db, chat, member.user_id, NAMES) if is_recorded else []
    zone = app.config.timezone
    at = joined_at or member.joined_at
    line: dict[str, object] = {
        "userId": member.user_id,
        "nickname": display_name(member.nickname, member.user_id),
        "card": display_name(member.card, ""),
        "role": ROLES.get(member.role, "未知"),
        "title": display_name(member.title, ""),
        "joined": local_date(at, zone) if at else "未知",
        "firstSeen": local_date(member.first_seen, zone),
        "names": [display_name(name, member.user_id) for name in names],
    }
    if member.left_at is not None:
        line["left"] = local_date(member.left_at, zone)
    return json_line({key: value for key, value in line.items() if value not in ("", [])})
