"""Inject: the memory that a turn is shown, made anew only where that is due.

See ``docs/memory.md``, "Snapshots".
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from jinja2 import TemplateError
from loguru import logger

from bot.app import App
from bot.conversation.tokens import estimator
from bot.errors import StoreError
from bot.memory.pack import ContextPack, TokenBudget
from bot.memory.policy import policy
from bot.memory.snapshot import (
    ScopeNow,
    SnapshotContents,
    SnapshotRules,
    is_showable,
    pack,
    refresh_reason,
)
from bot.model import Scope, Snapshot
from bot.prefetch import Recall, pack_of
from bot.scene import Scene, remembered_anew
from bot.settings import Settings
from bot.store.reach import Readable
from bot.store.snapshots import (
    NewSnapshot,
    Recollection,
    keep_snapshots,
    snapshot_entries,
)
from bot.text import json_line

ATTEMPTS = 3
"""So often a snapshot is made in one turn, if memory changes while it is."""

MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class Injection:
    """What a turn is shown of memory. Empty texts are not shown at all."""

    standing: str = ""
    """Before the conversation: the group's memory, or in private the person's."""
    sender: str = ""
    """In groups, at the end: the sender's."""
    pack: str = ""
    """What bears on the message, beside the snapshots."""
    shown: frozenset[int] = frozenset()
    """The rows of the entries that the snapshots show."""
    scope_ids: tuple[int, ...] = ()
    """The rows of the scopes that the turn uses, to be renewed with it."""
    packed: tuple[int, ...] = ()
    """The rows of the entries in the pack, whose use counts with the turn."""


@dataclass(frozen=True, slots=True)
class _ScopeInTurn:
    """A scope that a turn may read, and the snapshot that is kept of it."""

    row_id: int
    scope: Scope
    streams: Sequence[Readable]
    now: ScopeNow
    kept: Snapshot | None


async def inject(app: App, scene: Scene) -> Injection:
    """Return the memory of a turn, and keep what had to be made anew.

    Whatever fails, the turn goes on with the snapshots that are still valid. That a turn used them
    is kept with the turn (``NewTurn.scope_ids``), so that nothing is written before the model is
    asked unless a snapshot is due.
    """
    settings = scene.settings
    if not settings.memory_enabled:
        return Injection()
    rules = rules_of(settings)
    scene = await _renewed(app, scene, rules)
    return _with_pack(app, scene, _injection(list(_scopes(scene)), rules))


def recall_pack(app: App, scene: Scene, shown: frozenset[int]) -> ContextPack:
    """Return what a turn is reminded of beside the entries that its snapshots show."""
    settings = scene.settings
    recall = Recall(policy(settings.memory_policy), app.config.timezone, scene.now)
    budget = TokenBudget(settings.recall_token_budget, estimator(settings.token_estimator))
    return pack_of(scene.candidates, recall, budget, shown=shown)


def _with_pack(app: App, scene: Scene, injection: Injection) -> Injection:
    packed = recall_pack(app, scene, injection.shown)
    return replace(injection, pack=packed.render(), packed=packed.row_ids)


def rules_of(settings: Settings) -> SnapshotRules:
    """Return what the settings say of snapshots."""
    return SnapshotRules(
        ttl_ms=round(settings.memory_snapshot_ttl_minutes * MINUTE_MS),
        max_age_ms=round(settings.memory_snapshot_max_age_minutes * MINUTE_MS),
        budget_chars=settings.memory_scope_char_budget,
    )


def _injection(scopes: Iterable[_ScopeInTurn], rules: SnapshotRules) -> Injection:
    found = Injection()
    for one in scopes:
        if one.kept is None or not is_showable(one.kept, one.now, rules):
            continue
        is_sender = one.streams[0].place in ("here", "elsewhere")
        text = {"sender": one.kept.text} if is_sender else {"standing": one.kept.text}
        found = replace(
            found,
            **text,
            shown=found.shown.union(one.kept.shown),
            scope_ids=(*found.scope_ids, one.row_id),
        )
    return found


