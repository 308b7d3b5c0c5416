-- name: open_count$
-- How many reminders of a person wait, wherever.
SELECT count(*) FROM reminders AS r
JOIN members AS m ON m.id = r.member_id
WHERE m.bot_id = :bot_id AND m.user_id = :user_id AND r.state = 'open';

-- name: drop_earlier!
-- A turn that begins again may ask for the same once more: what an earlier try of it left goes.
UPDATE reminders SET state = 'dropped', text = '', ended_at = :at
WHERE state = 'open' AND created_at < :begun_at AND id IN (
    SELECT reminder_id FROM reminder_messages
    WHERE message_id IN (SELECT value FROM json_each(:message_ids))
);

-- name: add_reminder<!
-- A reminder of who wrote some messages of a chat.
INSERT INTO reminders (chat_id, member_id, due_at, next_at, text, state, created_at)
SELECT c.id, m.id, :due_at, :due_at, :text, 'open', :at
FROM chats AS c, members AS m
WHERE c.bot_id = :bot_id AND c.kind = :kind AND c.peer_id = :peer_id
  AND m.bot_id = :bot_id AND m.user_id = :user_id;

-- name: add_messages!
-- What it was made from.
INSERT INTO reminder_messages (reminder_id, message_id)
SELECT :id, value FROM json_each(:message_ids);

-- name: gone_count$
-- How many messages of a list were recalled, forgotten or hidden; what is kept for its turn is not.
SELECT count(*) FROM messages JOIN members AS m ON m.id = messages.member_id
WHERE messages.id IN (SELECT value FROM json_each(:message_ids))
  AND (recalled_at IS NOT NULL OR messages.id <= m.hidden_until
      OR (forgotten_at IS NOT NULL AND kept_until IS NULL));

-- name: forget_ended!
-- Those that ended long ago.
DELETE FROM reminders WHERE ended_at < :before;

-- name: due
-- The reminders whose time has come, of accounts that can send, where nobody is muted; with all that
-- decides whether they may be sent. Of one chat only so many, so that a crowd there holds up no other.
SELECT r.id, r.due_at, r.text, r.attempts, c.bot_id, c.kind, c.peer_id, m.user_id,
    c.removed_at IS NOT NULL AS removed, b.user_id IS NOT NULL AS blocked,
    s.left_at IS NOT NULL AS has_left,
    (SELECT max(message_id) FROM reminder_messages WHERE reminder_id = r.id) AS source_row
FROM (
    SELECT *, row_number() OVER (PARTITION BY chat_id ORDER BY next_at, id) AS place
    FROM reminders WHERE state = 'open' AND next_at <= :now
) AS r
JOIN chats AS c ON c.id = r.chat_id
JOIN members AS m ON m.id = r.member_id
LEFT JOIN blocks AS b ON b.bot_id = m.bot_id AND b.user_id = m.user_id
LEFT JOIN memberships AS s ON s.chat_id = r.chat_id AND s.member_id = r.member_id
WHERE r.place <= :of_a_chat AND c.muted_until <= :now
  AND c.bot_id IN (SELECT value FROM json_each(:bot_ids))
ORDER BY r.place, r.next_at, r.id
LIMIT :limit;

-- name: next_due$
-- When the next one is due, of accounts that can send.
SELECT min(r.next_at) FROM reminders AS r
JOIN chats AS c ON c.id = r.chat_id
WHERE r.state = 'open' AND r.next_at > :now
  AND c.bot_id IN (SELECT value FROM json_each(:bot_ids));

-- name: claim!
-- One row is changed if it is still to be sent.
UPDATE reminders SET state = 'sending', tried_at = :at WHERE id = :id AND state = 'open';

-- name: end!
-- How it ended. Its text is no longer needed.
UPDATE reminders
SET state = :state, text = '', ended_at = :at, sent_row = :sent_row, error = :error
WHERE id = :id AND state IN ('open', 'sending');

-- name: blank_sent!
-- What asked for it was taken back while it was being sent: the stored copy keeps no text.
UPDATE messages SET text = '', segments = '[]'
WHERE id = :sent_row AND EXISTS (
    SELECT 1 FROM reminder_messages AS rm JOIN messages AS m ON m.id = rm.message_id
    WHERE rm.reminder_id = :id AND (m.recalled_at IS NOT NULL OR m.forgotten_at IS NOT NULL)
);

-- name: put_off!
-- The platform did not take it, or is gone: it is tried again.
UPDATE reminders
SET state = 'open', next_at = :next_at, attempts = attempts + :failed, error = :error
WHERE id = :id AND state = 'sending';

-- name: settle!
-- What a dead process was sending is taken as sent, never repeated; also what it tried before the
-- clock was set back.
UPDATE reminders
SET state = 'sent', text = '', ended_at = :at, error = 'the process ended while sending'
WHERE state = 'sending' AND (tried_at < :before OR tried_at > :at);

-- name: open_of
-- What a person waits for: in one chat, or in all of theirs.
SELECT r.id, r.due_at, r.text, c.bot_id, c.kind, c.peer_id, m.user_id
FROM reminders AS r
JOIN chats AS c ON c.id = r.chat_id
JOIN members AS m ON m.id = r.member_id
WHERE m.bot_id = :bot_id AND m.user_id = :user_id AND r.state = 'open'
  AND (:everywhere OR (c.kind = :kind AND c.peer_id = :peer_id))
ORDER BY r.due_at, r.id;

-- name: cancel!
-- The person does not want them any more.
UPDATE reminders SET state = 'cancelled', text = '', ended_at = :at
WHERE state = 'open' AND id IN (SELECT value FROM json_each(:ids));
