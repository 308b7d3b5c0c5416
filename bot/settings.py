"""Run-time settings: what exists, what is allowed, how it is typed and shown. No storage.

A setting has a camelCase key, a default, a range and a description, all declared once on
:class:`Settings`; the command ``/设置``, the page, the documentation and the checks read that
declaration. Values come as JSON (from the database, from ``INITIAL_SETTINGS``) or as text that
somebody typed. See ``docs/architecture.md``, "Settings".

Errors are :class:`~bot.errors.SettingError`, worded in Chinese for the person who typed.
"""

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, Self, cast, get_type_hints

from pydantic import Field, TypeAdapter, ValidationError, model_validator
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo

from bot.errors import SettingError
from bot.setting_kinds import (
    Accounts,
    Count,
    CountOrNever,
    DailyTokenBudget,
    DaysOrForever,
    FrozenModel,
    GroupAccess,
    Kind,
    KindName,
    Language,
    MemoryPolicyName,
    Minutes,
    ModelPrices,
    ModelWindows,
    Persona,
    PrivateAccess,
    QuietHours,
    Ratio,
    RecallTokens,
    ReplyMode,
    Seconds,
    Switch,
    TokenBudget,
    TokenEstimatorName,
    Words,
    intervals,
    plain_number,
)

ECHO_MAX_CHARS = 40
SUGGESTIONS_MAX = 3

_ABOVE = (
    ("memory_member_compress_at", "memory_member_keep_recent"),
    ("memory_group_compress_at", "memory_group_keep_recent"),
)
"""Pairs of fields of which the first stays above the second."""


@dataclass(frozen=True, slots=True)
class SettingDefinition:
    """Everything there is to know of one setting."""

    key: str
    """camelCase, as typed, stored and documented."""
    field: str
    """snake_case, the attribute of :class:`Settings`."""
    per_chat: bool
    """Whether one chat may have a value of its own."""
    kind: KindName
    default: Any
    """A JSON value."""
    requirement: str
    """What is allowed, in Chinese."""
    description: str
    """One line, Chinese."""
    description_en: str
    """One line, English."""


def _setting(default: Any, description: str, english: str, *, per_chat: bool = False) -> Any:
    """Declare one setting; returns pydantic's field."""
    return Field(
        default=default,
        description=english,
        json_schema_extra={"chinese": description, "perChat": per_chat},
    )


