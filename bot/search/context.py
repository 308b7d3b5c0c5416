"""Which messages around one that was found help to understand it.

Pure. See ``docs/search.md``, "Context".
"""

from collections.abc import Sequence

from bot.model import StoredMessage

PRIVATE_BEFORE, PRIVATE_BEHIND = 2, 1
SAME_SPEAKER = 2
"""So many messages of the same speaker, before as well as behind."""
SAME_SPEAKER_MS = 3 * 60_000
"""Later ones begin something else."""
REPLIES = 3

REACH_BACK, REACH_AHEAD = 4, 8
"""How much of the chat is looked at for this."""


def context(
    row_id: int, stretch: Sequence[StoredMessage], quoted: StoredMessage | None
) -> list[StoredMessage]:
    """Return the context of a message, oldest first.

    Args:
        row_id: which message.
        stretch: what was said around it, with it.
        quoted: what it quotes.
    """
    place = next(n for n, stored in enumerate(stretch) if stored.row_id == row_id)
    before, said, behind = stretch[:place], stretch[place], stretch[place + 1 :]
    if not said.message.chat.is_group:
        return [*before[-PRIVATE_BEFORE:], *behind[:PRIVATE_BEHIND]]
    replies = [one for one in behind if one.message.reply_to == said.message.platform_id]
    chosen = [
        *([quoted] if quoted is not None else []),
        *_same_speaker(said, list(reversed(before))),
        *_same_speaker(said, behind),
        *replies[:REPLIES],
    ]
    by_row = {stored.row_id: stored for stored in chosen}
    return sorted(by_row.values(), key=lambda one: (one.message.sent_at, one.row_id))


def _same_speaker(said: StoredMessage, others: Sequence[StoredMessage]) -> list[StoredMessage]:
    """Return what the same person said shortly before or behind, the nearest first."""
    sender, last, found = said.message.sender.user_id, said, list[StoredMessage]()
    for other in others:
        if abs(other.message.sent_at - last.message.sent_at) > SAME_SPEAKER_MS:
            break
        if other.message.sender.user_id == sender:
            found.append(other)
            last = other
    return found[:SAME_SPEAKER]
