"""What the checks of an answer come to: changes to apply, and reasons for what was refused.

See ``docs/memory.md``, "Checks".
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from bot.model import Document, ProfileType, Stream, Tier

Proof = tuple[int, ...]
"""Rows of the messages that one item rests on, ascending."""

Reason = Literal[
    "not-an-object",
    "not-a-list",
    "text-missing",
    "text-too-long",
    "refs-missing",
    "refs-unknown",
    "sender-missing",
    "sender-bot",
    "sender-name",
    "sender-absent",
    "evidence-missing",
    "people-missing",
    "names-member",
    "wrong-speaker",
    "opted-out",
    "sensitive",
    "entry-unknown",
    "retract-unsupported",
    "retract-contradicted",
]

EXPLANATIONS: Mapping[Reason, str] = {
    "not-an-object": "应当是一个对象",
    "not-a-list": "应当是一个数组",
    "text-missing": "没有文字",
    "text-too-long": "文字太长",
    "refs-missing": "refs 为空或不是编号数组",
    "refs-unknown": "refs 里有本批消息没有的编号",
    "sender-missing": "senderId 缺失",
    "sender-bot": "senderId 是机器人，不能有记忆",
    "sender-name": "senderId 是名字，必须写号码",
    "sender-absent": "senderId 在本批消息里没有发言",
    "evidence-missing": "refs 里没有当事人自己说的话；引用、转发、图片和机器人的话都不算",
    "people-missing": "refs 里只有机器人的话",
    "names-member": "提到了某位成员，但 refs 里没有本人的发言；"
    "只能写成“号码 说：……”，号码是 refs 里的发言者",
    "wrong-speaker": "“号码 说：”的号码不是 refs 里的发言者",
    "opted-out": "提到了不愿被记录的人",
    "sensitive": "含证件号、银行卡号、电话、密钥或密码",
    "entry-unknown": "id 不是本次给出的这位对象的条目",
    "retract-unsupported": "refs 里没有有权撤回这条的人的发言",
    "retract-contradicted": "同一份答案又写了这条内容",
}
"""What a model, and an operator, is told of each reason; the words of nobody are in it."""


@dataclass(frozen=True, slots=True)
class Added:
    """A new entry."""

    stream: Stream
    document: Document
    text: str
    """One sanitised line within the limit of its document."""
    proofs: tuple[Proof, ...]
    """More than one where the answer says the same again."""
    tier: Tier
    type: ProfileType | None = None
    """For ``profile`` entries of a person."""
    date: str | None = None
    """For ``daily`` and ``memory``: ``YYYY-MM-DD``."""


@dataclass(frozen=True, slots=True)
class Proven:
    """One more proof of an entry that already says so."""

    stream: Stream
    entry_number: int
    proof: Proof


@dataclass(frozen=True, slots=True)
class Summarised:
    """A new summary of a stream."""

    stream: Stream
    text: str
    """One sanitised line."""
    message_ids: Proof
    """Rows that were read for it; the summary rests on them and on those it rested on before."""


@dataclass(frozen=True, slots=True)
class Superseded:
    """An entry that is no longer true; it is kept as history."""

    stream: Stream
    entry_number: int
    proof: Proof
    why: str
    """One sanitised line, maybe empty."""


Change = Added | Proven | Summarised | Superseded


@dataclass(frozen=True, slots=True)
class Rejection:
    """A part of an answer that was refused."""

    path: str
    """Where it stands in the answer, such as ``members[1].daily[0]``."""
    reason: Reason
    leaves: int = 1
    """How many leaves fell with it."""

    @property
    def explanation(self) -> str:
        """The reason in Chinese."""
        return EXPLANATIONS[self.reason]


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of the leaves of an answer: its items and its summaries."""

    leaves: int = 0
    refused: int = 0
    dates_moved: int = 0
    """Items whose day was missing, or no day on which the evidence was said."""

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            self.leaves + other.leaves,
            self.refused + other.refused,
            self.dates_moved + other.dates_moved,
        )


@dataclass(frozen=True, slots=True)
class Checked:
    """An answer after the checks."""

    changes: tuple[Change, ...]
    rejections: tuple[Rejection, ...]
    counts: Counts

    @property
    def needs_repair(self) -> bool:
        """Whether more than half of the leaves were refused."""
        return self.counts.refused * 2 > self.counts.leaves

    @property
    def reasons(self) -> Counter[Reason]:
        """How many leaves fell to each reason."""
        tally: Counter[Reason] = Counter()
        for rejection in self.rejections:
            tally[rejection.reason] += rejection.leaves
        return tally
