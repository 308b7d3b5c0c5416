-- name: all_settings
-- Every stored value, global ones without a chat.
SELECT s.key, s.value, s.changed_at, s.changed_by, c.bot_id, c.kind, c.peer_id
FROM settings AS s LEFT JOIN chats AS c ON c.id = s.chat_id;

-- name: put_global!
-- One value for all chats.
INSERT INTO settings (key, chat_id, value, changed_at, changed_by)
VALUES (:key, NULL, :value, :at, :by)
ON CONFLICT (key, coalesce(chat_id, 0)) DO UPDATE
SET value = excluded.value, changed_at = excluded.changed_at, changed_by = excluded.changed_by;

-- name: put_for_chat!
-- One value for one chat.
INSERT INTO settings (key, chat_id, value, changed_at, changed_by)
SELECT :key, c.id, :value, :at, :by FROM chats AS c
WHERE c.bot_id = :bot_id AND c.kind = :kind AND c.peer_id = :peer_id
ON CONFLICT (key, coalesce(chat_id, 0)) DO UPDATE
SET value = excluded.value, changed_at = excluded.changed_at, changed_by = excluded.changed_by;

-- name: remove_global!
-- Back to the default.
DELETE FROM settings WHERE key = :key AND chat_id IS NULL;

-- name: remove_for_chat!
-- Back to the global value.
DELETE FROM settings WHERE key = :key AND chat_id = (
    SELECT id FROM chats WHERE bot_id = :bot_id AND kind = :kind AND peer_id = :peer_id
);