async def _renewed(app: App, scene: Scene, rules: SnapshotRules) -> Scene:
    """Return the scene with every snapshot that is due made anew and kept.

    If memory changes meanwhile, all that the scene knows of it is read anew.
    """
    for _ in range(ATTEMPTS):
        try:
            found = await _kept(app, scene, rules)
        except (sqlite3.Error, StoreError, TemplateError) as error:
            _warn(scene, error)
            return scene
        if found is not None:
            return found
        # Something was remembered or forgotten meanwhile.
        try:
            scene = await remembered_anew(app, scene)
        except (sqlite3.Error, StoreError) as error:
            _warn(scene, error)
            return replace(scene, recollection=Recollection((), {}, False), candidates=[])
    logger.warning("memory of {} changes faster than it can be read", scene.chat)
    return scene


def _warn(scene: Scene, error: Exception) -> None:
    cause = type(error).__name__
    logger.warning("memory of {} could not be read anew: {}: {}", scene.chat, cause, error)


async def _kept(app: App, scene: Scene, rules: SnapshotRules) -> Scene | None:
    """Make what is due anew and keep it; ``None`` if memory has changed meanwhile."""
    due = list(_due(scene, rules))
    if not due:
        return scene
    made = {one.row_id: await _made(app, scene, one, rules) for one in due}
    new = [NewSnapshot(row_id, snapshot) for row_id, snapshot in made.items()]
    if await keep_snapshots(app.db, scene.chat, new) != made.keys():
        return None
    known = scene.recollection
    return replace(scene, recollection=replace(known, kept={**known.kept, **made}))


def _due(scene: Scene, rules: SnapshotRules) -> Iterator[_ScopeInTurn]:
    for one in _scopes(scene):
        reason = refresh_reason(one.kept, one.now, scene.now, rules)
        if reason is not None:
            logger.debug("memory of {} is shown anew in {}: {}", one.scope, scene.chat, reason)
            yield one


def _scopes(scene: Scene) -> Iterator[_ScopeInTurn]:
    """Yield the scopes of which there is anything to read."""
    known = scene.recollection
    is_across = scene.settings.memory_member_cross_group and known.crosses
    for row_id in dict.fromkeys(stream.scope_id for stream in known.readable):
        streams = [stream for stream in known.readable if stream.scope_id == row_id]
        is_sender = streams[0].place in ("here", "elsewhere")
        yield _ScopeInTurn(
            row_id,
            streams[0].stream.scope,
            streams,
            ScopeNow(
                streams=frozenset(stream.row_id for stream in streams),
                across=is_across if is_sender else True,
                version=sum(stream.version for stream in streams),
                compactions=scene.session.compactions,
            ),
            known.kept.get(row_id),
        )


async def _made(app: App, scene: Scene, one: _ScopeInTurn, rules: SnapshotRules) -> Snapshot:
    entries = await snapshot_entries(app.db, one.streams, rules.read_per_document)
    frame = _rendered(app, scene, one.scope, "")
    contents = SnapshotContents(tuple(_summaries(scene, one)), tuple(entries))
    packed = pack(contents, rules.budget_chars - len(frame))
    text = _rendered(app, scene, one.scope, packed.text) if packed.text else ""
    if one.kept and one.kept.hash == packed.hash and is_showable(one.kept, one.now, rules):
        # It says the same, so the prompt stays as it is to the letter.
        text = one.kept.text
    return Snapshot(
        text=text,
        shown=packed.shown,
        hash=packed.hash,
        streams=one.now.streams,
        across=one.now.across,
        version=one.now.version,
        compactions=one.now.compactions,
        injected_at=scene.now,
        active_at=scene.now,
    )


def _summaries(scene: Scene, one: _ScopeInTurn) -> Iterator[str]:
    """Yield the summaries of a scope's streams, that of the turn's own chat first."""
    for stream in sorted(one.streams, key=lambda stream: stream.stream.origin != scene.chat):
        if stream.summary:
            yield stream.summary


def _rendered(app: App, scene: Scene, scope: Scope, lines: str) -> str:
    if scope.kind == "group":
        return app.prompts.render(
            "snapshot_group", scope=json_line({"groupId": scope.id}), lines=lines
        )
    return app.prompts.render(
        "snapshot_member",
        scope=json_line({"senderId": scope.id}),
        is_group=scene.chat.is_group,
        lines=lines,
    )
