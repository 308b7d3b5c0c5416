"""The settings in force: durable, at once, by whom and when, for all or for one chat."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from bot.errors import SettingError
from bot.settings import DEFINITIONS, Settings, json_value
from bot.store.database import Database, open_database
from bot.store.settings import Change, SettingsBook, open_settings
from tests.store.rows import ALICE, BRUNO, GROUP, NOON, OTHER_GROUP, PRIVATE, rows, value, values

EXAMPLES: dict[str, Any] = {
    "minutes": 0.5,
    "seconds": 7.5,
    "count": 77,
    "ratio": 0.5,
    "text": "你是一只猫",
    "language": "English",
    "hours": "23:00-07:00",
    "words": ["坏话"],
    "ids": ["30009"],
    "budget": {"chat": 5},
    "prices": {"m": {"prompt": 1, "completion": 2}},
    "windows": {"m": 32_768},
}
CHOICES = {
    "memoryPolicy": "journal",
    "replyMode": "silent",
    "tokenEstimator": "chars4",
    "groupAccess": "approved",
    "privateAccess": "none",
    "memoryMemberCompressAt": 300,
    "memoryGroupCompressAt": 300,
    "memoryMemberKeepRecent": 20,
    "memoryGroupKeepRecent": 20,
}


def example(key: str) -> Any:
    """Return some allowed value of a setting that is not its default."""
    known = DEFINITIONS[key]
    if known.kind == "switch":
        return not known.default
    return CHOICES.get(key, EXAMPLES.get(known.kind))


@pytest.fixture
async def book(db: Database) -> SettingsBook:
    """The settings of an empty database without ``INITIAL_SETTINGS``."""
    return await open_settings(db, {})


async def put(db: Database, key: str, stored: str, chat_id: int | None = None) -> None:
    """Store something that no version of the program would."""
    async with db.transaction() as tx:
        await tx.execute_fetchall(
            "INSERT INTO settings VALUES (?, ?, ?, 0, 'x')", (key, chat_id, stored)
        )


async def test_what_was_never_set_is_the_default(book: SettingsBook):
    assert book.general == Settings()
    assert book.of(GROUP) == Settings()
    assert book.last_change("replyMode") is None


@pytest.mark.parametrize("key", DEFINITIONS)
async def test_every_setting_can_be_set_for_all_and_survives_a_restart(path: Path, key: str):
    async with open_database(path, now=NOON) as db:
        book = await open_settings(db, {})
        await book.change(key, example(key), by=ALICE, at=NOON)
        changed = book.general
        assert changed != Settings()
    async with open_database(path, now=NOON) as db:
        again = await open_settings(db, {})
        assert again.general == changed
        assert again.of(GROUP) == changed


@pytest.mark.parametrize("key", [key for key, known in DEFINITIONS.items() if known.per_chat])
async def test_a_setting_of_one_chat_holds_there_alone_and_survives_a_restart(path: Path, key: str):
    async with open_database(path, now=NOON) as db:
        book = await open_settings(db, {})
        await book.change(key, example(key), by=ALICE, at=NOON, chat=GROUP)
        changed = book.of(GROUP)
        assert changed != Settings()
        assert book.general == book.of(OTHER_GROUP) == book.of(PRIVATE) == Settings()
    async with open_database(path, now=NOON) as db:
        again = await open_settings(db, {})
        assert again.of(GROUP) == changed
        assert again.general == Settings()


@pytest.mark.parametrize("key", [key for key, known in DEFINITIONS.items() if not known.per_chat])
async def test_a_setting_for_all_cannot_be_set_for_one_chat(
    db: Database, book: SettingsBook, key: str
):
    with pytest.raises(SettingError, match=key):
        await book.change(key, example(key), by=ALICE, at=NOON, chat=GROUP)
    assert await rows(db, "SELECT * FROM settings") == []


async def test_a_change_holds_at_once_and_says_who_and_when(book: SettingsBook):
    await book.change("replyMode", "auto", by=ALICE, at=NOON)
    assert book.general.reply_mode == "auto"
    assert book.last_change("REPLYMODE") == Change("auto", NOON, ALICE)
    await book.change("replyMode", "silent", by=BRUNO, at=NOON + 1)
    assert book.last_change("replyMode") == Change("silent", NOON + 1, BRUNO)
    assert book.last_change("replyMode", GROUP) is None


async def test_who_and_when_survive_a_restart(db: Database, book: SettingsBook):
    await book.change("replyMode", "auto", by=ALICE, at=NOON)
    await book.change("replyMode", "silent", by=BRUNO, at=NOON + 1, chat=GROUP)
    again = await open_settings(db, {})
    assert again.last_change("replyMode") == Change("auto", NOON, ALICE)
    assert again.last_change("replyMode", GROUP) == Change("silent", NOON + 1, BRUNO)


async def test_a_chat_with_a_value_of_its_own_follows_the_others(book: SettingsBook):
    await book.change("replyMode", "silent", by=ALICE, at=NOON, chat=GROUP)
    assert book.of(GROUP).reply_max_chars == 500
    await book.change("replyMaxChars", 90, by=ALICE, at=NOON)
    await book.change("replyMode", "auto", by=ALICE, at=NOON)
    assert (book.of(GROUP).reply_max_chars, book.of(GROUP).reply_mode) == (90, "silent")
    assert book.of(OTHER_GROUP).reply_mode == "auto"


async def test_a_value_that_is_not_allowed_changes_nothing(db: Database, book: SettingsBook):
    for key, wrong in [("replyMode", "loud"), ("replyMaxChars", 0), ("noSuchKey", 1)]:
        with pytest.raises(SettingError):
            await book.change(key, wrong, by=ALICE, at=NOON)
    assert book.general == Settings()
    assert await rows(db, "SELECT * FROM settings") == []


async def test_two_values_that_contradict_each_other_are_refused(book: SettingsBook):
    with pytest.raises(SettingError, match="memoryMemberCompressAt"):
        await book.change("memoryMemberCompressAt", 50, by=ALICE, at=NOON)
    await book.change("memoryMemberKeepRecent", 10, by=ALICE, at=NOON)
    await book.change("memoryMemberCompressAt", 50, by=ALICE, at=NOON)
    with pytest.raises(SettingError, match="memoryMemberKeepRecent"):
        await book.reset("memoryMemberKeepRecent", at=NOON)
    assert book.general.memory_member_keep_recent == 10


async def test_a_reset_goes_back_to_the_general_value(db: Database, book: SettingsBook):
    await book.change("replyMode", "auto", by=ALICE, at=NOON)
    await book.change("replyMode", "silent", by=ALICE, at=NOON, chat=GROUP)
    await book.reset("replyMode", at=NOON, chat=GROUP)
    assert book.of(GROUP).reply_mode == "auto"
    assert book.last_change("replyMode", GROUP) is None
    await book.reset("replyMode", at=NOON)
    assert book.of(GROUP).reply_mode == "mention"
    assert await rows(db, "SELECT * FROM settings") == []


async def test_a_reset_of_what_was_never_set_is_no_error(book: SettingsBook):
    await book.reset("replyMode", at=NOON)
    await book.reset("replyMode", at=NOON, chat=GROUP)
    assert book.of(GROUP) == Settings()


async def test_initial_settings_count_only_for_keys_that_were_never_set(db: Database):
    initial = {"replyMode": "auto", "replyMaxChars": 200, "memoryIdleMinutes": 0.05}
    book = await open_settings(db, initial)
    assert (book.general.reply_mode, book.general.memory_idle_minutes) == ("auto", 0.05)
    assert await rows(db, "SELECT * FROM settings") == []
    await book.change("replyMode", "mention", by=ALICE, at=NOON)
    again = await open_settings(db, {**initial, "replyMaxChars": 300})
    assert (again.general.reply_mode, again.general.reply_max_chars) == ("mention", 300)
    await again.reset("replyMode", at=NOON)
    assert again.general.reply_mode == "auto"


async def test_a_wrong_initial_setting_is_refused_by_name(db: Database):
    with pytest.raises(SettingError, match="replyMode"):
        await open_settings(db, {"replyMode": "loud"})
    with pytest.raises(SettingError, match="replyMod"):
        await open_settings(db, {"replyMod": "auto"})


async def test_purposes_that_a_budget_leaves_out_keep_their_value(db: Database, book: SettingsBook):
    await book.change("dailyTokenBudget", {"chat": 5}, by=ALICE, at=NOON)
    await book.change("dailyTokenBudget", {"reflect": 7}, by=ALICE, at=NOON)
    for current in (book, await open_settings(db, {})):
        budget = current.general.daily_token_budget
        assert (budget.chat, budget.reflect, budget.vision) == (5, 7, 200_000)


async def test_values_are_stored_in_their_one_form(db: Database, book: SettingsBook):
    await book.change("quietHours", "23:00–7:00", by=ALICE, at=NOON)
    assert await value(db, "SELECT value FROM settings") == '"23:00-07:00"'
    assert book.last_change("quietHours") == Change("23:00-07:00", NOON, ALICE)


async def test_changes_at_the_same_time_all_hold(db: Database, book: SettingsBook):
    wanted = {"replyMaxChars": 99, "replyMode": "auto", "autoPerHour": 3, "sessionMaxMessages": 9}
    await asyncio.gather(
        *(book.change(key, wish, by=ALICE, at=NOON) for key, wish in wanted.items()),
        book.change("replyMode", "silent", by=ALICE, at=NOON, chat=GROUP),
        book.change("persona", "猫", by=ALICE, at=NOON, chat=GROUP),
    )
    for current in (book, await open_settings(db, {})):
        assert {key: json_value(key, current.general) for key in wanted} == wanted
        assert (current.of(GROUP).reply_mode, current.of(GROUP).persona) == ("silent", "猫")


async def test_a_change_for_a_chat_without_rows_makes_its_row(db: Database, book: SettingsBook):
    await book.change("replyMode", "silent", by=ALICE, at=NOON, chat=GROUP)
    assert await values(db, "SELECT peer_id FROM chats") == [GROUP.id]


@pytest.mark.parametrize("stored", ['"loud"', "{not json", "5", ""])
async def test_a_stored_value_that_is_not_allowed_is_named(db: Database, stored: str):
    await put(db, "replyMode", stored)
    with pytest.raises(SettingError, match="replyMode"):
        await open_settings(db, {})


@pytest.mark.parametrize("stored", ['"loud"', "{not json"])
async def test_a_stored_value_of_a_chat_that_is_not_allowed_is_named_at_once(
    db: Database, book: SettingsBook, stored: str
):
    await book.change("persona", "猫", by=ALICE, at=NOON, chat=GROUP)
    await put(db, "replyMode", stored, chat_id=await value(db, "SELECT id FROM chats"))
    with pytest.raises(SettingError, match="replyMode"):
        await open_settings(db, {})


async def test_a_stored_key_that_no_longer_exists_is_named(db: Database):
    await put(db, "replyTone", '"kind"')
    with pytest.raises(SettingError, match="replyTone"):
        await open_settings(db, {})
