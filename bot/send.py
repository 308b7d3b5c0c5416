"""Send: through the account's queue, then into the record."""

import hashlib

from bot.app import App
from bot.clock import local_date
from bot.model import Chat, Message, MessageKind, Segment, Sender
from bot.onebot.render import render
from bot.onebot.segments import reply_segment, text_segment
from bot.platform.outbox import Before, Letter, nothing
from bot.store.ingest import Arrival


async def send(app: App, letter: Letter, *, kind: MessageKind = "chat") -> int:
    """Send a letter when its time has come and return the row of the message it became.

    Args:
        app: the running program.
        letter: what to send, made of segments that we built.
        kind: ``chat`` for answers of the model to those who are recorded, ``notice`` for all else.

    Raises:
        SendError: it did not go out, or it is not known whether it did.
    """
    platform_id = await app.outbox.send(letter)
    segments = letter.segments or tuple(text_segment(text) for text in letter.nodes)
    return await record_own(app, letter.chat, segments, platform_id, kind)


async def record_own(
    app: App,
    chat: Chat,
    segments: tuple[Segment, ...],
    platform_id: str,
    kind: MessageKind,
) -> int:
    """Keep a message that the account has just sent and return its row."""
    now = app.clock.now()
    # Clients give whole seconds, so an own message does too: else it would stand after all that
    # people say within its second.
    sent_at = now // 1000 * 1000
    text = render(segments, {})
    message = Message(
        chat=chat,
        platform_id=platform_id or _made_up_id(chat, now, text),
        sender=Sender(chat.bot_id),
        direction="outbound",
        sent_at=sent_at,
        received_at=now,
        local_date=local_date(sent_at, app.config.timezone),
        segments=segments,
        text=text,
        kind=kind,
    )
    receipt = await app.arrivals.add(Arrival(message, pending=False))
    return receipt.row_id


def _made_up_id(chat: Chat, at: int, text: str) -> str:
    digest = hashlib.sha1(f"{chat.bot_id} {chat} {at} {text}".encode(), usedforsecurity=False)
    return f"x{digest.hexdigest()[:24]}"


def quote_of(message: Message) -> tuple[Segment, ...]:
    """Return what quotes a message in front of an answer: nothing in private chats, or where the
    platform gave no id."""
    can_quote = message.chat.is_group and message.platform_id.lstrip("-").isdecimal()
    return (reply_segment(message.platform_id),) if can_quote else ()


async def send_notice(
    app: App,
    to: Message | Chat,
    text: str,
    *,
    quoting: bool = True,
    before: Before = nothing,
) -> None:
    """Send a notice of the bot's own: an answer to a command, an apology, an alert.

    Args:
        app: the running program.
        to: the message that it answers, or just a chat.
        text: one message.
        quoting: quote the message that it answers, in groups.
        before: awaited right before it goes out; what it raises stops that.

    Raises:
        SendError: it did not go out, or it is not known whether it did.
    """
    words = (text_segment(text),)
    if isinstance(to, Chat):
        letter = Letter(to, words, before=before)
    else:
        quote = quote_of(to) if quoting else ()
        letter = Letter(
            to.chat, (*quote, *words), temporary_group=to.temporary_group, before=before
        )
    await send(app, letter, kind="notice")
