"""What happens in the demo, as nouns: told to the view and to the transcript alike."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bot.model import Chat, Document, Scope


@dataclass(frozen=True, slots=True)
class DayBegan:
    """A new day of the week."""

    at: int
    """UTC milliseconds, as in all of these."""


@dataclass(frozen=True, slots=True)
class Said:
    """Somebody said something."""

    at: int
    chat: Chat
    sender_id: int
    name: str
    text: str
    quoted: str = ""
    """What it quotes."""


@dataclass(frozen=True, slots=True)
class Sent:
    """The bot said something."""

    at: int
    chat: Chat
    text: str


@dataclass(frozen=True, slots=True)
class Recalled:
    """A message was taken back."""

    at: int
    chat: Chat
    by: int
    sender_id: int
    text: str
    fallen: tuple[str, ...]
    """What was remembered of it alone, and is no more."""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Somebody had something forgotten by command."""

    at: int
    chat: Chat
    by: int
    fallen: tuple[str, ...]
    """What was remembered and is no more."""


@dataclass(frozen=True, slots=True)
class Renamed:
    """Somebody has another name within the group."""

    at: int
    user_id: int
    former: str
    card: str


@dataclass(frozen=True, slots=True)
class Asked:
    """The model was asked something."""

    at: int
    purpose: str
    body: Mapping[str, Any]
    """The request as it came over HTTP."""


@dataclass(frozen=True, slots=True)
class Proof:
    """A message that something rests on."""

    sender_id: str
    name: str
    at: int
    text: str
    chat: Chat


@dataclass(frozen=True, slots=True)
class Remembered:
    """An entry, with the messages that prove it."""

    scope: Scope
    origin: Chat
    label: str
    document: Document
    date: str
    text: str
    proofs: tuple[Proof, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """Something that the model answered and code did not believe."""

    place: str
    """Where it stands in the answer."""
    reason: str
    """In Chinese, as the model and the operators are told."""
    text: str
    """Its words, where the answer is known."""


@dataclass(frozen=True, slots=True)
class Reflected:
    """A batch of messages became memory."""

    at: int
    task: str
    chat: Chat
    trigger: str
    """``idle``, ``count``, ``max-wait`` or ``backlog``."""
    messages: int
    added: tuple[Remembered, ...]
    proven: tuple[Remembered, ...]
    """Entries that only have one more proof now."""
    superseded: tuple[Remembered, ...]
    summaries: tuple[tuple[Scope, str], ...]
    refused: tuple[Refused, ...]

    @property
    def changes(self) -> int:
        """How much of memory changed."""
        return len(self.added) + len(self.proven) + len(self.superseded) + len(self.summaries)

    @property
    def is_empty(self) -> bool:
        """Whether there was nothing worth keeping."""
        return not self.changes and not self.refused


@dataclass(frozen=True, slots=True)
class Compressed:
    """Daily entries became memory."""

    at: int
    scope: Scope
    sources: tuple[Remembered, ...]
    made: tuple[Remembered, ...]


@dataclass(frozen=True, slots=True)
class PutOff:
    """A task failed and is tried again: nothing has changed."""

    at: int
    task: str
    scope: str
    error: str
    again_at: int


@dataclass(frozen=True, slots=True)
class SnapshotMade:
    """What prompts show of a scope's memory was made anew."""

    at: int
    chat: Chat
    scope: Scope
    text: str


@dataclass(frozen=True, slots=True)
class PackShown:
    """A prompt showed what bears on its question, beside the snapshots."""

    at: int
    chat: Chat
    text: str
    """As it stood in the prompt: its heading, and a line for each entry."""


@dataclass(frozen=True, slots=True)
class WeekEnded:
    """All that is remembered at the end."""

    at: int
    entries: tuple[Remembered, ...]
    summaries: tuple[tuple[Scope, Chat, str], ...]
    messages: int
    requests: int


Happening = (
    DayBegan
    | Said
    | Sent
    | Recalled
    | Forgotten
    | Renamed
    | Asked
    | Reflected
    | Compressed
    | PutOff
    | SnapshotMade
    | PackShown
    | WeekEnded
)
