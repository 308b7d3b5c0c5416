"""Export: what is remembered, as one JSON object per scope.

See ``docs/memory.md``, "Export".
"""

from collections.abc import Iterator
from typing import Any

from bot.model import Chat, Entry, Scope
from bot.store.database import Database
from bot.store.memory import Evidence, Remembered, all_scopes, cursors_of, read_stream, streams_of

DOCUMENTS = ("profile", "pattern", "note", "daily", "memory")


async def exported_scope(db: Database, scope: Scope) -> dict[str, Any]:
    """Return everything that is remembered in a scope; every document's key is always there."""
    found = [await read_stream(db, stream) for stream in await streams_of(db, scope)]
    documents: dict[str, Any] = {name: [] for name in DOCUMENTS}
    documents["summary"] = {}
    for remembered in found:
        origin = str(remembered.memory.stream.origin)
        if remembered.memory.summary.text:
            documents["summary"][origin] = remembered.memory.summary.text
        for entry in remembered.memory.entries:
            documents[entry.document].append(_entry(entry, remembered))
    chat = Chat(scope.bot_id, "group" if scope.kind == "group" else "private", scope.id)
    return {
        "scope": f"{scope.kind}:{scope.bot_id}:{scope.id}",
        "documents": documents,
        "cursors": await cursors_of(db, chat),
    }


async def exported_all(db: Database) -> list[dict[str, Any]]:
    """Return every scope, in the order in which they began."""
    return [await exported_scope(db, scope) for scope in await all_scopes(db)]


def _entry(entry: Entry, remembered: Remembered) -> dict[str, Any]:
    return {
        "id": entry.label,
        "type": entry.type,
        "date": entry.date,
        "text": entry.text,
        "evidence": [_evidence(e) for e in _messages(entry, remembered)],
        "origin": str(entry.stream.origin),
        "audience": entry.stream.audience,
        "pinned": entry.pinned,
        "tier": entry.tier,
        "task": entry.source_task,
        "created_at": entry.created_at,
        "updated_at": entry.updated_at,
    }


def _messages(entry: Entry, remembered: Remembered) -> Iterator[Evidence]:
    seen = dict.fromkeys(row for proof in entry.proofs for row in proof)
    return (remembered.evidence[row] for row in seen)


def _evidence(evidence: Evidence) -> dict[str, Any]:
    return {
        "message_id": evidence.platform_id,
        "sender_id": evidence.sender_id,
        "sent_at": evidence.sent_at,
    }
