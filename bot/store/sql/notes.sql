-- name: streams_with_notes
-- The streams that hold living notes, of one chat or of all.
SELECT DISTINCT s.bot_id, s.kind AS scope_kind, s.key, c.kind, c.peer_id, t.id
FROM entries AS e
JOIN streams AS t ON t.id = e.stream_id
JOIN scopes AS s ON s.id = t.scope_id
JOIN chats AS c ON c.id = t.chat_id
WHERE e.document = 'note' AND e.ended_at IS NULL
  AND (:peer_id IS NULL OR (c.bot_id = :bot_id AND c.kind = :kind AND c.peer_id = :peer_id))
ORDER BY t.id;
