"""The messages of a batch as evidence: who speaks, who says something, what a ref means.

See ``docs/memory.md``, "Evidence".
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bot.memory.verdict import Proof
from bot.model import Batch, BatchMessage, Scope, Stream

BOT = "BOT"
"""What stands for the bot's id wherever a model reads or writes one."""

Messages = tuple[BatchMessage, ...]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the messages of one batch can prove."""

    batch: Batch
    by_ref: Mapping[int, BatchMessage]
    speakers: frozenset[str]
    """User ids of the people who speak, anonymous ones apart."""
    automata: frozenset[str]
    """Ids that stand for the bot, and those of other bots that speak."""

    def messages(self, refs: Iterable[int]) -> Messages | None:
        """Return the messages that ``refs`` name, or ``None`` if one is not of this batch."""
        found = tuple(self.by_ref.get(ref) for ref in refs)
        messages = tuple(message for message in found if message is not None)
        return messages if len(messages) == len(found) else None

    def of_speaker(self, user_id: str) -> Messages:
        """Return every message of the batch in which that person says something."""
        return tuple(m for m in self.batch.messages if user_id in authors_of([m]))

    def of_people(self) -> Messages:
        """Return every message of people, anonymous ones and those without words included."""
        return tuple(m for m in self.batch.messages if is_of_people(m))


def evidence_of(batch: Batch) -> Evidence:
    """Return the messages of ``batch`` as evidence."""
    people = [message for message in batch.messages if is_of_people(message)]
    automata = {m.sender_id for m in batch.messages if not is_of_people(m)}
    automata |= {BOT, batch.chat.bot_id}
    named = {message.sender_id for message in people if not message.is_anonymous}
    return Evidence(
        batch=batch,
        by_ref={message.ref: message for message in batch.messages},
        speakers=frozenset(named - automata),
        automata=frozenset(automata),
    )


def is_of_people(message: BatchMessage) -> bool:
    """Whether a person sent it, known by name or not."""
    return message.direction == "inbound" and message.is_person


def authors_of(messages: Iterable[BatchMessage]) -> frozenset[str]:
    """Return the user ids of those who say something themselves in ``messages``.

    Quoting or forwarding someone is not saying it, what a picture shows is not a statement, and
    nobody knows who an anonymous member is.
    """
    return frozenset(
        message.sender_id
        for message in messages
        if is_of_people(message) and not message.is_anonymous and message.statement.strip()
    )


def proof_of(messages: Iterable[BatchMessage]) -> Proof:
    """Return the rows of ``messages`` as one proof."""
    return tuple(sorted({message.row_id for message in messages}))


def stream_of(batch: Batch, sender_id: str | None) -> Stream:
    """Return the stream that a part of an answer writes: always one of the batch's own chat."""
    if batch.chat.is_group and sender_id is None:
        scope = Scope(batch.chat.bot_id, "group", batch.chat.id)
    else:
        scope = Scope(batch.chat.bot_id, "member", sender_id or batch.chat.id)
    return Stream(scope, batch.chat)
