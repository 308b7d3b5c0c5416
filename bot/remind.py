"""Remind: what somebody asked to be told is kept, and sent once when its time has come.

See ``docs/tools.md``, "Reminders".
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from functools import partial

import aiosqlite
from loguru import logger

from bot.app import App
from bot.conversation.blocked import blocked_word
from bot.conversation.reminders import (
    MAX_ATTEMPTS,
    MAX_OPEN,
    RETRY_MS,
    refusal,
    reminder_text,
)
from bot.errors import AccountOffline, SendDropped, SendError, SendRejected, ToolError
from bot.ingest import admits
from bot.memory.masking import masked
from bot.model import Chat, Message, Reminder
from bot.onebot.segments import at_segment, text_segment
from bot.platform.outbox import Letter
from bot.send import send
from bot.store.messages import row_as_it_is
from bot.store.reminders import (
    DueReminder,
    add_reminder,
    claim_reminder,
    due_reminders,
    end_reminder,
    next_due,
    put_off_reminder,
    settle_reminders,
)
from bot.text import single_line

AT_ONCE = 50
"""So many are sent in one look; the next goes on."""

OF_A_CHAT = 20
"""And so many of one chat, which takes no more in a minute, so that others do not wait for it."""


async def keep_reminder(
    app: App,
    chat: Chat,
    user_id: str,
    row_ids: Collection[int],
    *,
    due_at: int,
    text: str,
    begun_at: int,
) -> Reminder:
    """Keep a reminder for whoever asks for it.

    Args:
        app: the running program.
        chat: where it is asked, and will be sent.
        user_id: who asks.
        row_ids: the messages that ask for it; it goes with any of them.
        due_at: UTC milliseconds.
        text: what to say, as a model wrote it.
        begun_at: when the turn began.

    Raises:
        ToolError: it cannot be kept, and why.
    """
    now = app.clock.now()
    line = masked(single_line(text))
    if not line:
        raise ToolError("没有说要提醒什么。")
    if blocked_word(line, app.settings.of(chat).blocked_words):
        raise ToolError("这段文字里有不允许说的词。")
    if reason := refusal(due_at, now):
        raise ToolError(reason)
    async with app.db.transaction() as tx:
        added = await add_reminder(
            tx,
            chat,
            user_id,
            row_ids,
            due_at=due_at,
            text=line,
            begun_at=begun_at,
            at=now,
            max_open=MAX_OPEN,
        )
    if added == "full":
        raise ToolError(f"每人最多 {MAX_OPEN} 个提醒，请先用 /提醒 取消一些。")
    if added == "gone":
        raise ToolError("要求提醒的消息已经撤回了。")
    app.alarms.set(due_at)
    return Reminder(added, chat, user_id, due_at, line)


async def send_due(app: App) -> int | None:
    """Send every reminder whose time has come, and return when the next is due.

    Those of accounts that cannot send now, and for chats in which the account is muted, wait.

    Raises:
        StoreError: what became of one could not be kept; it is not sent again.
    """
    now, able = app.clock.now(), app.accounts.connected
    due = await due_reminders(app.db, able, now, AT_ONCE, of_a_chat=OF_A_CHAT)
    # Each to its end, whatever becomes of another: what is being sent is not given up halfway.
    done = await asyncio.gather(*(_send(app, one) for one in due), return_exceptions=True)
    for failure in filter(None, done):
        raise failure
    return await next_due(app.db, able, now)


async def settle(app: App) -> None:
    """Take as sent what the process that died was sending: nobody is reminded twice."""
    async with app.db.transaction() as tx:
        await settle_reminders(tx, before=app.started_at, at=app.clock.now())


async def _send(app: App, due: DueReminder) -> None:
    reminder = due.reminder
    # Whoever opts out still wanted to be reminded: what they said is gone then, and its row is not.
    asked = await row_as_it_is(app.db, due.source_row)
    text = reminder_text(reminder, app.clock.now())
    reason = _obstacle(app, due, asked.message, text) if asked else "what asked for it is gone"
    if reason or asked is None:
        logger.info("reminder {} is dropped: {}", reminder.id, reason)
        async with app.db.transaction() as tx:
            await end_reminder(tx, reminder.id, "dropped", at=app.clock.now(), error=reason)
        return
    try:
        # Nor is what they asked for before they were recorded again anybody else's to read.
        is_recorded = not app.opt_outs.has(reminder.chat.bot_id, reminder.user_id)
        kind = "chat" if is_recorded and not asked.is_gone else "notice"
        row_id = await send(app, _letter(app, reminder, asked.message, text), kind=kind)
    except SendError as error:
        await _failed(app, due, error)
        return
    await _note(app, partial(_sent, app, reminder.id, row_id))


async def _sent(app: App, reminder_id: int, row_id: int, tx: aiosqlite.Connection) -> None:
    await end_reminder(tx, reminder_id, "sent", at=app.clock.now(), sent_row=row_id)


async def _note(app: App, write: Callable[[aiosqlite.Connection], Awaitable[None]]) -> None:
    """Keep what became of a reminder, however long that has to wait to be written: one that stays
    ``sending`` is taken as sent, though the platform may have refused it."""

    async def attempt() -> None:
        async with app.db.transaction() as tx:
            await write(tx)

    await app.patience.until_done(attempt)


def _letter(app: App, reminder: Reminder, asked: Message, text: str) -> Letter:
    is_group = reminder.chat.is_group
    whom = (at_segment(reminder.user_id), text_segment(" ")) if is_group else ()
    return Letter(
        reminder.chat,
        (*whom, text_segment(text)),
        temporary_group=asked.temporary_group,
        urgent=True,
        before=partial(_claim, app, reminder.id),
    )


def _obstacle(app: App, due: DueReminder, asked: Message, text: str) -> str:
    """Return why a reminder is never sent, or nothing."""
    if due.removed or due.has_left:
        return "the chat was left"
    if due.blocked:
        return "the person is blocked"
    if not admits(app, asked):
        return "the chat is not served"
    words = app.settings.of(due.reminder.chat).blocked_words
    return "blockedWords" if blocked_word(text, words) else ""


async def _claim(app: App, reminder_id: int) -> None:
    """Note, right before the call, that it is being sent: whatever happens then, it is not sent
    again.

    Raises:
        SendDropped: it was cancelled, taken back or sent meanwhile.
    """
    async with app.db.transaction() as tx:
        is_ours = await claim_reminder(tx, reminder_id, app.clock.now())
    if not is_ours:
        raise SendDropped("the reminder is not to be sent any more")


async def _failed(app: App, due: DueReminder, error: SendError) -> None:
    """Keep what became of a reminder that did not go out, or may not have."""
    logger.warning("reminder {}: {}: {}", due.reminder.id, type(error).__name__, error)
    await _note(app, partial(_not_sent, due, error, app.clock.now()))


async def _not_sent(due: DueReminder, error: SendError, now: int, tx: aiosqlite.Connection) -> None:
    reminder_id, cause = due.reminder.id, type(error).__name__
    match error:
        case SendDropped():
            pass
        case AccountOffline():
            await put_off_reminder(tx, reminder_id, next_at=now, failed=False, error=cause)
        case SendRejected() if due.attempts + 1 < MAX_ATTEMPTS:
            later = now + RETRY_MS
            await put_off_reminder(tx, reminder_id, next_at=later, failed=True, error=cause)
        case SendRejected():
            await end_reminder(tx, reminder_id, "failed", at=now, error=cause)
        case _:
            # It may have been sent.
            await end_reminder(tx, reminder_id, "sent", at=now, error=cause)
