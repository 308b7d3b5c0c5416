-- name: revision^
-- One change of a stream.
SELECT r.id, r.at, r.before, r.after, r.stream_id, s.bot_id, s.kind AS scope_kind, s.key,
    c.kind, c.peer_id
FROM revisions AS r
JOIN streams AS t ON t.id = r.stream_id
JOIN scopes AS s ON s.id = t.scope_id
JOIN chats AS c ON c.id = t.chat_id
WHERE r.id = :id;

-- name: added
-- Living entries that a change put there, with how they end when it is undone. Those that it had
-- brought back end as compressed again, and only if what was made of them can be brought back.
WITH made (source_id, returns) AS (
    SELECT s.source_id, max(
        m.ended_at = :ended_at AND EXISTS (SELECT 1 FROM proofs WHERE entry_id = m.id)
    )
    FROM entries AS m JOIN entry_sources AS s ON s.entry_id = m.id
    WHERE m.stream_id = :stream_id AND m.number IN (SELECT value FROM json_each(:replaced))
    GROUP BY s.source_id
)
SELECT e.number, iif(made.source_id IS NULL, 'superseded', 'compressed') AS ended_by
FROM entries AS e LEFT JOIN made ON made.source_id = e.id
WHERE e.stream_id = :stream_id AND e.ended_at IS NULL
  AND e.number IN (SELECT value FROM json_each(:added))
  AND (made.source_id IS NULL OR made.returns = 1)
ORDER BY e.number;

-- name: replaced
-- Entries that a change ended, if nothing happened to them since. What it compressed returns if what
-- was made of it has just been ended and no other line tells of it, even if it was brought back and
-- compressed again in between: else nothing would tell of it.
SELECT number FROM entries
WHERE stream_id = :stream_id AND number IN (SELECT value FROM json_each(:replaced))
  AND ((ended_by IN ('superseded', 'expired') AND ended_at = :ended_at)
    OR (ended_by = 'compressed' AND EXISTS (
        SELECT 1 FROM entry_sources AS s JOIN entries AS made ON made.id = s.entry_id
        WHERE s.source_id = entries.id
          AND made.number IN (SELECT value FROM json_each(:ended))
    ) AND NOT EXISTS (
        SELECT 1 FROM entry_sources AS s JOIN entries AS made ON made.id = s.entry_id
        WHERE s.source_id = entries.id AND made.ended_at IS NULL
    )))
ORDER BY number;

-- name: recent_of
-- The newest changes of the streams of a chat, or of its group's stream alone, that tell anything.
SELECT r.id, r.at, r.by, r.why, r.before, r.after, s.kind AS scope_kind, s.key
FROM chats AS c
JOIN streams AS t ON t.chat_id = c.id
JOIN scopes AS s ON s.id = t.scope_id
JOIN revisions AS r ON r.stream_id = t.id
WHERE c.bot_id = :bot_id AND c.kind = :kind AND c.peer_id = :peer_id
  AND (:members OR s.kind = 'group')
  AND (json_type(r.before, '$.entries[0]') IS NOT NULL
    OR json_type(r.after, '$.entries[0]') IS NOT NULL
    OR json_type(r.before, '$.summary') IS NOT NULL
    OR json_type(r.after, '$.summary') IS NOT NULL)
ORDER BY r.id DESC LIMIT :limit;

-- name: of_chat$
-- Whether a change is one of those.
SELECT 1 FROM revisions AS r
JOIN streams AS t ON t.id = r.stream_id
JOIN scopes AS s ON s.id = t.scope_id
JOIN chats AS c ON c.id = t.chat_id
WHERE r.id = :id AND c.bot_id = :bot_id AND c.kind = :kind AND c.peer_id = :peer_id
  AND (:members OR s.kind = 'group');

-- name: of_task
-- What one run of a task changed, stream by stream.
SELECT r.*, s.bot_id, s.kind AS scope_kind, s.key, c.kind, c.peer_id
FROM revisions AS r
JOIN streams AS t ON t.id = r.stream_id
JOIN scopes AS s ON s.id = t.scope_id
JOIN chats AS c ON c.id = t.chat_id
WHERE r.task_id = :task_id
ORDER BY r.id;

-- name: drop_old!
-- Nobody undoes what is so long ago.
DELETE FROM revisions WHERE at < :before;