class Settings(FrozenModel):
    """All run-time settings, valid together. Attributes are the keys in snake_case."""

    memory_enabled: Switch = _setting(
        True,
        "记忆总开关：关闭后不再注入和整理记忆，已有的不删除",
        "Memory as a whole: off stops injection and reflection and deletes nothing",
        per_chat=True,
    )
    memory_member_batch_enabled: Switch = _setting(
        True,
        "是否从群消息整理成员记忆：只影响新的整理，已有成员记忆照常使用",
        "Whether group messages are reflected into members' memory; existing memory stays in use",
        per_chat=True,
    )
    memory_idle_minutes: Minutes = _setting(
        15,
        "安静多少分钟后整理记忆",
        "Minutes of quiet after which pending messages are reflected",
    )
    memory_member_batch_messages: Count = _setting(
        50,
        "群里积累多少条消息就整理一次成员记忆",
        "Pending group messages that make a member batch due",
    )
    memory_private_batch_messages: Count = _setting(
        50,
        "私聊积累多少条消息就整理一次记忆",
        "Pending private messages that make a private reflection due",
    )
    memory_max_batch_messages: Count = _setting(
        80,
        "一次整理最多读多少条消息",
        "The most messages that one reflection reads",
    )
    memory_group_max_wait_minutes: Minutes = _setting(
        180,
        "一直不安静的群，最早的未整理消息最多等多少分钟",
        "Age in minutes of the oldest pending message at which a restless group is reflected",
    )
    memory_message_chars: Count = _setting(
        500,
        "整理时每条消息最多读多少字",
        "Characters of each message that a reflection reads",
    )
    memory_reflection_max_tokens: Count = _setting(
        4000,
        "一次整理的回答最多多少 token",
        "The most tokens that a reflection may answer",
    )
    memory_concurrency: Count = _setting(
        2,
        "同时进行的记忆任务数",
        "Memory tasks that run at the same time",
    )
    memory_member_compress_at: Count = _setting(
        100,
        "成员的日常记录达到多少条时压缩",
        "Daily entries of a member at which they are compressed",
    )
    memory_member_keep_recent: Count = _setting(
        50,
        "压缩成员日常记录时保留最近多少条",
        "The newest daily entries of a member that compression leaves alone",
    )
    memory_group_compress_at: Count = _setting(
        200,
        "群的日常记录达到多少条时压缩",
        "Daily entries of a group at which they are compressed",
    )
    memory_group_keep_recent: Count = _setting(
        100,
        "压缩群日常记录时保留最近多少条",
        "The newest daily entries of a group that compression leaves alone",
    )
    memory_compression_max_tokens: Count = _setting(
        15_000,
        "一次压缩的回答最多多少 token",
        "The most tokens that a compression may answer",
    )
    memory_snapshot_ttl_minutes: Minutes = _setting(
        30,
        "记忆快照闲置多少分钟后重新生成",
        "Minutes without use after which a memory snapshot is rendered anew",
    )
    memory_snapshot_max_age_minutes: Minutes = _setting(
        360,
        "记忆有变化时，快照最多沿用多少分钟",
        "The longest a snapshot stays in use after the memory has changed, in minutes",
    )
    memory_scope_char_budget: Count = _setting(
        2000,
        "每份记忆快照最多多少字",
        "Characters of one memory snapshot",
    )
    memory_member_cross_group: Switch = _setting(
        True,
        "成员在其他群的公开记忆能否跟随到本群（本人可关闭）",
        "Whether a member's own group memory follows them to other groups (they may switch it off)",
    )
    recall_token_budget: RecallTokens = _setting(
        512,
        "每次回复附带的相关记忆最多多少 token",
        "Tokens of related memory that go into a turn",
    )
    memory_policy: MemoryPolicyName = _setting(
        "default",
        "记忆的保留与升级策略",
        "How entries are promoted and expire",
        per_chat=True,
    )
    message_retention_days: DaysOrForever = _setting(
        0,
        "聊天记录保留多少天",
        "Days that messages are kept",
        per_chat=True,
    )
    left_retention_days: DaysOrForever = _setting(
        90,
        "机器人或成员离开后，相关记录保留多少天",
        "Days that messages and memory are kept after the bot or a member left",
    )
    daily_token_budget: DailyTokenBudget = _setting(
        TokenBudget(),
        "每天各用途的 token 上限，只写要改的用途即可",
        "Tokens a day by purpose; purposes that are left out keep their value",
    )
    reply_mode: ReplyMode = _setting(
        "mention",
        "群里的回复方式：mention 被提到才回，auto 自己决定，silent 只记录",
        "When groups are answered: mention, auto (the bot decides) or silent (records only)",
        per_chat=True,
    )
    reply_min_gap_seconds: Seconds = _setting(
        3,
        "同一聊天两次回复至少间隔多少秒",
        "Seconds between two replies in one chat",
        per_chat=True,
    )
    reply_debounce_seconds: Seconds = _setting(
        1.2,
        "同一个人连发消息时，等多少秒合并成一次",
        "Seconds to wait for more of the same sender before answering",
    )
    reply_per_member_per_minute: Count = _setting(
        5,
        "每人每分钟最多回复几次",
        "Replies to one person a minute",
    )
    reply_per_member_per_day: Count = _setting(
        200,
        "每人每天最多回复几次",
        "Replies to one person a day",
    )
    reply_global_per_minute: Count = _setting(
        30,
        "全部聊天每分钟最多回复几次",
        "Replies a minute over all chats",
    )
    reply_max_chars: Count = _setting(
        500,
        "群里一次回复最多多少字，更长的合并转发",
        "Characters of a reply in a group; longer ones become a merged forward",
        per_chat=True,
    )
    max_consecutive_turns: Count = _setting(
        10,
        "没有第三者插话时，连续快速对答多少轮后暂停",
        "Quick turns running, with no third party, after which the bot falls silent",
    )
    auto_per_hour: CountOrNever = _setting(
        20,
        "auto 模式下每小时最多主动说几次",
        "Replies an hour that nobody asked for, in mode auto",
        per_chat=True,
    )
    quiet_hours: QuietHours = _setting(
        "",
        "安静时段：不主动说话，也不发提醒警报和报告",
        "Hours without unaddressed replies, alerts or reports",
        per_chat=True,
    )
    persona: Persona = _setting(
        "",
        "人设；固定规则不受它影响",
        "The bot's character; the fixed rules stand above it",
        per_chat=True,
    )
    reply_language: Language = _setting(
        "auto",
        "回复使用的语言",
        "The language of replies",
        per_chat=True,
    )
    blocked_words: Words = _setting(
        (),
        "回复中不允许出现的词",
        "Words that no reply may contain",
        per_chat=True,
    )
    send_gap_seconds: Seconds = _setting(
        1,
        "同一账号两条消息至少间隔多少秒",
        "Seconds between two messages of one account",
    )
    send_per_chat_per_minute: Count = _setting(
        20,
        "每个聊天每分钟最多发几条",
        "Messages a minute to one chat",
    )
    send_per_account_per_minute: Count = _setting(
        40,
        "每个账号每分钟最多发几条",
        "Messages a minute from one account",
    )
    session_max_messages: Count = _setting(
        16,
        "对话中始终保留最近多少条消息",
        "The newest messages of a session that are always kept",
    )
    summary_chunk_chars: Count = _setting(
        32_000,
        "生成对话摘要时每段最多多少字",
        "Characters of one piece when a session is summarised",
    )
    summary_every_minutes: Minutes = _setting(
        15,
        "每隔多少分钟更新对话摘要",
        "Minutes between two looks for sessions to summarise",
    )
    context_budget_ratio: Ratio = _setting(
        0.8,
        "一次对话最多使用模型上下文的比例",
        "The part of a model's window that a turn may use",
    )
    token_estimator: TokenEstimatorName = _setting(
        "cjk",
        "token 估算方式",
        "How tokens are estimated before a call",
    )
    group_members_can_use_tools: Switch = _setting(
        True,
        "群成员的对话能否使用工具",
        "Whether turns of group members may use tools",
        per_chat=True,
    )
    group_admins_can_set_persona: Switch = _setting(
        False,
        "群主和管理员能否修改本群人设",
        "Whether a group's owner and admins may set its persona",
    )
    group_access: GroupAccess = _setting(
        "all",
        "哪些群可用：all 全部，approved 只限运营者启用的",
        "Which groups are served: all, or those an operator approved",
    )
    private_access: PrivateAccess = _setting(
        "friends",
        "哪些人可私聊：friends 好友，list 名单，all 所有人（含临时会话），none 不开放",
        "Who is served in private: friends, list, all (temporary sessions too) or none",
    )
    bot_accounts: Accounts = _setting(
        ("2854196310",),
        "其他机器人的 QQ 号：不回复它们，也不记忆",
        "Accounts of other bots: never answered, never remembered",
        per_chat=True,
    )
    model_prices: ModelPrices = _setting(
        {},
        "各模型每百万 token 的价格，用来估算费用",
        "Prices of a million tokens by model, for estimates of cost",
    )

    model_windows: ModelWindows = _setting(
        {},
        "各模型的上下文长度（token），覆盖内置的表",
        "Context windows of models in tokens, instead of those of the built-in table",
    )

    @model_validator(mode="after")
    def _compression_leaves_something(self) -> Self:
        for above, below in _ABOVE:
            if getattr(self, above) <= getattr(self, below):
                raise ValueError(f"{to_camel(above)} is not above {to_camel(below)}")
        return self


