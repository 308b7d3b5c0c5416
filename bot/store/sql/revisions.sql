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
-- Entries that a change ended, if nothing happened to them since. What it compressed returns only
-- if what was made of it has just been ended.
SELECT number FROM entries
WHERE stream_id = :stream_id AND ended_at = :ended_at
  AND number IN (SELECT value FROM json_each(:replaced))
  AND (ended_by = 'superseded' OR (ended_by = 'compressed' AND EXISTS (
      SELECT 1 FROM entry_sources AS s JOIN entries AS made ON made.id = s.entry_id
      WHERE s.source_id = entries.id
        AND made.number IN (SELECT value FROM json_each(:ended))
  )))
ORDER BY number;
