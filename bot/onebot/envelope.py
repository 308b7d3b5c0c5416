"""What every event carries: the account it came to and its moment."""

from collections.abc import Mapping
from dataclasses import dataclass

from bot.errors import EventError
from bot.model import Chat
from bot.onebot.values import account_text, integer, mapping, name_text

LATEST_AT = 4_102_444_800_000
"""Midnight of 2100-01-01 in UTC milliseconds: a later time in an event is a mistake."""

_FIRST_MILLISECONDS = 100_000_000_000
"""Greater numbers are milliseconds, others seconds: ``docs/onebot.md``, "Quirks"."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """One raw event with its account and its moment already read."""

    raw: Mapping[str, object]
    bot_id: str
    at: int
    """When it happened, UTC milliseconds; ``received_at`` if the event does not say."""
    received_at: int
    """UTC milliseconds."""

    def word(self, key: str) -> str:
        """Return a short text field, or ``""``."""
        return name_text(self.raw.get(key))

    def account(self, *keys: str) -> str:
        """Return the first known id under ``keys``, or ``""``; ``0`` is not known."""
        ids = (account_text(self.raw.get(key)) for key in keys)
        return next(filter(None, ids), "")

    def needed_account(self, *keys: str) -> str:
        """Return the first known id under ``keys``.

        Raises:
            EventError: none is known.
        """
        if user_id := self.account(*keys):
            return user_id
        raise EventError(f"{self.kind}: no usable {' or '.join(keys)}")

    def group(self, *keys: str) -> Chat:
        """Return the group the event is about.

        Raises:
            EventError: its id is missing.
        """
        return Chat(self.bot_id, "group", self.needed_account("group_id", *keys))

    def is_self(self, user_id: str) -> bool:
        """Whether ``user_id`` is the account itself."""
        return user_id == self.bot_id

    @property
    def sender(self) -> Mapping[str, object]:
        """The ``sender`` object, or an empty one."""
        return mapping(self.raw.get("sender"))

    @property
    def post_type(self) -> str:
        """The ``post_type``; where it is missing (answers of ``get_msg``), what it must be."""
        posts = {
            "message_type": "message",
            "notice_type": "notice",
            "request_type": "request",
            "meta_event_type": "meta_event",
        }
        guesses = (post for key, post in posts.items() if self.word(key))
        return self.word("post_type") or next(guesses, "")

    @property
    def kind(self) -> str:
        """What sort of event this is, for a log line: ``notice/notify/poke``."""
        post_type = self.post_type
        detail = "message" if post_type == "message_sent" else post_type
        words = (post_type, self.word(f"{detail}_type"), self.word("sub_type"))
        shown = ("".join(filter(str.isprintable, word))[:40] for word in words)
        return "/".join(filter(None, shown)) or "event"


def open_envelope(raw: object, received_at: int) -> Envelope:
    """Read what every event has.

    Raises:
        EventError: it is no object, or does not say to which account it came.
    """
    event = mapping(raw)
    bot_id = account_text(event.get("self_id"))
    if not bot_id:
        raise EventError("event: no usable self_id")
    return Envelope(event, bot_id, _moment(event.get("time"), received_at), received_at)


def _moment(time: object, received_at: int) -> int:
    """Return UTC milliseconds of a time in seconds or milliseconds, else ``received_at``."""
    number = time if isinstance(time, float) else integer(time)
    if number is None or not 0 < number < LATEST_AT:
        return received_at
    at = int(number if number > _FIRST_MILLISECONDS else number * 1000)
    return at if at < LATEST_AT else received_at
