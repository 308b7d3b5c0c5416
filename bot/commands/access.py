"""Where the bot is present and whom it answers: 启用 停用 同意 拉黑 解除."""

from bot.commands.call import Call, Refusal
from bot.errors import SendError
from bot.model import Chat, Member
from bot.note import REQUEST_WORDS
from bot.notices import privacy_notice
from bot.store.chats import (
    Request,
    approve_request,
    open_request,
    open_requests,
)
from bot.text import display_name

MAX_ID_DIGITS = 18
"""More than any account has, and no more than the database can count."""

_KINDS = {"群": "group", "成员": "private"}


async def enable(call: Call) -> str:
    """启用: record and answer this chat, or one named by kind and id."""
    chat = _target(call)
    app = call.app
    await app.access.switch(chat, "enabled", by=call.caller_id, at=app.clock.now())
    return f"已启用{_shown(chat)}。\n{privacy_notice(app.reading_models)}"


async def disable(call: Call) -> str:
    """停用: neither record nor answer this chat, or one named by kind and id."""
    chat = _target(call)
    app = call.app
    await app.access.switch(chat, "disabled", by=call.caller_id, at=app.clock.now())
    app.floor.silence(chat)
    return f"已停用{_shown(chat)}：不再记录，也不再回应。发送 /启用 可恢复。"


def _target(call: Call) -> Chat:
    words = call.arguments.split()
    if not words:
        return call.chat
    if len(words) != 2 or words[0] not in _KINDS or not _is_id(words[1]):
        raise Refusal("用法：/启用、/启用 群 20001 或 /启用 成员 30001（/停用 同理）")
    return Chat(call.chat.bot_id, "group" if words[0] == "群" else "private", words[1])


def _is_id(word: str) -> bool:
    """Whether a word is a number as accounts, groups and requests have them."""
    return word.isascii() and word.isdecimal() and len(word) <= MAX_ID_DIGITS


def _shown(chat: Chat) -> str:
    return f"群 {chat.id}" if chat.is_group else f"与 {chat.id} 的私聊"


async def block_member(call: Call) -> str:
    """拉黑: answer a person no more."""
    member = _member(call, "拉黑")
    if call.app.is_operator(member.user_id):
        raise Refusal("操作者不能被拉黑。")
    if call.app.accounts.is_known(member.user_id):
        raise Refusal("这是机器人自己的账号。")
    access = call.app.access
    is_new = await access.block(member, by=call.caller_id, at=call.app.clock.now())
    return f"已拉黑 {member.user_id}，不再回应。" if is_new else f"{member.user_id} 已在黑名单里。"


async def unblock_member(call: Call) -> str:
    """解除: answer a person again."""
    member = _member(call, "解除")
    was_blocked = await call.app.access.unblock(member)
    return f"已解除 {member.user_id}。" if was_blocked else f"{member.user_id} 不在黑名单里。"


def _member(call: Call, name: str) -> Member:
    user_id = call.arguments.strip()
    if not _is_id(user_id):
        raise Refusal(f"用法：/{name} 30001（QQ 号，或直接 @ 对方）")
    return Member(call.chat.bot_id, user_id)


async def approve(call: Call) -> str:
    """同意: accept a friend request or an invitation; without a number, list the open ones."""
    app, bot_id = call.app, call.chat.bot_id
    number = call.arguments.strip().lstrip("#")
    if not number:
        return _listed(await open_requests(app.db, bot_id))
    if not _is_id(number):
        raise Refusal("用法：/同意 编号；不带编号时列出等待处理的申请")
    request = await open_request(app.db, bot_id, int(number))
    if request is None:
        raise Refusal(f"没有编号为 {number} 的待处理申请。")
    try:
        await _accept(call, request)
    except SendError as error:
        raise Refusal(f"QQ 没有接受这次同意：{display_name(str(error), '没有说明', 80)}") from error
    async with app.db.transaction() as tx:
        await approve_request(tx, request.id, by=call.caller_id, at=app.clock.now())
    return f"已同意{REQUEST_WORDS[request.kind]} #{request.id}（{request.user_id}）。"


async def _accept(call: Call, request: Request) -> None:
    platform = call.app.accounts.platform(request.bot_id)
    if request.kind == "friend":
        await platform.call("set_friend_add_request", flag=request.flag, approve=True)
        return
    sub_type = request.kind.removeprefix("group_")
    await platform.call("set_group_add_request", flag=request.flag, sub_type=sub_type, approve=True)


def _listed(requests: list[Request]) -> str:
    if not requests:
        return "没有等待处理的申请。"
    lines = [
        f"#{request.id} {REQUEST_WORDS[request.kind]}：{request.user_id}"
        + (f"，群 {request.group_id}" if request.group_id else "")
        + (f"，附言：{display_name(request.comment, '', 60)}" if request.comment else "")
        for request in requests
    ]
    return "\n".join(("等待处理的申请：", *lines, "发送 /同意 编号 表示同意。"))
