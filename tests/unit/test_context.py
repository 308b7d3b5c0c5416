"""Context: which messages around one that was found are shown with it."""

from dataclasses import replace

from bot.model import Chat, Message, Sender, StoredMessage
from bot.search.context import SAME_SPEAKER, SAME_SPEAKER_MS, context

GROUP = Chat("10001", "group", "20001")
PRIVATE = Chat("10001", "private", "30001")
NOON = 1_790_000_000_000
MINUTE = 60_000


def said(row: int, by: str, chat: Chat = GROUP, *, at: int | None = None, **fields: object):
    """Return a message; they follow one another by seconds."""
    moment = NOON + row * 1_000 if at is None else at
    message = Message(
        chat=chat,
        platform_id=f"m{row}",
        sender=Sender(by),
        direction="inbound",
        sent_at=moment,
        received_at=moment,
        local_date="2026-09-21",
        segments=(),
        text=f"话{row}",
    )
    return StoredMessage(row, replace(message, **fields))  # pyright: ignore[reportArgumentType]


def rows(found: list[StoredMessage]) -> list[int]:
    return [one.row_id for one in found]


def test_in_private_two_before_and_one_behind():
    stretch = [said(n, "30001", PRIVATE) for n in range(1, 8)]
    assert rows(context(4, stretch, None)) == [2, 3, 5]


def test_at_the_beginning_and_the_end_there_is_less():
    stretch = [said(n, "30001", PRIVATE) for n in (1, 2)]
    assert rows(context(1, stretch, None)) == [2]
    assert rows(context(2, stretch, None)) == [1]


def test_in_a_group_what_the_same_speaker_says_shortly_before_and_behind():
    stretch = [
        said(1, "30002"),
        said(2, "30001"),
        said(3, "30002"),
        said(4, "30001"),
        said(5, "30003"),
        said(6, "30001"),
    ]
    assert rows(context(4, stretch, None)) == [2, 6]


def test_what_the_same_speaker_says_later_is_something_else():
    later = NOON + SAME_SPEAKER_MS + 2_000
    stretch = [said(1, "30001"), said(2, "30001", at=later)]
    assert rows(context(1, stretch, None)) == []


def test_a_speaker_who_goes_on_is_shown_for_a_few_messages():
    stretch = [said(n, "30001") for n in range(1, 10)]
    assert len(context(1, stretch, None)) == SAME_SPEAKER


def test_in_a_group_what_it_quotes_and_what_quotes_it():
    quoted = said(1, "30002", at=NOON - 60 * MINUTE)
    stretch = [said(5, "30001"), said(6, "30003"), said(7, "30004", reply_to="m5")]
    assert rows(context(5, stretch, quoted)) == [1, 7]


def test_nothing_is_shown_twice():
    stretch = [said(5, "30001"), said(6, "30001", reply_to="m5")]
    assert rows(context(6, stretch, stretch[0])) == [5]
    assert rows(context(5, stretch, None)) == [6]
