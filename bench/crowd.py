"""Invented groups, people and talk, the same in every run."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from bot.simulate import Person, events, segments
from bot.simulate.events import RawEvent

BOT = Person(10001, "群忆")
FIRST_GROUP_ID = 20001
FIRST_USER_ID = 30001

SURNAMES = "赵钱孙李周吴郑王冯陈褚卫蒋沈韩杨朱秦尤许何吕施张孔曹严华金魏陶姜"
GIVEN_NAMES = (
    "小鱼 阿明 晓雨 子涵 一诺 思远 若曦 梓轩 浩然 雨桐 天宇 欣怡 北辰 南风 星河 月白".split()
)
OPENINGS = (
    "今天 昨天 刚才 周末 晚上 早上 明天 下周 这两天 最近 说真的 对了 话说 其实 我觉得 有人知道吗"
).split()
SUBJECTS = (
    "食堂的红烧肉 楼下新开的奶茶店 那个副本 期末的高数 小区的橘猫 服务器的备份 新番第三集 "
    "周六的羽毛球 公司的团建 地铁二号线 显卡的价格 那本推理小说 阳台上的番茄 隔壁组的需求 "
    "老家的桂花 演唱会的票"
).split()
REMARKS = (
    "真的很不错 有点一言难尽 排队排到怀疑人生 比想象中难 我已经三刷了 谁一起去 我先报个名 "
    "能不能改到八点 下雨的话就算了 笑死我了 得提前一周订 我上次去还不是这样 记得带身份证 "
    "我把链接发群里 大家怎么看 有没有便宜一点的 我妈说她也要 别忘了给我留一份 又双叒叕崩了"
).split()
SHORT_WORDS = (
    "哈哈哈 好的 收到 真的吗 +1 可以 草 不是吧 冲 晚安 早 笑死 懂了 在吗 666 没问题".split()
)


def names() -> tuple[str, ...]:
    """Return names of people; some are given to several of them."""
    return tuple(surname + given for surname in SURNAMES for given in GIVEN_NAMES)


def sentence(dice: random.Random) -> str:
    """Return something that people write: often a word, mostly a sentence, at times more."""
    if dice.random() < 0.3:
        return dice.choice(SHORT_WORDS)
    count = dice.choices((1, 2, 4), (70, 22, 8))[0]
    return "。".join(
        f"{dice.choice(OPENINGS)}{dice.choice(SUBJECTS)}，{dice.choice(REMARKS)}"
        for _ in range(count)
    )


@dataclass(frozen=True, slots=True)
class Crowd:
    """Groups and their members. Group ``n`` talks with a weight of ``1 / (n + 3)``."""

    groups: dict[int, tuple[Person, ...]]
    friends: tuple[Person, ...]

    @property
    def group_ids(self) -> tuple[int, ...]:
        """All groups, the busiest first."""
        return tuple(self.groups)

    def busy_group_ids(self, dice: random.Random, count: int) -> list[int]:
        """Return groups in which people talk next, busy ones more often than quiet ones."""
        weights = list(accumulate(1 / (number + 3) for number in range(len(self.groups))))
        return dice.choices(self.group_ids, cum_weights=weights, k=count)

    def speaker(self, dice: random.Random, group_id: int) -> Person:
        """Return who talks in a group: a few of its members do most of it."""
        members = self.groups[group_id]
        return members[int(len(members) * dice.random() ** 2)]


def group_name(group_id: int) -> str:
    """Return the display name of a group."""
    return f"{SUBJECTS[group_id % len(SUBJECTS)]}交流群{group_id}"


def crowd(groups: int = 300, people: int = 6_000, friends: int = 100) -> Crowd:
    """Return the invented crowd: each group has from 8 to some hundred members."""
    dice = random.Random(20261129)
    called = names()
    nicknames = {FIRST_USER_ID + n: called[n * 7 % len(called)] for n in range(people)}
    user_ids = list(nicknames)
    found: dict[int, tuple[Person, ...]] = {}
    for group_id in range(FIRST_GROUP_ID, FIRST_GROUP_ID + groups):
        size = min(people, 8 + int(400 / (group_id - FIRST_GROUP_ID + 3)) + dice.randrange(40))
        found[group_id] = tuple(
            _member(dice, user_id, nicknames[user_id]) for user_id in dice.sample(user_ids, size)
        )
    return Crowd(found, tuple(Person(u, nicknames[u]) for u in user_ids[:friends]))


def _member(dice: random.Random, user_id: int, nickname: str) -> Person:
    card = f"{dice.choice(GIVEN_NAMES)}·{user_id % 97}" if dice.random() < 0.4 else ""
    return Person(user_id, nickname, card)


def said(
    dice: random.Random,
    everyone: Crowd,
    group_id: int,
    number: int,
    at: int,
    content: Sequence[segments.RawSegment] | None = None,
) -> RawEvent:
    """Return the event of a message in a group; ``number`` makes its id."""
    message = [segments.text(sentence(dice))] if content is None else content
    return events.group_message(
        BOT.user_id,
        group_id,
        everyone.speaker(dice, group_id),
        message,
        message_id=message_id(number),
        at=at,
        real_seq=str(number),
        group_name=group_name(group_id),
    )


def message_id(number: int) -> int:
    """Return an id as clients give them: 31 bits in no order."""
    return number * 2_654_435_761 % 2**31
