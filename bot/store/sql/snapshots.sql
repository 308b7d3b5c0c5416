-- name: kept
-- The snapshots that a turn uses: the group's and the sender's, or in private the person's.
SELECT n.* FROM scopes AS s
JOIN snapshots AS n ON n.scope_id = s.id AND n.chat_id = (
    SELECT id FROM chats WHERE bot_id = :bot_id AND kind = :kind AND peer_id = :peer_id
)
WHERE s.bot_id = :bot_id AND (
    (s.kind = 'group' AND s.key = iif(:kind = 'group', :peer_id, NULL))
    OR (s.kind = 'member' AND s.key = iif(:kind = 'private', :peer_id, :user_id))
);

-- name: pinned
-- The pinned entries of a stream that may be read from where it stands. The plus keeps SQLite to the
-- index of pinned ones.
SELECT id, number, document, type, date, text, pinned, updated_at FROM entries
WHERE stream_id = :stream_id AND ended_at IS NULL AND pinned = 1
  AND +document IN (SELECT document FROM place_documents WHERE place = :place);

-- name: newest
-- The newest unpinned entries of one document of a stream, if it may be read from where it stands.
SELECT id, number, document, type, date, text, pinned, updated_at FROM entries
WHERE stream_id = :stream_id AND document = :document AND ended_at IS NULL AND pinned = 0
  AND EXISTS (SELECT 1 FROM place_documents WHERE place = :place AND document = :document)
ORDER BY date DESC, updated_at DESC, number DESC
LIMIT :limit;

-- name: keep
-- One per scope and chat; a new one replaces the older. Nothing is kept if memory has changed since
-- it was read: it may show what is forgotten by now.
INSERT INTO snapshots (
    chat_id, scope_id, text, shown, hash, streams, across, version, compactions, injected_at,
    active_at
)
SELECT c.id, :scope_id, :text, :shown, :hash, :streams, :across, :version, :compactions, :at, :at
FROM chats AS c
WHERE c.bot_id = :bot_id AND c.kind = :kind AND c.peer_id = :peer_id
  AND (
      SELECT coalesce(sum(version), 0) FROM streams
      WHERE id IN (SELECT value FROM json_each(:streams))
  ) = :version
ON CONFLICT (chat_id, scope_id) DO UPDATE SET
    text = excluded.text, shown = excluded.shown, hash = excluded.hash,
    streams = excluded.streams, across = excluded.across, version = excluded.version,
    compactions = excluded.compactions, injected_at = excluded.injected_at,
    active_at = excluded.active_at, stale = 0
RETURNING scope_id;

-- name: touch!
-- A turn has used some scopes.
UPDATE snapshots SET active_at = :at
WHERE chat_id = (
    SELECT id FROM chats WHERE bot_id = :bot_id AND kind = :kind AND peer_id = :peer_id
) AND scope_id IN (SELECT value FROM json_each(:scope_ids));

-- name: mark_stale!
-- What the snapshots of some scopes show is gone, and their text with it.
UPDATE snapshots SET stale = 1, text = '', shown = '[]', hash = ''
WHERE scope_id IN (SELECT value FROM json_each(:scope_ids));

-- name: bump_streams!
-- What was read of some scopes before now is not kept as a snapshot any more.
UPDATE streams SET version = version + 1
WHERE scope_id IN (SELECT value FROM json_each(:scope_ids));

-- name: scopes_of_streams
-- Whose memory some streams are.
SELECT id, bot_id, kind, key FROM scopes WHERE id IN (
    SELECT scope_id FROM streams WHERE id IN (SELECT value FROM json_each(:stream_ids))
);

-- name: scope_row
-- One scope.
SELECT id, bot_id, kind, key FROM scopes WHERE bot_id = :bot_id AND kind = :scope_kind AND key = :key;

-- name: chats_with
-- The chats that have snapshots of some scopes.
SELECT DISTINCT c.bot_id, c.kind, c.peer_id FROM snapshots AS n JOIN chats AS c ON c.id = n.chat_id
WHERE n.scope_id IN (SELECT value FROM json_each(:scope_ids));

-- name: crosses^
-- Whether what a person said in one group may be known in their turns in another.
SELECT cross_group FROM members WHERE bot_id = :bot_id AND user_id = :user_id;

-- name: set_crosses!
-- They changed their mind.
UPDATE members SET cross_group = :crosses WHERE bot_id = :bot_id AND user_id = :user_id;

-- name: documents
-- Which documents of a stream may be read, by where it stands to a turn.
SELECT place, document FROM place_documents;
