"""Frozen nouns shared by every room. Words are those of ``docs/architecture.md``, "Words".

Ids of accounts, people, groups and platform messages are text: platforms send them as
numbers or strings, negative or reused, and nothing here calculates with them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

ChatKind = Literal["group", "private"]
Direction = Literal["inbound", "outbound"]
MessageKind = Literal["chat", "command", "notice"]
Role = Literal["owner", "admin", "member", ""]

EVERYONE = "all"
"""The mention id of ``@全体成员``."""

ANONYMOUS_ID = "80000000"
"""The sender id that QQ gives to every anonymous speaker."""


@dataclass(frozen=True, slots=True)
class Chat:
    """Where messages come from: one group or one private conversation of one bot account."""

    bot_id: str
    kind: ChatKind
    id: str
    """The group's id, or the other person's user id."""

    @property
    def is_group(self) -> bool:
        """Whether this is a group."""
        return self.kind == "group"

    def __str__(self) -> str:
        return f"{self.kind}:{self.id}"


@dataclass(frozen=True, slots=True)
class Member:
    """A stable sender. Names are display only and never identify anyone."""

    bot_id: str
    user_id: str


@dataclass(frozen=True, slots=True)
class Segment:
    """One piece of a OneBot message; ``data`` is JSON as it arrived."""

    type: str
    data: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        """Return the OneBot array form of this segment."""
        return {"type": self.type, "data": dict(self.data)}


@dataclass(frozen=True, slots=True)
class Sender:
    """Who sent a message, with the display data that the event carried (each may be empty)."""

    user_id: str
    nickname: str = ""
    card: str = ""
    role: Role = ""
    title: str = ""
    anonymous: bool = False

    @property
    def display_name(self) -> str:
        """The name to show, raw: card, else nickname, else the id."""
        return self.card or self.nickname or self.user_id


@dataclass(frozen=True, slots=True)
class Message:
    """A message as read from an event, before or after it is stored."""

    chat: Chat
    platform_id: str
    sender: Sender
    direction: Direction
    sent_at: int
    """UTC milliseconds."""
    received_at: int
    """UTC milliseconds."""
    local_date: str
    """The local day of ``sent_at``, ``YYYY-MM-DD``."""
    segments: tuple[Segment, ...]
    text: str
    """The readable rendering of ``segments``."""
    sequence: int | None = None
    """The platform's order within the chat, where it gives one."""
    reply_to: str | None = None
    """The platform id of the quoted message."""
    mentions: tuple[str, ...] = ()
    """User ids mentioned by ``at`` segments, ``EVERYONE`` included."""
    kind: MessageKind = "chat"
    temporary_group: str | None = None
    """For a temporary session, the group it was opened from."""


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A durable message: its row and what happened to it since."""

    row_id: int
    message: Message
    recalled_at: int | None = None
    forgotten_at: int | None = None
    """Since when it is no evidence and no context any more, because its sender had it forgotten."""

    @property
    def is_gone(self) -> bool:
        """Whether no prompt may show it."""
        return self.recalled_at is not None or self.forgotten_at is not None


@dataclass(frozen=True, slots=True)
class Usage:
    """What one model call cost; the numbers are the provider's own."""

    purpose: str
    model: str
    endpoint: str
    at: int
    """UTC milliseconds at the end of the call."""
    duration_ms: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    ok: bool
    error: str = ""
    chat: Chat | None = None


TurnPart = Literal["context", "quote", "question", "answer"]
TurnEnding = Literal["sent", "silent", "failed"]


