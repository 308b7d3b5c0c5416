-- name: latest
-- The newest messages of a chat that may be found.
SELECT messages.*, m.user_id, m.anonymous
FROM messages JOIN members AS m ON m.id = messages.member_id
WHERE chat_id = (
    SELECT id FROM chats WHERE bot_id = :bot_id AND kind = :kind AND peer_id = :peer_id
) AND sent_at >= :since AND sent_at < :until
  AND messages.kind = 'chat' AND text <> '' AND recalled_at IS NULL AND forgotten_at IS NULL
  AND (:sender_id IS NULL OR m.user_id = :sender_id)
  AND messages.id NOT IN (SELECT value FROM json_each(:hidden))
  AND NOT EXISTS (
      SELECT 1 FROM json_each(:keywords) AS k WHERE instr(lower(text), lower(k.value)) = 0
  )
ORDER BY sent_at DESC, messages.id DESC
LIMIT :limit;

-- name: fitting
-- The messages of a chat that hold most of some words, with how many.
SELECT * FROM (
    SELECT messages.*, m.user_id, m.anonymous, (
        SELECT count(*) FROM json_each(:words) AS w WHERE instr(lower(text), w.value) > 0
    ) AS fit
    FROM messages JOIN members AS m ON m.id = messages.member_id
    WHERE chat_id = (
        SELECT id FROM chats WHERE bot_id = :bot_id AND kind = :kind AND peer_id = :peer_id
    ) AND sent_at >= :since AND sent_at < :until
      AND messages.kind = 'chat' AND text <> '' AND recalled_at IS NULL AND forgotten_at IS NULL
      AND (:sender_id IS NULL OR m.user_id = :sender_id)
      AND messages.id NOT IN (SELECT value FROM json_each(:hidden))
) WHERE fit > 0
ORDER BY fit DESC, sent_at DESC, id DESC
LIMIT :limit;

-- name: said_at$
-- When a message of a chat was sent.
SELECT sent_at FROM messages
WHERE id = :id AND chat_id = (
    SELECT id FROM chats WHERE bot_id = :bot_id AND kind = :kind AND peer_id = :peer_id
);

-- name: following
-- The oldest messages of a chat from a moment on that may be found.
SELECT messages.*, m.user_id, m.anonymous
FROM messages JOIN members AS m ON m.id = messages.member_id
WHERE chat_id = (
    SELECT id FROM chats WHERE bot_id = :bot_id AND kind = :kind AND peer_id = :peer_id
) AND sent_at >= :since AND sent_at < :until
  AND messages.kind = 'chat' AND text <> '' AND recalled_at IS NULL AND forgotten_at IS NULL
  AND (:sender_id IS NULL OR m.user_id = :sender_id)
  AND messages.id NOT IN (SELECT value FROM json_each(:hidden))
ORDER BY sent_at, messages.id
LIMIT :limit;
