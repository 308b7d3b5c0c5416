"""The prompt of a turn: what is shown of a chat, as lines that nobody can forge.

See ``docs/architecture.md``, "The prompt of a turn". People's text enters only inside JSON
strings, one object per line.
"""

from collections.abc import Iterable, Sequence
from zoneinfo import ZoneInfo

from bot.clock import local_minute
from bot.model import StoredMessage, Turn, TurnLine, TurnPart
from bot.text import clipped, display_name, json_line

CONTEXT_LINES = 20
"""What was said since the turn before is shown up to this many lines."""

CONTEXT_CHARS = 500
"""Of each of those messages, and of a quote, so much is shown."""

QUESTION_CHARS = 4_000
"""Of a message to be answered, so much is shown."""

_HEADINGS: dict[TurnPart, str] = {
    "context": "【这之前聊天里说的】",
    "quote": "【下面的话所引用的消息】",
    "question": "【对你说的】",
}


def context_of(
    recent: Sequence[StoredMessage],
    turns: Sequence[Turn],
    question: Sequence[StoredMessage],
    cleared_before: int = 0,
    unseen: Sequence[Turn] = (),
) -> list[StoredMessage]:
    """Return what was said since the turn before, in the order of ``recent``.

    What the kept turns show, what is to be answered now, commands and notices are left out, and so
    is what was said up to ``cleared_before`` (UTC milliseconds). Of turns that the asker is not
    shown, ``unseen``, only what was asked and answered is left out, not the context that they had.
    """
    shown = {line.message_id for turn in turns for line in turn.lines}
    exchanged = (line for turn in unseen for line in turn.lines)
    shown |= {line.message_id for line in exchanged if line.part in ("question", "answer")}
    shown |= {stored.row_id for stored in question}
    since = max((turn.context_until for turn in turns), default=0)
    later = [
        stored
        for stored in recent
        if stored.row_id > since
        and stored.row_id not in shown
        and stored.message.kind == "chat"
        and stored.message.sent_at > cleared_before
    ]
    return later[-CONTEXT_LINES:]


def turn_lines(
    context: Iterable[StoredMessage],
    quotes: Iterable[StoredMessage],
    question: Iterable[StoredMessage],
    zone: ZoneInfo,
) -> tuple[TurnLine, ...]:
    """Return the lines of a new turn: context, then quotes, then what is to be answered."""
    parts: tuple[tuple[TurnPart, Iterable[StoredMessage], int], ...] = (
        ("context", context, CONTEXT_CHARS),
        ("quote", quotes, CONTEXT_CHARS),
        ("question", question, QUESTION_CHARS),
    )
    return tuple(
        TurnLine(stored.row_id, part, message_line(stored, zone, max_chars))
        for part, messages, max_chars in parts
        for stored in messages
    )


def message_line(stored: StoredMessage, zone: ZoneInfo, max_chars: int) -> str:
    """Return one message as one line of JSON."""
    message = stored.message
    sender = message.sender
    is_bot = message.direction == "outbound"
    return json_line(
        {
            "id": stored.row_id,
            "at": local_minute(message.sent_at, zone),
            "senderId": "BOT" if is_bot else sender.user_id,
            "senderName": display_name(sender.display_name, sender.user_id),
            "text": clipped(message.text, max_chars),
        }
    )


def question_text(lines: Iterable[TurnLine]) -> str:
    """Return the user message that the lines of a turn make."""
    by_part: dict[TurnPart, list[str]] = {}
    for line in lines:
        by_part.setdefault(line.part, []).append(line.text)
    return "\n".join(
        "\n".join((heading, *by_part[part]))
        for part, heading in _HEADINGS.items()
        if part in by_part
    )


def new_turn_text(lines: Iterable[TurnLine], tail: str) -> str:
    """Return the user message of a new turn, with a tail that later prompts do not show.

    The tail stands behind the context, so that all before it is the beginning of the next prompt as
    well, and before the question, which a model reads last.
    """
    lines = tuple(lines)
    context = [line for line in lines if line.part == "context"]
    rest = [line for line in lines if line.part != "context"]
    return "\n".join(part for part in (question_text(context), tail, question_text(rest)) if part)


def answer_text(lines: Iterable[TurnLine]) -> str:
    """Return the answer that a turn gave, empty if nothing of it is left."""
    return "\n\n".join(line.text for line in lines if line.part == "answer")
