"""The stored run-time settings: who changed what when, and what holds in a chat now.

What exists and what is allowed stands in ``bot/settings.py``; see ``docs/architecture.md``,
"Settings". ``INITIAL_SETTINGS`` count for keys that were never set.
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import aiosqlite

from bot.errors import SettingError
from bot.model import Chat
from bot.settings import Settings, changed, definition, json_value, overlaid, validated
from bot.store.chats import ensure_chat
from bot.store.database import Database
from bot.store.messages import chat_key
from bot.store.queries import load

_sql = load("settings")


@dataclass(frozen=True, slots=True)
class Change:
    """A stored value with its history."""

    value: Any
    at: int
    """UTC milliseconds."""
    by: str
    """The user id of who set it."""


class SettingsBook:
    """The settings in force. Made by ``open_settings``; a change is durable before it holds.

    Args:
        db: where they are kept.
        initial: ``INITIAL_SETTINGS``, by key.
        changes: the stored values: by chat (``None`` for all), by key.
    """

    def __init__(
        self,
        db: Database,
        initial: Mapping[str, object],
        changes: dict[Chat | None, dict[str, Change]],
    ) -> None:
        self._db = db
        self._initial = dict(initial)
        self._changes = changes
        self._general = self._computed(changes.get(None, {}))
        self._of_chat: dict[Chat, Settings] = {}
        self._changing = asyncio.Lock()

    @property
    def general(self) -> Settings:
        """The settings of chats that have none of their own."""
        return self._general

    def of(self, chat: Chat) -> Settings:
        """Return the settings of ``chat``."""
        if chat not in self._changes:
            return self._general
        if chat not in self._of_chat:
            self._of_chat[chat] = overlaid(self._general, _values(self._changes[chat]))
        return self._of_chat[chat]

    def last_change(self, key: str, chat: Chat | None = None) -> Change | None:
        """Return who set ``key`` last, for ``chat`` or for all, or ``None``."""
        return self._changes.get(chat, {}).get(definition(key).key)

    async def change(
        self, key: str, value: object, *, by: str, at: int, chat: Chat | None = None
    ) -> None:
        """Set ``key`` for ``chat``, or for all chats, at once.

        Raises:
            SettingError: the key is unknown, the value not allowed, or not for one chat alone.
        """
        known = self._allowed(key, chat)
        async with self._changing:
            current = self._general if chat is None else self.of(chat)
            # Complete and in its one form: a purpose that a budget leaves out keeps its value.
            plain = json_value(known, changed(current, {known: value}))
            kept = {**self._changes.get(chat, {}), known: Change(plain, at, by)}
            self._check(chat, kept)
            async with self._db.transaction() as tx:
                await _put(tx, known, kept[known], chat)
            self._replace(chat, kept)

    async def reset(self, key: str, *, at: int, chat: Chat | None = None) -> None:
        """Go back to the general value in ``chat``, or to the initial one for all.

        Raises:
            SettingError: the key is unknown or cannot differ by chat, or what would hold then
                contradicts another value.
        """
        known = self._allowed(key, chat)
        async with self._changing:
            kept = {k: v for k, v in self._changes.get(chat, {}).items() if k != known}
            self._check(chat, kept)
            async with self._db.transaction() as tx:
                await _remove(tx, known, chat)
            self._replace(chat, kept)

    def _allowed(self, key: str, chat: Chat | None) -> str:
        known = definition(key)
        if chat is not None and not known.per_chat:
            raise SettingError(known.key, "这是全局设置，不能只对一个聊天设置")
        return known.key

    def _check(self, chat: Chat | None, changes: Mapping[str, Change]) -> None:
        if chat is None:
            self._computed(changes)
        else:
            overlaid(self._general, _values(changes))

    def _computed(self, changes: Mapping[str, Change]) -> Settings:
        return changed(validated(self._initial), _values(changes))

    def _replace(self, chat: Chat | None, changes: dict[str, Change]) -> None:
        self._changes[chat] = changes
        self._general = self._computed(self._changes.get(None, {}))
        self._of_chat.clear()


def _values(changes: Mapping[str, Change]) -> dict[str, Any]:
    return {key: change.value for key, change in changes.items()}


async def _put(tx: aiosqlite.Connection, key: str, change: Change, chat: Chat | None) -> None:
    row = {
        "key": key,
        "value": json.dumps(change.value, ensure_ascii=False),
        "at": change.at,
        "by": change.by,
    }
    if chat is None:
        await _sql.put_global(tx, **row)
    else:
        await ensure_chat(tx, chat, change.at)
        await _sql.put_for_chat(tx, **chat_key(chat), **row)


async def _remove(tx: aiosqlite.Connection, key: str, chat: Chat | None) -> None:
    if chat is None:
        await _sql.remove_global(tx, key=key)
    else:
        await _sql.remove_for_chat(tx, **chat_key(chat), key=key)


async def open_settings(db: Database, initial: Mapping[str, object]) -> SettingsBook:
    """Read the stored settings.

    Raises:
        SettingError: ``initial`` or a stored value is not allowed.
    """
    validated(initial)
    try:
        changes = await _stored(db)
        book = SettingsBook(db, initial, changes)
        for chat in filter(None, changes):
            book.of(chat)
    except SettingError as error:
        raise SettingError(error.key, f"数据库中保存的值不可用：{error.cause}") from error
    return book


async def _stored(db: Database) -> dict[Chat | None, dict[str, Change]]:
    changes: dict[Chat | None, dict[str, Change]] = {None: {}}
    async with db.reader() as connection:
        async for row in _sql.all_settings(connection):
            chat = Chat(row["bot_id"], row["kind"], row["peer_id"]) if row["kind"] else None
            change = Change(_value(row), row["changed_at"], row["changed_by"])
            changes.setdefault(chat, {})[row["key"]] = change
    return changes


def _value(row: aiosqlite.Row) -> object:
    try:
        return json.loads(row["value"])
    except ValueError as error:
        raise SettingError(row["key"], "不是 JSON") from error
