-- name: place^
-- Where is searched: the chat's row, from when to when something was said there, the sender's row,
-- and whether all of it is indexed.
SELECT c.id AS chat_id, m.id AS member_id, s.filled_from = 0 AS is_whole,
    (SELECT min(sent_at) FROM messages WHERE chat_id = c.id) AS oldest,
    (SELECT max(sent_at) FROM messages WHERE chat_id = c.id) AS newest
FROM chats AS c
CROSS JOIN message_index_state AS s
LEFT JOIN members AS m ON m.bot_id = c.bot_id AND m.user_id = :sender_id
WHERE c.bot_id = :bot_id AND c.kind = :kind AND c.peer_id = :peer_id;

-- name: matches
-- The newest rows that match, by arrival. Whether they may be shown, other queries know.
SELECT rowid FROM message_index
WHERE message_index MATCH :match AND rowid < :below
ORDER BY rowid DESC LIMIT :limit;

-- name: texts
-- What of some rows may be found: of this chat, within bounds.
SELECT m.id, m.sent_at, m.text FROM json_each(:ids) AS j
CROSS JOIN messages AS m ON m.id = j.value
JOIN members AS p ON p.id = m.member_id
WHERE m.chat_id = :chat_id AND (:member_id IS NULL OR m.member_id = :member_id)
  AND m.sent_at >= :since AND m.sent_at < :until
  AND m.kind = 'chat' AND m.text <> '' AND m.recalled_at IS NULL AND m.forgotten_at IS NULL
  AND m.id > p.hidden_until;

-- name: times
-- When some rows were said.
SELECT m.id, m.sent_at FROM json_each(:ids) AS j CROSS JOIN messages AS m ON m.id = j.value;

-- name: sample^
-- The newest of a chat: how many, and since when. What is older is taken to be as dense.
SELECT count(*) AS count, min(sent_at) AS oldest FROM (
    SELECT sent_at FROM messages WHERE chat_id = :chat_id ORDER BY sent_at DESC LIMIT :limit
);

-- name: named
-- Members of a chat by a name of theirs, of today or of the past, that stands in a text.
SELECT DISTINCT n.member_id, n.name FROM memberships AS s
CROSS JOIN names AS n ON n.member_id = s.member_id
WHERE s.chat_id = :chat_id AND (n.chat_id IS NULL OR n.chat_id = s.chat_id)
  AND length(n.name) > 1 AND instr(lower(:text), lower(n.name)) > 0;
