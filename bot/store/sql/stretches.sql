-- name: standing
-- Where some messages of a chat stand; those that no search may show are absent.
SELECT messages.id, sent_at FROM json_each(:ids) AS j
CROSS JOIN messages ON messages.id = j.value
JOIN members AS m ON m.id = messages.member_id
WHERE chat_id = :chat_id AND kind = 'chat' AND text <> ''
  AND recalled_at IS NULL AND forgotten_at IS NULL AND messages.id > m.hidden_until;

-- name: up_to
-- A message and those before it, the nearest first.
SELECT messages.id, platform_id, direction, sent_at, received_at, local_date, sequence, sender_name,
    text, reply_to, m.user_id, m.anonymous
FROM messages JOIN members AS m ON m.id = messages.member_id
WHERE chat_id = :chat_id AND (sent_at, messages.id) <= (:sent_at, :id)
  AND messages.kind = 'chat' AND text <> '' AND recalled_at IS NULL AND forgotten_at IS NULL
  AND messages.id > m.hidden_until
ORDER BY sent_at DESC, messages.id DESC
LIMIT :limit;

-- name: behind
-- Those behind a message, the nearest first.
SELECT messages.id, platform_id, direction, sent_at, received_at, local_date, sequence, sender_name,
    text, reply_to, m.user_id, m.anonymous
FROM messages JOIN members AS m ON m.id = messages.member_id
WHERE chat_id = :chat_id AND (sent_at, messages.id) > (:sent_at, :id)
  AND messages.kind = 'chat' AND text <> '' AND recalled_at IS NULL AND forgotten_at IS NULL
  AND messages.id > m.hidden_until
ORDER BY sent_at, messages.id
LIMIT :limit;

-- name: answered
-- What a message quotes. Platform ids are used again: the newest that was there before it is meant.
SELECT messages.id, platform_id, direction, sent_at, received_at, local_date, sequence, sender_name,
    text, reply_to, m.user_id, m.anonymous
FROM messages JOIN members AS m ON m.id = messages.member_id
WHERE chat_id = :chat_id AND platform_id = :platform_id AND sent_at <= :sent_at
  AND messages.id <> :id AND messages.kind = 'chat' AND text <> ''
  AND recalled_at IS NULL AND forgotten_at IS NULL
  AND messages.id > m.hidden_until
ORDER BY sent_at DESC LIMIT 1;

-- name: latest
-- The newest messages of a chat within bounds.
SELECT messages.*, m.user_id, m.anonymous
FROM messages JOIN members AS m ON m.id = messages.member_id
WHERE chat_id = :chat_id AND sent_at >= :since AND sent_at < :until
  AND (:sender_id IS NULL OR m.user_id = :sender_id)
  AND messages.id NOT IN (SELECT value FROM json_each(:hidden))
  AND messages.kind = 'chat' AND text <> '' AND recalled_at IS NULL AND forgotten_at IS NULL
  AND messages.id > m.hidden_until
ORDER BY sent_at DESC, messages.id DESC LIMIT :limit;
