"""The order of messages within a chat; see ``docs/onebot.md``, "Quirks"."""

from collections.abc import Iterable
from itertools import groupby

from bot.model import StoredMessage


def in_order(messages: Iterable[StoredMessage]) -> list[StoredMessage]:
    """Return messages by the time they were sent, then by sequence, then by row.

    Sequences count only between two rows that both have one: within one moment the rows stand
    by their id, and those with a sequence share out their places among themselves.
    """
    by_row = sorted(messages, key=lambda stored: (stored.message.sent_at, stored.row_id))
    ordered: list[StoredMessage] = []
    for _, moment in groupby(by_row, key=lambda stored: stored.message.sent_at):
        ordered.extend(_one_moment(list(moment)))
    return ordered


def _one_moment(messages: list[StoredMessage]) -> list[StoredMessage]:
    numbered = [stored for stored in messages if stored.message.sequence is not None]
    by_sequence = iter(sorted(numbered, key=lambda s: (s.message.sequence or 0, s.row_id)))
    return [s if s.message.sequence is None else next(by_sequence) for s in messages]