class TurnLine(NamedTuple):
    """One line that a turn put into the conversation, and the message row that it shows.

    A prompt is made of hundreds, and a named tuple is made in a fifth of a data class's time.
    """

    message_id: int | None
    part: TurnPart
    text: str


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One use of a tool in a turn, as the model called it and was told of it."""

    call_id: str
    name: str
    arguments: str
    """JSON."""
    result: str
    message_ids: tuple[int, ...] = ()
    """The rows of the messages whose words are in the result."""


@dataclass(frozen=True, slots=True)
class ToolRound:
    """What one answer of a model wanted done, and what came of it."""

    model: str
    text: str
    """What it said besides."""
    uses: tuple[ToolUse, ...]


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn as it stands in the conversation of a chat."""

    id: int
    user_id: str
    """Who was answered."""
    asked_at: int
    """UTC milliseconds at which the first message of the question arrived."""
    answered_at: int
    """UTC milliseconds."""
    third_party: bool
    """Somebody else spoke between the turn before and this one."""
    context_until: int
    """The newest message row that the turn showed."""
    lines: tuple[TurnLine, ...]
    tools: tuple[ToolRound, ...] = ()
    """What tools were used before the answer."""


@dataclass(frozen=True, slots=True)
class Reminder:
    """What somebody asked to be told, and when."""

    id: int
    chat: Chat
    user_id: str
    due_at: int
    """UTC milliseconds."""
    text: str
    """One sanitised line."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """An error of a tool that was solved, and how; there are no values in it."""

    tool: str
    keywords: tuple[str, ...]
    """By what errors are alike."""
    symptom: str
    """The error."""
    cause: str
    action: str
    """What was done about it."""
    outcome: Literal["resolved"] = "resolved"


@dataclass(frozen=True, slots=True)
class KeptLesson:
    """A lesson as it is stored."""

    id: int
    lesson: Lesson
    is_private: bool
    """It comes from a private chat, and is shown there alone."""
    renewed_at: int
    """When it helped last, or was learned, UTC milliseconds."""
    uses: int


# Memory. See docs/memory.md.

TaskName = Literal["group", "member-batch", "private-owner"]
"""The reflections."""
TaskKind = Literal["group", "member-batch", "private-owner", "compress", "summarize"]
"""All work that the worker does."""
ScopeKind = Literal["group", "member"]
Document = Literal["profile", "pattern", "daily", "memory", "note"]
ProfileType = Literal["name", "address", "pronoun", "background", "preference", "note"]
Tier = Literal["working", "episodic", "profile"]
Audience = Literal["private", "shared"]

ENTRY_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
"""Base 32 without the letters that look like digits."""


def entry_label(number: int) -> str:
    """Return how an entry's number is shown: base 32, at least four characters."""
    digits = ""
    while number:
        number, digit = divmod(number, 32)
        digits = ENTRY_DIGITS[digit] + digits
    return digits.rjust(4, "0")


def entry_number(label: str) -> int | None:
    """Return the number that a label shows, ``#`` and case aside, or ``None`` if it is none."""
    digits = label.strip().removeprefix("#").lower()
    if not digits or any(digit not in ENTRY_DIGITS for digit in digits):
        return None
    number = 0
    for digit in digits:
        number = number * 32 + ENTRY_DIGITS.index(digit)
    return number


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose memory: a group's, or a person's."""

    bot_id: str
    kind: ScopeKind
    id: str
    """The group's id or the person's user id."""

    def __str__(self) -> str:
        return f"{self.kind}:{self.id}"


@dataclass(frozen=True, slots=True)
class Stream:
    """The part of a scope's memory that comes from one chat; what was said there stays in it."""

    scope: Scope
    origin: Chat

    @property
    def audience(self) -> Audience:
        """``private`` for what was said in a private chat, ``shared`` for the rest."""
        return "shared" if self.origin.is_group else "private"


@dataclass(frozen=True, slots=True)
class Entry:
    """One remembered line, with the messages it rests on."""

    number: int
    """A counter within the scope; ``entry_label`` shows it."""
    stream: Stream
    document: Document
    text: str
    """One sanitised line."""
    proofs: tuple[tuple[int, ...], ...]
    """The message rows of each proof; the entry stands as long as one proof does."""
    type: ProfileType | None = None
    """For ``profile`` entries of a member scope."""
    date: str | None = None
    """For ``daily`` and ``memory``: the local day, ``YYYY-MM-DD``."""
    tier: Tier = "episodic"
    pinned: bool = False
    set_aside: bool = False
    """No model takes it for compression, so it is passed over."""
    source_task: str = ""
    created_at: int = 0
    updated_at: int = 0
    tier_since: int = 0
    """Since when it has its tier, UTC milliseconds as the others."""
    uses: int = 0
    """On how many days it was packed."""

    @property
    def label(self) -> str:
        """How people and prompts name it within its scope."""
        return entry_label(self.number)


