"""The database: its file, the disk, the schema, the contents and the stored settings."""

import os
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from bot.checks.finding import Finding, fault, good, warning
from bot.config import Config
from bot.errors import SettingError, StoreError
from bot.store.database import Database
from bot.store.inspection import (
    QUICK_CHECK_SECONDS,
    Schema,
    chats_with_settings,
    contents_of,
    fault_in,
    look_into,
    schema_of,
)
from bot.store.settings import SettingsBook, open_settings

MIB = 1024 * 1024
FREE_FAULT_MIB = 50
FREE_WARNING_MIB = 500
CLOCK_DRIFT_MS = 3_600_000


async def database_findings(config: Config, now: int) -> AsyncIterator[Finding]:
    """Yield what can be said about the database without making, changing or holding up anything.

    Args:
        config: the static configuration.
        now: UTC milliseconds.
    """
    for finding in _file(config.database_path):
        yield finding
    if _is_file(config.database_path):
        for finding in await _inside(config, now):
            yield finding
    yield _free_space(config.database_path)


def _is_file(path: Path) -> bool:
    return os.path.isfile(path)  # unlike Path's, it is no error if a directory is closed to us


def _future(path: Path) -> Finding:
    ground = _ground(path)
    if not ground.is_dir() or not os.access(ground, os.W_OK | os.X_OK):
        return fault(
            f"数据库 {path} 无法建立：{ground} 不可写或不是目录。请修改 DATABASE_URL 或权限"
            f" | The database cannot be made: {ground} is no directory that this user may write to."
        )
    return good(
        f"数据库 {path} 还不存在，首次启动时会建立"
        " | The database does not exist yet; the first start makes it."
    )


def _ground(path: Path) -> Path:
    """Return the nearest thing above ``path`` that exists."""
    return next(parent for parent in path.absolute().parents if os.path.exists(parent))


def _file(path: Path) -> Iterator[Finding]:
    if not os.path.exists(path):
        yield _future(path)
    elif not _is_file(path):
        yield fault(f"{path} 不是文件，请修改 DATABASE_URL | It is no file: mend DATABASE_URL.")
    else:
        yield from _permissions(path)


def _permissions(path: Path) -> Iterator[Finding]:
    if not (os.access(path, os.R_OK | os.W_OK) and os.access(path.parent, os.W_OK | os.X_OK)):
        yield fault(
            f"数据库 {path} 或其目录不可写，请修改权限或所有者"
            " | The database or its directory is not writable for this user."
        )
    if os.name == "posix" and (mode := path.stat().st_mode & 0o777) & 0o077:
        yield warning(
            f"本机其他用户能打开数据库（权限 {mode:04o}），下次启动会改成 0600；"
            f"现在就改：chmod 600 {path}"
            " | Others on this machine can open it; the next start mends that."
        )


def _free_space(path: Path) -> Finding:
    free_mib = shutil.disk_usage(_ground(path)).free // MIB
    cause = f"数据库所在磁盘剩余 {free_mib} MiB"
    if free_mib < FREE_FAULT_MIB:
        return fault(f"{cause}，已无法安全写入，请清理磁盘 | The disk is full: free some space.")
    if free_mib < FREE_WARNING_MIB:
        return warning(f"{cause}，快满了，请清理磁盘 | The disk is nearly full: free some space.")
    return good(f"{cause} | Free disk space.")


async def _inside(config: Config, now: int) -> list[Finding]:
    try:
        async with look_into(config.database_path) as db:
            return await _contents(db, config, now)
    except StoreError as error:
        return [
            fault(
                f"数据库 {config.database_path} 打不开或不是数据库：从备份恢复，或修改 DATABASE_URL"
                f" | {error}: restore a backup, or mend DATABASE_URL."
            )
        ]


async def _contents(db: Database, config: Config, now: int) -> list[Finding]:
    schema = await schema_of(db)
    found = [_schema(db.path, schema)]
    if not schema.version or schema.version > schema.known_version:
        return found
    found.append(await _structure(db))
    found.append(await _amount(db, now))
    found += await _settings(db, config)
    return found


def _schema(path: Path, schema: Schema) -> Finding:
    version, known = schema.version, schema.known_version
    if version > known:
        return fault(
            f"数据库 {path} 的结构版本是 {version}，本程序只认识到 {known}："
            "请升级程序，或恢复旧备份"
            f" | The database has schema {version}, this program knows {known}: "
            "update the program, or restore an older backup."
        )
    if schema.is_foreign:
        return fault(
            f"{path} 是别的程序的数据库，请修改 DATABASE_URL"
            " | It is another program's database: mend DATABASE_URL."
        )
    if version < known:
        return good(
            f"数据库 {path}：结构版本 {version}，启动时升级到 {known}"
            f" | The next start brings its schema from {version} to {known}."
        )
    return good(f"数据库 {path}：结构版本 {version}，是最新的 | The schema is up to date.")


async def _structure(db: Database) -> Finding:
    found = await fault_in(db)
    if found is None:
        return warning(
            f"数据库很大，{QUICK_CHECK_SECONDS:g} 秒内没有检查完"
            " | It is large: the check of its structure was not finished in time."
        )
    if found:
        return fault(
            f"数据库 {db.path} 已损坏（{found}）：停止机器人，从备份恢复"
            " | The database is damaged: stop the bot and restore a backup."
        )
    return good("数据库结构完好（quick_check） | Its structure is sound.")


async def _amount(db: Database, now: int) -> Finding:
    contents = await contents_of(db)
    size_mib = db.path.stat().st_size / MIB
    if contents.newest_at is not None and contents.newest_at > now + CLOCK_DRIFT_MS:
        return warning(
            "数据库里最新的消息在未来：系统时间倒退了，请校准（NTP）"
            " | The newest message lies in the future: the clock went back. Set it, best by NTP."
        )
    return good(
        f"{size_mib:.1f} MiB：{contents.accounts} 个账号，{contents.chats} 个聊天，"
        f"{contents.members} 个成员，{contents.messages} 条消息"
        " | Accounts, chats, members and messages so far."
    )


async def _settings(db: Database, config: Config) -> list[Finding]:
    try:
        book = await open_settings(db, config.initial_settings)
    except SettingError as error:
        return [
            fault(
                f"保存的运行时设置不能用：{error}。停止机器人，从 settings 表里删掉这个键"
                f" | A stored setting is not allowed: delete {error.key} from the table settings."
            )
        ]
    except ValueError:
        return [
            fault(
                "保存的运行时设置里有读不懂的值：从备份恢复数据库"
                " | A stored setting is no JSON: restore a backup of the database."
            )
        ]
    odd = await _odd_chats(db, book)
    return odd or [good("运行时设置可读 | The stored settings are readable.")]


async def _odd_chats(db: Database, book: SettingsBook) -> list[Finding]:
    found: list[Finding] = []
    for chat in await chats_with_settings(db):
        try:
            book.of(chat)
        except SettingError as error:
            found.append(
                warning(
                    f"聊天 {chat} 的设置不能用：{error}；在那里用 /设置 改正"
                    f" | This chat's own setting {error.key} is not allowed: set it anew there."
                )
            )
    return found
