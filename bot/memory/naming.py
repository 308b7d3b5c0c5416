"""Whom a text names: by id, by card, by any name that a member of the chat has or had.

A name is found wherever its characters stand: Chinese does not mark words, and a fact about
somebody that slips through does more harm than one refused too many. Three things hold it back:
the longest name at a place wins (``小鱼干`` does not name ``小鱼`` if both are members), a name
of letters or digits must be a word of its own (``tom`` is not in ``tomorrow``), and a name that
anyone might use without meaning a person (``大家``, ``2026``) names nobody, so that nobody can
silence a group by taking it. See ``docs/memory.md``, "Checks".
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from bot.text import ELLIPSIS, display_name

NAME_MIN_CHARS = 2
_ID_MIN_DIGITS = 5
_PLAIN = re.compile("[0-9A-Za-z\u4e00-\u9fff]{2,32}")
"""Names that are shown as they are; most are, and there may be thousands."""
_WORD_END = 0x2E80
"""Scripts below it part their words."""

_EVERYDAY = frozenset(
    """
    大家 我们 你们 他们 她们 咱们 自己 别人 有人 某人 本人 所有人 全体 全体成员 成员 群员 群友
    群主 管理 管理员 群管 机器人 本群 群里 群内 群聊 全群 群名 群规 新人 朋友 同学 老师 老板 同事
    今天 今晚 今早 昨天 昨晚 前天 明天 明早 明晚 后天 大后天 周末 本周 这周 上周 下周 每天 每周
    现在 以后 之后 之前 已经 可以 需要 喜欢 决定 约定 讨论 提到 表示 认为 计划 准备 开始 结束 正在
    活动 项目 会议 开会 时间 地点 问题 消息 文件 图片 事情 东西 这个 那个 一个 一起 什么 没有 不是
    """.split()
)
_SAYING = re.compile(
    r"(?:[^\s()（）：:]{1,32}\s?[(（])?(?P<speaker>[^\s()（）：:]{1,40})[)）]?\s?说\s?[:：]\s?(?P<words>.+)"
)


class Names:
    """The names of a chat's members, ready to be looked for.

    Args:
        names: each member's names, raw, by user id. Ids are looked for as well.
        others: ids that are no members' (bots); nothing names them.
    """

    def __init__(
        self, names: Mapping[str, Iterable[str]], others: frozenset[str] = frozenset()
    ) -> None:
        bearers: defaultdict[str, set[str]] = defaultdict(set)
        for user_id in names.keys() - others:
            bearers[_folded(user_id)].add(user_id)
            for name in names[user_id]:
                if shown := _telling_name(name):
                    bearers[shown].add(user_id)
        self._bearers = {
            name: frozenset(who) for name, who in bearers.items() if len(name) >= NAME_MIN_CHARS
        }
        self._by_beginning: defaultdict[str, list[str]] = defaultdict(list)
        for name in sorted(self._bearers, key=len, reverse=True):
            self._by_beginning[name[:NAME_MIN_CHARS]].append(name)

    def named_in(self, text: str) -> tuple[frozenset[str], ...]:
        """Return for each name and id in ``text`` the user ids of who bears it, equal ones once."""
        return tuple(dict.fromkeys(self._bearers[name] for name in self._found(_folded(text))))

    def _found(self, text: str) -> Iterator[str]:
        after = 0
        for at in range(len(text) - 1):
            candidates = self._by_beginning.get(text[at : at + NAME_MIN_CHARS])
            if candidates and at >= after and (name := _standing_at(text, at, candidates)):
                after = at + len(name)
                yield name


def as_saying(text: str) -> tuple[str, str] | None:
    """Return the speaker's id and the words of a text like ``30002 说：…``, else ``None``.

    ``小鱼(30002) 说：…`` is one too; a speaker who is given by name alone is returned as written
    and is nobody's id.
    """
    found = _SAYING.fullmatch(text)
    return (found["speaker"], found["words"]) if found else None


def looks_like_id(speaker: str) -> bool:
    """Whether a saying's speaker is given by number."""
    return speaker.isascii() and speaker.isdigit() and len(speaker) >= _ID_MIN_DIGITS


def is_name(text: str, names: Mapping[str, Iterable[str]]) -> bool:
    """Whether ``text`` is a name that some member has or had."""
    return any(_folded(text) == _folded(name) for many in names.values() for name in many)


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _telling_name(raw: str) -> str:
    """Return a name as a prompt shows it and as texts are searched for, or nothing."""
    is_plain = _PLAIN.fullmatch(raw)
    name = raw.casefold() if is_plain else _folded(display_name(raw, "").removesuffix(ELLIPSIS))
    is_short_number = name.isdigit() and len(name) < _ID_MIN_DIGITS
    is_punctuation = all(unicodedata.category(character)[0] in "PZ" for character in name)
    return "" if name in _EVERYDAY or is_short_number or is_punctuation else name


def _standing_at(text: str, at: int, candidates: Iterable[str]) -> str:
    """Return the first of ``candidates`` that stands at ``at``, or nothing."""
    return next((n for n in candidates if text.startswith(n, at) and _is_whole(text, at, n)), "")


def _is_whole(text: str, at: int, name: str) -> bool:
    end = at + len(name)
    return not (
        (at > 0 and _is_of_word(text[at - 1]) and _is_of_word(name[0]))
        or (end < len(text) and _is_of_word(text[end]) and _is_of_word(name[-1]))
    )


def _is_of_word(character: str) -> bool:
    return ord(character) < _WORD_END and character.isalnum()
