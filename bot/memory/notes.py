"""What somebody asks to be remembered, by the rules for what a reflection writes.

See ``docs/memory.md``, "Remembering and forgetting on request".
"""

from dataclasses import dataclass, replace

from bot.memory.answer import Fact
from bot.memory.checks import bench_of
from bot.memory.claims import Subject, judged_fact
from bot.memory.evidence import stream_of
from bot.memory.verdict import Added, Proof, Reason
from bot.memory.wording import same_wording
from bot.model import Batch, Document, Entry, ProfileType, StreamMemory, Tier
from bot.text import single_line


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be remembered, and as what."""

    text: str
    """As somebody typed it or a model wrote it."""
    user_id: str | None
    """Whom it is about; ``None`` for the group."""
    document: Document
    tier: Tier
    type: ProfileType | None = None


NOTE: tuple[Document, Tier] = ("note", "working")
"""What a model notes in a conversation."""


@dataclass(frozen=True, slots=True)
class Again:
    """One more proof of an entry that says so already."""

    entry: Entry
    proof: Proof
    rises: bool
    """It was a note, and is asked to be kept for good."""


def judged_wish(
    wish: Wish, batch: Batch, memory: StreamMemory, *, opted_out: frozenset[str] = frozenset()
) -> Added | Again | Reason:
    """Return what a wish comes to, or why it comes to nothing.

    Args:
        wish: what is to be remembered.
        batch: the messages that it rests on, all of them; its task is not looked at.
        memory: the stream that it goes to.
        opted_out: who does not want to be remembered; no group entry names them.
    """
    assert memory.stream == stream_of(batch, wish.user_id)
    if not batch.messages:
        return "refs-missing"
    refs = [message.ref for message in batch.messages]
    fact = Fact.model_validate({"text": single_line(wish.text), "refs": refs})
    bench = bench_of(batch, {}, opted_out)
    if wish.user_id in opted_out:
        return "opted-out"
    if wish.user_id is not None and wish.user_id not in bench.evidence.speakers:
        return "evidence-missing"
    verdict = judged_fact(fact, wish.document, Subject(wish.user_id, memory), bench)
    if isinstance(verdict, str):
        return verdict
    added = replace(verdict, tier=wish.tier, type=wish.type)
    return _again(added, memory) or added


def _again(added: Added, memory: StreamMemory) -> Again | None:
    """Return the proof that ``added`` is of what the stream says already, if it does.

    The same in ``profile`` needs no note; what is a note rises if it is to be kept for good.
    """
    documents = {"profile", "note"}
    said = same_wording(added.text)
    same = [e for e in memory.entries if e.document in documents and same_wording(e.text) == said]
    if not same:
        return None
    entry = min(same, key=lambda one: one.document == "note")
    [proof] = added.proofs
    rises = entry.document == "note" and added.document == "profile"
    return Again(entry, proof, rises)
