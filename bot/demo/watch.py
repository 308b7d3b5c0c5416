"""Watch: what the program did since the last look, read from its database."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bot.app import App
from bot.demo.happenings import (
    Compressed,
    Happening,
    Proof,
    PutOff,
    Reflected,
    Refused,
    Remembered,
    SnapshotMade,
)
from bot.memory.verdict import EXPLANATIONS
from bot.model import Chat, Scope, Stream, entry_label
from bot.store.memory import all_scopes, read_stream, streams_of
from bot.store.messages import messages_by_rows
from bot.store.revisions import EntryThen, StreamChange, changes_of_task
from bot.store.snapshots import recollection
from bot.store.tasks import TaskRecord, recent_tasks

_REASONS: Mapping[str, str] = {**EXPLANATIONS}

MOST_TASKS = 40
"""More are never done between two looks."""

Answers = dict[str, list[Mapping[str, Any]]]
"""What the model answered and nobody has looked at yet, by purpose, oldest first."""

PURPOSES = {
    "group": "reflect.group",
    "member-batch": "reflect.member-batch",
    "private-owner": "reflect.private-owner",
}


class Watch:
    """Looks into the database again and again, and tells what is new."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._done: set[int] = set()
        self._failures: dict[int, int] = {}
        self._snapshots: dict[tuple[Chat, int], int] = {}

    async def tasks(self, answers: Answers) -> list[Happening]:
        """Return what tasks have done or failed to do since the last look."""
        found = await recent_tasks(self._app.db, limit=MOST_TASKS)
        told: list[Happening] = []
        for task in sorted(found, key=lambda one: (one.finished_at or one.next_run_at, one.id)):
            if self._failures.get(task.id, 0) < task.attempts and task.error:
                self._failures[task.id] = task.attempts
                told.append(PutOff(self._now, task.task, task.scope, task.error, task.next_run_at))
            if task.state == "done" and task.id not in self._done:
                self._done.add(task.id)
                told += await self._told(task, answers)
        return told

    @property
    def _now(self) -> int:
        return self._app.clock.now()

    async def _told(self, task: TaskRecord, answers: Answers) -> list[Happening]:
        changes = await changes_of_task(self._app.db, task.id)
        if task.task == "compress":
            return [await self._compressed(change) for change in changes]
        if not task.calls or task.task not in PURPOSES:
            return []
        waiting = answers.get(PURPOSES[task.task], [])
        answer = waiting.pop(0) if waiting else {}
        # The answers to requests for repair were not kept apart, and nothing was in them.
        del waiting[: task.calls - 1]
        return [await self._reflected(task, changes, answer)]

    async def _reflected(
        self, task: TaskRecord, changes: Iterable[StreamChange], answer: Mapping[str, Any]
    ) -> Reflected:
        added, proven, superseded, summaries = [], [], [], []
        for change in changes:
            before = {entry.number for entry in change.before}
            after = {entry.number for entry in change.after}
            added += await self._all(change, (e for e in change.after if e.number not in before))
            proven += await self._all(change, (e for e in change.after if e.number in before))
            superseded += await self._all(
                change, (e for e in change.before if e.number not in after)
            )
            if change.summary:
                summaries.append((change.stream.scope, change.summary))
        return Reflected(
            at=self._now,
            task=task.task,
            chat=task.chat,
            trigger=task.reason,
            messages=task.messages,
            added=tuple(added),
            proven=tuple(proven),
            superseded=tuple(superseded),
            summaries=tuple(summaries),
            refused=tuple(
                Refused(path, _REASONS.get(reason, reason), words_at(answer, path))
                for path, reason in task.refusals
            ),
        )

    async def _compressed(self, change: StreamChange) -> Compressed:
        before = {entry.number for entry in change.before}
        after = {entry.number for entry in change.after}
        return Compressed(
            at=self._now,
            scope=change.stream.scope,
            sources=tuple(
                await self._all(change, (e for e in change.before if e.number not in after))
            ),
            made=tuple(
                await self._all(change, (e for e in change.after if e.number not in before))
            ),
        )

    async def _all(self, change: StreamChange, entries: Iterable[EntryThen]) -> list[Remembered]:
        entries = list(entries)
        proofs = await self._proofs(row for entry in entries for row in entry.rows)
        return [
            Remembered(
                change.stream.scope,
                change.stream.origin,
                entry_label(entry.number),
                entry.document,
                entry.date or "",
                entry.text,
                tuple(proofs[row] for row in entry.rows if row in proofs),
            )
            for entry in entries
        ]

    async def _proofs(self, rows: Iterable[int]) -> dict[int, Proof]:
        found = await messages_by_rows(self._app.db, dict.fromkeys(rows))
        return {
            stored.row_id: Proof(
                stored.message.sender.user_id,
                stored.message.sender.display_name,
                stored.message.sent_at,
                stored.message.text,
                stored.message.chat,
            )
            for stored in found
        }

    async def snapshots(self, chat: Chat, sender_id: int) -> list[Happening]:
        """Return the snapshots that the last turn of a sender had made anew."""
        known = await recollection(self._app.db, chat, str(sender_id), cross_group=True)
        scopes = {one.scope_id: one.stream.scope for one in known.readable}
        told: list[Happening] = []
        for scope_id, snapshot in known.kept.items():
            if self._snapshots.get((chat, scope_id)) == snapshot.injected_at:
                continue
            self._snapshots[chat, scope_id] = snapshot.injected_at
            if snapshot.text and scope_id in scopes:
                told.append(SnapshotMade(self._now, chat, scopes[scope_id], snapshot.text))
        return told

    async def living(self) -> list[Remembered]:
        """Return everything that is remembered now."""
        return [entry for stream in await self._streams() for entry in await self._held(stream)]

    async def summaries(self) -> list[tuple[Scope, Chat, str]]:
        """Return the summaries that there are now."""
        found = [(s, (await read_stream(self._app.db, s)).memory) for s in await self._streams()]
        return [(s.scope, s.origin, m.summary.text) for s, m in found if m.summary.text]

    async def _streams(self) -> list[Stream]:
        db = self._app.db
        return [s for scope in await all_scopes(db) for s in await streams_of(db, scope)]

    async def _held(self, stream: Stream) -> list[Remembered]:
        memory = (await read_stream(self._app.db, stream)).memory
        rows = (row for entry in memory.entries for proof in entry.proofs for row in proof)
        proofs = await self._proofs(rows)
        return [
            Remembered(
                stream.scope,
                stream.origin,
                entry.label,
                entry.document,
                entry.date or "",
                entry.text,
                tuple(
                    proofs[row]
                    for row in dict.fromkeys(r for proof in entry.proofs for r in proof)
                    if row in proofs
                ),
            )
            for entry in memory.entries
        ]


def words_at(answer: Mapping[str, Any], path: str) -> str:
    """Return the words that stand at a place of an answer, such as ``members[1].daily[0]``."""
    found: Any = answer
    for step in _steps(path):
        try:
            found = found[step]
        except (KeyError, IndexError, TypeError):
            return ""
    return _words(found)


def _steps(path: str) -> Iterator[str | int]:
    for part in path.replace("]", "").replace("[", ".").split("."):
        yield int(part) if part.isdigit() else part


def _words(found: Any) -> str:
    if isinstance(found, str):
        return found
    if not isinstance(found, Mapping):
        return ""
    if "text" in found:
        return str(found["text"])
    inner = (one for many in found.values() if isinstance(many, list) for one in many)
    words = "；".join(filter(None, map(_words, inner)))
    return f"{found['senderId']}：{words}" if "senderId" in found else words
