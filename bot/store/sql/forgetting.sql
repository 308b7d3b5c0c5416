-- name: told^
-- An entry of a stream that still has its text, living or ended.
SELECT e.id, e.stream_id, e.created_at, t.scope_id FROM entries AS e
JOIN streams AS t ON t.id = e.stream_id
JOIN scopes AS s ON s.id = t.scope_id
JOIN chats AS c ON c.id = t.chat_id
WHERE s.bot_id = :bot_id AND s.kind = :scope_kind AND s.key = :key
  AND c.bot_id = :bot_id AND c.kind = :kind AND c.peer_id = :peer_id
  AND e.number = :number AND e.text <> '';

-- name: with_sources
-- An entry and all that it was made from, in however many steps.
WITH RECURSIVE below (id) AS (
    SELECT :entry_id
    UNION
    SELECT s.source_id FROM below JOIN entry_sources AS s ON s.entry_id = below.id
)
SELECT e.id, e.number, e.text FROM below JOIN entries AS e ON e.id = below.id;

-- name: made_of
-- All that was made from some entries, in however many steps, without them.
WITH RECURSIVE above (id) AS (
    SELECT value FROM json_each(:entry_ids)
    UNION
    SELECT s.entry_id FROM above JOIN entry_sources AS s ON s.source_id = above.id
)
SELECT e.id, e.number, e.text FROM above JOIN entries AS e ON e.id = above.id
WHERE e.id NOT IN (SELECT value FROM json_each(:entry_ids));

-- name: rests_on
-- The messages that some entries rest on.
SELECT DISTINCT msg.id, m.user_id, msg.direction, min(msg.sent_at, msg.received_at) AS since
FROM proofs AS p
JOIN proof_messages AS pm ON pm.proof_id = p.id
JOIN messages AS msg ON msg.id = pm.message_id
JOIN members AS m ON m.id = msg.member_id
WHERE p.entry_id IN (SELECT value FROM json_each(:entry_ids))
ORDER BY msg.id;

-- name: leaning
-- Living entries that rest on some messages, some entries apart.
SELECT DISTINCT e.id FROM proof_messages AS pm
JOIN proofs AS p ON p.id = pm.proof_id
JOIN entries AS e ON e.id = p.entry_id
WHERE pm.message_id IN (SELECT value FROM json_each(:message_ids)) AND e.ended_at IS NULL
  AND e.id NOT IN (SELECT value FROM json_each(:entry_ids));

-- name: ended_among$
-- How many of some entries live no more.
SELECT count(*) FROM entries
WHERE id IN (SELECT value FROM json_each(:entry_ids)) AND ended_at IS NOT NULL;

-- name: drop_proofs!
-- Nothing proves them any more.
DELETE FROM proofs WHERE entry_id IN (SELECT value FROM json_each(:entry_ids));

-- name: drop_endings!
-- Nor does anything tell why they ended.
DELETE FROM ending_messages WHERE entry_id IN (SELECT value FROM json_each(:entry_ids));

-- name: end_forgotten!
-- Their text is gone; that there was an entry stays.
UPDATE entries
SET text = '', ended_at = :at, ended_by = 'forgotten', ended_why = '', date = NULL, type = NULL
WHERE id IN (SELECT value FROM json_each(:entry_ids));

-- name: blank_revisions!
-- The record of changes tells nothing of them any more. Looking for the digits first spares reading
-- most of the JSON.
UPDATE revisions SET before = '{}', after = '{}'
WHERE stream_id = :stream_id
  AND EXISTS (
      SELECT 1 FROM json_each(:numbers) AS n
      WHERE instr(before, '"number": ' || n.value || ',') > 0
         OR instr(after, '"number": ' || n.value || ',') > 0
         OR instr(before, '"number":' || n.value || ',') > 0
         OR instr(after, '"number":' || n.value || ',') > 0
  )
  AND EXISTS (
      SELECT 1 FROM json_tree(json_array(json(before), json(after)))
      WHERE key = 'number' AND atom IN (SELECT value FROM json_each(:numbers))
  );

-- name: names_of
-- What a member was called in a chat, with since when.
SELECT n.name, n.first_seen FROM names AS n JOIN members AS m ON m.id = n.member_id
WHERE m.bot_id = :bot_id AND m.user_id = :user_id
  AND (n.chat_id IS NULL OR n.chat_id = (
      SELECT id FROM chats WHERE bot_id = :bot_id AND kind = :kind AND peer_id = :peer_id
  ));
