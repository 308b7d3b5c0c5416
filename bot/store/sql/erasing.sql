-- name: hidden_members
-- Everybody some of whose messages are hidden and not erased yet.
SELECT id, bot_id, user_id, hidden_until, erased_until FROM members
WHERE erased_until < hidden_until AND hidden_until > 0
ORDER BY hidden_until;

-- name: hidden_member^
-- One of them.
SELECT id, bot_id, user_id, hidden_until, erased_until FROM members
WHERE bot_id = :bot_id AND user_id = :user_id AND erased_until < hidden_until;

-- name: chats_of
-- Where somebody ever said something.
SELECT c.id, c.kind, c.peer_id FROM chats AS c
WHERE c.bot_id = :bot_id AND (
    (c.kind = 'private' AND c.peer_id = :user_id)
    OR EXISTS (SELECT 1 FROM memberships AS s WHERE s.chat_id = c.id AND s.member_id = :member_id)
)
ORDER BY c.id;

-- name: leaning
-- The messages of somebody on which memory of a chat rests, or its conversation: all of those that
-- prove something or end it, or that one of the newest turns shows; and one for each summary that was
-- made from any, that of the conversation the first that it read.
WITH newest (id) AS (
    SELECT id FROM turns WHERE chat_id = :chat_id AND state IN ('sending', 'sent')
    ORDER BY id DESC LIMIT :turns
),
resting (message_id) AS (
    SELECT pm.message_id FROM streams AS t
    JOIN entries AS e ON e.stream_id = t.id
    JOIN proofs AS p ON p.entry_id = e.id
    JOIN proof_messages AS pm ON pm.proof_id = p.id
    WHERE t.chat_id = :chat_id
    UNION
    SELECT em.message_id FROM streams AS t
    JOIN entries AS e ON e.stream_id = t.id
    JOIN ending_messages AS em ON em.entry_id = e.id
    WHERE t.chat_id = :chat_id
    UNION
    SELECT (
        SELECT r.message_id FROM summary_messages AS r
        JOIN messages AS m ON m.id = r.message_id
        WHERE r.stream_id = t.id AND m.member_id = :member_id AND m.id <= :hidden_until LIMIT 1
    ) FROM streams AS t WHERE t.chat_id = :chat_id
    UNION
    SELECT (
        SELECT r.message_id FROM session_messages AS r
        JOIN messages AS m ON m.id = r.message_id
        WHERE r.chat_id = :chat_id AND m.member_id = :member_id AND m.id <= :hidden_until
        ORDER BY r.turn_id LIMIT 1
    )
    UNION
    SELECT message_id FROM turn_lines WHERE turn_id IN (SELECT id FROM newest)
    UNION
    SELECT message_id FROM tool_messages WHERE turn_id IN (SELECT id FROM newest)
)
SELECT m.id FROM resting CROSS JOIN messages AS m ON m.id = resting.message_id
WHERE m.member_id = :member_id AND m.id <= :hidden_until
ORDER BY m.id;

-- name: doomed
-- The texts of entries that rest on messages of somebody and fall with all of theirs.
SELECT DISTINCT e.text FROM json_each(:ids) AS j
CROSS JOIN proof_messages AS pm ON pm.message_id = j.value
CROSS JOIN proofs AS p ON p.id = pm.proof_id
CROSS JOIN entries AS e ON e.id = p.entry_id
WHERE e.text <> '' AND (p.derived = 1 OR NOT EXISTS (
    SELECT 1 FROM proofs AS other WHERE other.entry_id = e.id AND NOT EXISTS (
        SELECT 1 FROM proof_messages AS o CROSS JOIN messages AS m ON m.id = o.message_id
        WHERE o.proof_id = other.id AND m.member_id = :member_id AND m.id <= :hidden_until
    )
));

-- name: theirs
-- The messages of somebody among some rows.
SELECT id FROM messages WHERE id > :after AND id <= :until AND member_id = :member_id
ORDER BY id LIMIT :limit;

-- name: with_text$
-- How many of some messages still have a text.
SELECT count(*) FROM messages WHERE id IN (SELECT value FROM json_each(:ids)) AND text <> '';

-- name: streams_in
-- Every stream that comes from a chat.
SELECT id FROM streams WHERE chat_id = :chat_id ORDER BY id;

-- name: telling_revisions
-- The changes of a stream that tell of something that rests on messages of somebody.
SELECT id FROM revisions
WHERE stream_id = :stream_id AND EXISTS (
    SELECT 1 FROM json_tree(json_array(json(before), json(after))) AS j
    CROSS JOIN messages AS m ON m.id = j.atom
    WHERE j.type = 'integer' AND (j.fullkey LIKE '%.proofs%' OR j.fullkey LIKE '%.messages%')
      AND m.member_id = :member_id AND m.id <= :hidden_until
)
ORDER BY id;

-- name: summarised_since$
-- The first change of a stream whose summary read a message of somebody.
SELECT min(id) FROM revisions
WHERE stream_id = :stream_id AND EXISTS (
    SELECT 1 FROM json_each(after, '$.summary.messages') AS j
    CROSS JOIN messages AS m ON m.id = j.value
    WHERE m.member_id = :member_id AND m.id <= :hidden_until
);

-- name: blank_summaries!
-- Every summary was written from the one before, so the later ones tell of it too.
UPDATE revisions
SET before = json_remove(before, '$.summary'), after = json_remove(after, '$.summary')
WHERE stream_id = :stream_id AND id >= :since
  AND (json_type(before, '$.summary') IS NOT NULL OR json_type(after, '$.summary') IS NOT NULL);

-- name: blank_revisions!
-- The record of changes tells nothing of them any more.
UPDATE revisions SET before = '{}', after = '{}' WHERE id IN (SELECT value FROM json_each(:ids));

-- name: note_erased!
-- So far all is erased.
UPDATE members SET erased_until = :until WHERE id = :member_id AND erased_until < :until;

-- name: kept_too_long
-- Messages that were kept for a turn long enough, or, by a clock that was set back, for too long.
SELECT m.id, c.bot_id, c.kind, c.peer_id FROM messages AS m JOIN chats AS c ON c.id = m.chat_id
WHERE m.kept_until IS NOT NULL AND (m.kept_until <= :now OR m.kept_until > :latest)
ORDER BY m.kept_until LIMIT :limit;