# --- the registry -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Entry:
    """A definition with what checks and parses its values."""

    definition: SettingDefinition
    kind: Kind
    adapter: TypeAdapter[Any]

    def checked(self, value: object) -> Any:
        """Return ``value`` as canonical JSON; purposes that a budget leaves out stay out."""
        try:
            valid = self.adapter.validate_python(value)
        except (ValidationError, RecursionError) as error:
            raise self.refusal() from error
        return _json_of(self.adapter, valid, exclude_unset=True)

    def parsed(self, text: str) -> Any:
        """Return what a person typed as canonical JSON."""
        try:
            value = self.kind.parse(text.strip())
        except (ValueError, RecursionError) as error:
            raise self.refusal() from error
        return self.checked(value)

    def refusal(self) -> SettingError:
        return SettingError(self.definition.key, f"要求{self.kind.requirement}")


def _entry(field: str, info: FieldInfo, annotation: Any) -> _Entry:
    kind = next(extra for extra in info.metadata if isinstance(extra, Kind))
    adapter = TypeAdapter[Any](annotation)
    extra = cast(dict[str, Any], info.json_schema_extra)
    definition = SettingDefinition(
        key=to_camel(field),
        field=field,
        per_chat=extra["perChat"],
        kind=kind.name,
        default=_json_of(adapter, adapter.validate_python(info.default)),
        requirement=kind.requirement.strip(),
        description=extra["chinese"],
        description_en=info.description or "",
    )
    return _Entry(definition, kind, adapter)