@dataclass(frozen=True, slots=True)
class Summary:
    """The summary of one stream and the messages it was made from."""

    text: str = ""
    message_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class StreamMemory:
    """What is remembered in one stream: its living entries and its summary."""

    stream: Stream
    entries: tuple[Entry, ...] = ()
    summary: Summary = Summary()


@dataclass(frozen=True, slots=True)
class Quoted:
    """The message that another one quotes."""

    sender_id: str
    """``BOT`` for the bot's."""
    text: str
    row_id: int | None = None


@dataclass(frozen=True, slots=True)
class BatchMessage:
    """One message of a batch as a reflection reads it."""

    ref: int
    """Its number in the prompt, from 1, in order of time."""
    row_id: int
    sent_at: int
    """UTC milliseconds."""
    local_date: str
    """The local day of ``sent_at``."""
    direction: Direction
    sender_id: str
    sender_name: str
    """Raw display name."""
    is_person: bool
    """False for the bot's own messages and those of other bots; they prove nothing."""
    text: str
    """The readable rendering, a description of pictures included."""
    statement: str
    """What the sender said themselves: without forwarded lines, cards and picture descriptions."""
    quote: Quoted | None = None
    is_anonymous: bool = False


@dataclass(frozen=True, slots=True)
class Batch:
    """What one reflection reads: messages in order of time, and the memory it may change."""

    task: TaskName
    chat: Chat
    messages: tuple[BatchMessage, ...]
    after_id: int
    """The cursor from which it was read."""
    last_id: int
    """Where the cursor goes: the highest row taken or left out below it."""
    memories: tuple[StreamMemory, ...]
    """``group``: the group's stream. ``member-batch``: the stream of each person who speaks.
    ``private-owner``: the person's stream of this chat."""
    names: Mapping[str, frozenset[str]]
    """Every name that each member of this chat has or had, by user id; not their ids."""
    admins: frozenset[str] = frozenset()
    """User ids of the group's owner and admins, and of operators."""


@dataclass(frozen=True, slots=True)
class SnapshotEntry:
    """An entry as a snapshot may show it."""

    row_id: int
    number: int
    """See ``Entry``."""
    document: Document
    text: str
    type: ProfileType | None = None
    date: str | None = None
    pinned: bool = False
    updated_at: int = 0
    is_elsewhere: bool = False
    """It comes from another group than that of the turn."""


@dataclass(frozen=True, slots=True)
class Shown:
    """Where prompts may have shown memory, or answers, that are gone now."""

    chats: frozenset[Chat] = frozenset()
    """Those with a snapshot of it: whoever speaks there."""
    scopes: frozenset[Scope] = frozenset()
    """Whose memory it is: every turn that reads it, wherever."""
    rows: frozenset[int] = frozenset()
    """Messages of the account that lost their text: every turn that shows one, wherever."""

    def __or__(self, other: "Shown") -> "Shown":
        return Shown(self.chats | other.chats, self.scopes | other.scopes, self.rows | other.rows)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The memory of one scope as the prompts of one chat show it."""

    text: str
    """Empty if there was nothing to show."""
    shown: tuple[int, ...]
    """The rows of the entries in it."""
    hash: str
    """Equal for equal contents, however they are laid out."""
    streams: frozenset[int]
    """The rows of the streams it was made from."""
    across: bool
    """It was made with the person's other groups let in."""
    version: int
    """How often those streams had changed by then."""
    compactions: int
    """How often the conversation had been compacted."""
    injected_at: int
    """When it was made, UTC milliseconds."""
    active_at: int
    """When a turn used it last, UTC milliseconds."""
    stale: bool = False
    """What it showed was forgotten or corrected; its text is gone."""
