"""Note: what notices and requests say about people, groups and the account.

See ``docs/onebot.md``, "Events".
"""

from functools import partial

from loguru import logger

from bot.alert import alert
from bot.app import App
from bot.model import Chat
from bot.onebot.events import (
    AccountOffline,
    AdminChanged,
    BotJoined,
    BotRemoved,
    CardChanged,
    Connected,
    Event,
    FriendAdded,
    GroupRenamed,
    Ignored,
    MemberJoined,
    MemberLeft,
    MessageArrived,
    Muted,
    Recalled,
    RequestArrived,
    TitleChanged,
)
from bot.store.chats import (
    Request,
    account_offline,
    card_changed,
    ensure_chat,
    keep_request,
    member_joined,
    member_left,
    rename_chat,
    role_changed,
    role_in_group,
    set_muted,
    set_removed,
    title_changed,
)
from bot.text import display_name

_AboutMembers = CardChanged | TitleChanged | MemberJoined | MemberLeft | AdminChanged | GroupRenamed

REQUEST_WORDS = {
    "friend": "好友申请",
    "group_add": "加群申请",
    "group_invite": "入群邀请",
}


async def note(app: App, event: Event) -> None:
    """Keep what a notice or a request says."""
    match event:
        case BotRemoved() | BotJoined() | Muted():
            await _note_presence(app, event)
        case AccountOffline():
            await _note_offline(app, event)
        case RequestArrived():
            await _note_request(app, event)
        case FriendAdded() | Connected() | Ignored() | MessageArrived() | Recalled():
            logger.debug("nothing to keep of {}", type(event).__name__)
        case _:
            await _note_members(app, event)


async def _note_presence(app: App, event: BotRemoved | BotJoined | Muted) -> None:
    is_silent = await app.lasting.keep(partial(_keep_presence, app, event, app.clock.now()))
    if is_silent:
        app.floor.silence(event.chat)
        logger.info("silent in {}: {}", event.chat, type(event).__name__)


async def _keep_presence(app: App, event: BotRemoved | BotJoined | Muted, now: int) -> bool:
    """Keep where the account is and may speak; say whether it may not any more."""
    if isinstance(event, Muted) and not await _concerns_bot(app, event):
        return False
    async with app.db.transaction() as tx:
        await ensure_chat(tx, event.chat, now)
        match event:
            case BotRemoved(chat):
                await set_removed(tx, chat, now)
            case BotJoined(chat):
                await set_removed(tx, chat, None)
            case Muted(chat, _, until):
                await set_muted(tx, chat, until or 0)
    if isinstance(event, Muted):
        app.access.muted(event.chat, event.until or 0)
    return isinstance(event, BotRemoved) or (isinstance(event, Muted) and bool(event.until))


async def _concerns_bot(app: App, event: Muted) -> bool:
    if not event.until and not event.user_id:
        # Whoever has become an admin meanwhile may speak as well.
        return True
    if event.user_id:
        return event.user_id == event.chat.bot_id
    # A mute of the whole group does not bind its owner and admins.
    return await role_in_group(app.db, event.chat, event.chat.bot_id) not in ("owner", "admin")


async def _note_members(app: App, event: _AboutMembers) -> None:
    if _is_recorded(app, event.chat):
        await app.lasting.keep(partial(_keep_members, app, event, app.clock.now()))


async def _keep_members(app: App, event: _AboutMembers, now: int) -> None:
    async with app.db.transaction() as tx:
        match event:
            case CardChanged(chat, user_id, card):
                is_recorded = not app.opt_outs.has(chat.bot_id, user_id)
                await card_changed(tx, chat, user_id, card, now, in_history=is_recorded)
            case TitleChanged(chat, user_id, title):
                await title_changed(tx, chat, user_id, title, now)
            case MemberJoined(chat, user_id, at):
                await member_joined(tx, chat, user_id, at)
            case MemberLeft(chat, user_id, _, at):
                await member_left(tx, chat, user_id, at)
            case AdminChanged(chat, user_id, is_admin):
                await role_changed(tx, chat, user_id, "admin" if is_admin else "member", now)
            case GroupRenamed(chat, name):
                await ensure_chat(tx, chat, now)
                await rename_chat(tx, chat, name)


def _is_recorded(app: App, chat: Chat) -> bool:
    access = app.access.of(chat)
    if app.settings.general.group_access == "approved":
        return access == "enabled"
    return access != "disabled"


async def _note_offline(app: App, event: AccountOffline) -> None:
    app.accounts.went_offline(event.bot_id)
    await app.lasting.keep(partial(_keep_offline, app, event.bot_id, app.clock.now()))
    reason = display_name(event.reason, "没有说明", 120)
    text = f"账号 {event.bot_id} 已掉线：{reason}。请到 OneBot 客户端重新登录。"
    await app.errands.run(alert(app, text))


async def _keep_offline(app: App, bot_id: str, now: int) -> None:
    async with app.db.transaction() as tx:
        await account_offline(tx, bot_id, now)


async def _note_request(app: App, event: RequestArrived) -> None:
    request, is_new = await app.lasting.keep(partial(_keep_request, app, event, app.clock.now()))
    if is_new:
        where = f"，群 {request.group_id}" if request.group_id else ""
        comment = display_name(request.comment, "（无）", 120)
        text = (
            f"{REQUEST_WORDS[request.kind]} #{request.id}：来自 {request.user_id}{where}，"
            f"附言：{comment}\n发送 /同意 {request.id} 表示同意，不理会即忽略。"
        )
        await app.errands.run(alert(app, text, bot_id=event.bot_id))


async def _keep_request(app: App, event: RequestArrived, now: int) -> tuple[Request, bool]:
    async with app.db.transaction() as tx:
        return await keep_request(
            tx,
            event.bot_id,
            event.kind,
            event.flag,
            user_id=event.user_id,
            group_id=event.group_id,
            comment=event.comment,
            at=now,
        )