def _json_of(adapter: TypeAdapter[Any], valid: object, *, exclude_unset: bool = False) -> Any:
    dumped = adapter.dump_python(
        valid, mode="json", by_alias=True, exclude_none=True, exclude_unset=exclude_unset
    )
    return _plain(dumped)


def _plain(value: Any) -> Any:
    """Return JSON in which whole numbers have no fraction."""
    if isinstance(value, float):
        return plain_number(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def _entries() -> dict[str, _Entry]:
    hints = get_type_hints(Settings, include_extras=True)
    return {
        to_camel(field): _entry(field, info, hints[field])
        for field, info in Settings.model_fields.items()
    }


_ENTRIES: Mapping[str, _Entry] = MappingProxyType(_entries())
_KEYS_FOLDED: Mapping[str, str] = MappingProxyType({key.casefold(): key for key in _ENTRIES})

DEFINITIONS: Mapping[str, SettingDefinition] = MappingProxyType(
    {key: entry.definition for key, entry in _ENTRIES.items()}
)
"""All settings by key, in the order of their declaration."""


def definition(key: str) -> SettingDefinition:
    """Return the setting that ``key`` names, in whatever case it was typed.

    Raises:
        SettingError: there is none; near ones are suggested.
    """
    return _found(key).definition


def _found(key: str) -> _Entry:
    typed = key.strip()
    known = _KEYS_FOLDED.get(typed.casefold())
    if known is None:
        raise SettingError(_echo(typed), _unknown(typed.casefold()))
    return _ENTRIES[known]


def _echo(typed: str) -> str:
    """Return typed text fit for one line of an answer."""
    line = "".join(char if char.isprintable() else " " for char in typed)
    return line if len(line) <= ECHO_MAX_CHARS else line[: ECHO_MAX_CHARS - 1] + "…"


def _unknown(folded: str) -> str:
    near = difflib.get_close_matches(folded[:ECHO_MAX_CHARS], _KEYS_FOLDED, n=SUGGESTIONS_MAX)
    within = [known for known in _KEYS_FOLDED if len(folded) >= 3 and folded in known]
    suggested = list(dict.fromkeys([*near, *within]))[:SUGGESTIONS_MAX]
    if not suggested:
        return "没有这项设置"
    return "没有这项设置，是不是 " + "、".join(_KEYS_FOLDED[known] for known in suggested) + "？"


def parse_value(key: str, text: str) -> Any:
    """Return the JSON value that ``text``, typed by a person, stands for.

    Limits that concern two settings are checked where the value is applied.

    Raises:
        SettingError: the key is unknown or the text is no such value.
    """
    return _found(key).parsed(text)


def checked_value(key: str, value: object) -> Any:
    """Return a value as canonical JSON; limits that concern two settings are not checked.

    Raises:
        SettingError: the key is unknown or the value is not allowed.
    """
    return _found(key).checked(value)


def validated(values: Mapping[str, object]) -> Settings:
    """Return the defaults with ``values`` (JSON by key) over them.

    Raises:
        SettingError: a key is unknown, a value is not allowed, or two contradict each other.
    """
    return changed(Settings(), values)


def overlaid(settings: Settings, overrides: Mapping[str, object]) -> Settings:
    """Return ``settings`` with one chat's own values over them.

    Raises:
        SettingError: as :func:`validated`, or a key cannot be overridden per chat.
    """
    for key in overrides:
        setting = definition(key)
        if not setting.per_chat:
            raise SettingError(setting.key, "只能全局设置，不能单独用于一个聊天")
    return changed(settings, overrides)


def changed(settings: Settings, values: Mapping[str, object]) -> Settings:
    """Return ``settings`` with ``values`` over them; a token budget merges by purpose.

    Raises:
        SettingError: as :func:`validated`.
    """
    fields: dict[str, Any] = {name: getattr(settings, name) for name in Settings.model_fields}
    for key, value in values.items():
        entry = _found(key)
        fields[entry.definition.field] = _merged(
            fields[entry.definition.field], entry.checked(value)
        )
    _keep_order(fields, {definition(key).field for key in values})
    return Settings(**fields)


def _merged(old: object, new: Any) -> Any:
    if isinstance(old, TokenBudget):
        return TokenBudget(**{**old.model_dump(), **new})
    return new


def _keep_order(fields: Mapping[str, Any], touched: set[str]) -> None:
    for above, below in _ABOVE:
        if fields[above] > fields[below]:
            continue
        if above in touched:
            cause = f"要求大于 {to_camel(below)}（{fields[below]}）"
            raise SettingError(to_camel(above), cause)
        cause = f"要求小于 {to_camel(above)}（{fields[above]}）"
        raise SettingError(to_camel(below), cause)


def json_value(key: str, settings: Settings) -> Any:
    """Return the value of ``key`` as JSON, complete, as it is stored.

    Raises:
        SettingError: the key is unknown.
    """
    entry = _found(key)
    return _json_of(entry.adapter, getattr(settings, entry.definition.field))


def shown(key: str, settings: Settings) -> str:
    """Return the value of ``key`` as people read and type it; :func:`parse_value` reads it back.

    Raises:
        SettingError: the key is unknown.
    """
    value = json_value(key, settings)
    if isinstance(value, str) and value and not (value.startswith('"') and value.endswith('"')):
        return value
    return json.dumps(value, ensure_ascii=False)


def in_quiet_hours(spec: str, local: datetime) -> bool:
    """Return whether ``local`` lies in the quiet hours ``spec``; starts count, ends do not.

    Raises:
        ValueError: ``spec`` is not a value of ``quietHours``.
    """
    minute = local.hour * 60 + local.minute
    return any(_within(minute, start, end) for start, end in intervals(spec))


def _within(minute: int, start: int, end: int) -> bool:
    if start < end:
        return start <= minute < end
    return minute >= start or minute < end
