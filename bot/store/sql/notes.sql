-- name: streams_with_notes
-- All streams that hold living notes.
SELECT s.bot_id, s.kind AS scope_kind, s.key, c.kind, c.peer_id
FROM streams AS t
JOIN scopes AS s ON s.id = t.scope_id
JOIN chats AS c ON c.id = t.chat_id
WHERE EXISTS (
    SELECT 1 FROM entries WHERE stream_id = t.id AND document = 'note' AND ended_at IS NULL
)
ORDER BY t.id;

-- name: streams_with_notes_here
-- Those of one chat.
SELECT s.bot_id, s.kind AS scope_kind, s.key, c.kind, c.peer_id
FROM chats AS c
JOIN streams AS t ON t.chat_id = c.id
JOIN scopes AS s ON s.id = t.scope_id
WHERE c.bot_id = :bot_id AND c.kind = :kind AND c.peer_id = :peer_id AND EXISTS (
    SELECT 1 FROM entries WHERE stream_id = t.id AND document = 'note' AND ended_at IS NULL
)
ORDER BY t.id;
