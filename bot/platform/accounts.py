"""The accounts that are connected now.

The edge gives each a ``Platform``; nothing below the edge knows which library talks to QQ.
"""

from typing import Any, Protocol

from bot.errors import AccountOffline


class Platform(Protocol):
    """One connected account."""

    async def call(self, action: str, **params: Any) -> Any:
        """Call a OneBot action and return its ``data``.

        Raises:
            SendRejected: the platform answered with a failure.
            SendTimedOut: no answer came.
            AccountOffline: the connection is gone.
        """
        ...


class Accounts:
    """Which accounts are connected, and every id that ever used this store.

    Args:
        known: ids of accounts from earlier runs; messages of theirs are never people's.
    """

    def __init__(self, known: frozenset[str]) -> None:
        self._known = set(known)
        self._platforms: dict[str, Platform] = {}
        self._offline: set[str] = set()

    @property
    def known(self) -> frozenset[str]:
        """The ids of all accounts of this store."""
        return frozenset(self._known)

    @property
    def connected(self) -> tuple[str, ...]:
        """The ids of the accounts that can send now."""
        return tuple(bot_id for bot_id in self._platforms if bot_id not in self._offline)

    def is_known(self, user_id: str) -> bool:
        """Whether a user id is one of the store's own accounts."""
        return user_id in self._known

    def connect(self, bot_id: str, platform: Platform) -> None:
        """Note a connection; the account counts as online again."""
        self._known.add(bot_id)
        self._platforms[bot_id] = platform
        self._offline.discard(bot_id)

    def disconnect(self, bot_id: str) -> None:
        """Note that the connection is gone."""
        self._platforms.pop(bot_id, None)

    def went_offline(self, bot_id: str) -> None:
        """Note that the platform reports the account offline; the connection may stand."""
        self._offline.add(bot_id)

    def came_online(self, bot_id: str) -> None:
        """Note a sign of life."""
        self._offline.discard(bot_id)

    def platform(self, bot_id: str) -> Platform:
        """Return the connection of an account.

        Raises:
            AccountOffline: there is none, or the account is offline.
        """
        if bot_id in self._offline:
            raise AccountOffline(f"the account {bot_id} is offline on the platform's side")
        if bot_id not in self._platforms:
            raise AccountOffline(f"the account {bot_id} is not connected")
        return self._platforms[bot_id]
