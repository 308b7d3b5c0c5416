-- name: recent
-- The newest messages of a chat by time; recalled ones are tombstones and left out, and so are
-- forgotten ones.
SELECT messages.*, m.user_id, m.anonymous
FROM messages JOIN members AS m ON m.id = messages.member_id
WHERE chat_id = (
    SELECT id FROM chats WHERE bot_id = :bot_id AND kind = :kind AND peer_id = :peer_id
) AND recalled_at IS NULL AND forgotten_at IS NULL AND messages.id > m.hidden_until
ORDER BY sent_at DESC, messages.id DESC
LIMIT :limit;

-- name: told
-- Of the newest messages of a chat by time, those that were stored after a row, without what only an
-- answer needs to know of a message: its segments and mentions. The newest are found in the index
-- alone, so that only the rows of later ones are read; tombstones take places among them.
SELECT messages.id, platform_id, direction, messages.kind, sent_at, received_at, local_date,
    sequence, sender_name, text, recalled_at, forgotten_at, m.user_id, m.anonymous
FROM messages JOIN members AS m ON m.id = messages.member_id
WHERE messages.id IN (
    SELECT id FROM (
        SELECT id FROM messages
        WHERE chat_id = (
            SELECT id FROM chats WHERE bot_id = :bot_id AND kind = :kind AND peer_id = :peer_id
        )
        ORDER BY sent_at DESC, id DESC
        LIMIT :limit
    ) WHERE id > :after_id
) AND recalled_at IS NULL AND forgotten_at IS NULL AND messages.id > m.hidden_until;

-- name: newest_with_id^
-- Platform ids are reused; the newest row with one is meant.
SELECT messages.*, m.user_id, m.anonymous, messages.id <= m.hidden_until AS hidden
FROM messages JOIN members AS m ON m.id = messages.member_id
WHERE chat_id = (
    SELECT id FROM chats WHERE bot_id = :bot_id AND kind = :kind AND peer_id = :peer_id
) AND platform_id = :platform_id
ORDER BY sent_at DESC
LIMIT 1;

-- name: unanswered
-- Messages of people since a moment that no turn began to answer.
SELECT messages.*, m.user_id, m.anonymous, c.bot_id, c.kind AS chat_kind, c.peer_id
FROM messages
JOIN members AS m ON m.id = messages.member_id
JOIN chats AS c ON c.id = messages.chat_id
WHERE messages.received_at >= :since AND messages.sent_at >= :since
  AND c.bot_id = :bot_id AND direction = 'inbound' AND messages.kind = 'chat'
  AND recalled_at IS NULL AND (forgotten_at IS NULL OR kept_until IS NOT NULL)
  AND messages.id > m.hidden_until
  AND NOT EXISTS (
      SELECT 1 FROM turn_lines AS l WHERE l.message_id = messages.id AND l.part = 'question'
  )
ORDER BY messages.id;

-- name: names_in_chat
-- What the people of a list are called in a chat: card, else nickname.
SELECT m.user_id, coalesce(nullif(s.card, ''), m.nickname) AS name
FROM members AS m
LEFT JOIN memberships AS s ON s.member_id = m.id AND s.chat_id = (
    SELECT id FROM chats WHERE bot_id = :bot_id AND kind = :kind AND peer_id = :peer_id
)
WHERE m.bot_id = :bot_id AND m.user_id IN (SELECT value FROM json_each(:user_ids));

-- name: replace_text!
-- A merged forward is stored at once and its lines when they were fetched.
UPDATE messages SET text = :text
WHERE id = :id AND recalled_at IS NULL AND (forgotten_at IS NULL OR kept_until IS NOT NULL);

-- name: blank!
-- Messages of the bot keep no text, as when what they were made from was taken back meanwhile.
UPDATE messages SET text = '', segments = '[]' WHERE id IN (SELECT value FROM json_each(:ids));

-- name: take_back!
-- A recall leaves a tombstone without text.
UPDATE messages
SET recalled_at = :at, recalled_by = :by, text = '', segments = '[]', mentions = '[]', counted = 0,
    kept_until = NULL
WHERE id = :id AND recalled_at IS NULL;

-- name: set_apart!
-- Its sender had it forgotten: it stays in the record, and nothing is made of it any more.
UPDATE messages SET forgotten_at = :at, counted = 0 WHERE id = :id AND forgotten_at IS NULL;

-- name: chat_row$
-- The row of a chat.
SELECT id FROM chats WHERE bot_id = :bot_id AND kind = :kind AND peer_id = :peer_id;

-- name: of_row^
-- One message.
SELECT * FROM messages WHERE id = :id;

-- name: uncount!
-- Recalled messages no longer wait for reflection. While others wait, the times stay: at worst a
-- task is due a little early.
UPDATE cursors
SET pending = max(0, pending - gone.count),
    oldest_pending_at = CASE WHEN pending > gone.count THEN oldest_pending_at END,
    newest_pending_at = CASE WHEN pending > gone.count THEN newest_pending_at END
FROM (
    SELECT k.chat_id, k.task, count(*) AS count FROM json_each(:ids) AS j
    CROSS JOIN messages AS m ON m.id = j.value AND m.counted = 1
    CROSS JOIN cursors AS k ON k.chat_id = m.chat_id AND k.last_id < m.id
    GROUP BY k.chat_id, k.task
) AS gone
WHERE cursors.chat_id = gone.chat_id AND cursors.task = gone.task;

-- name: keep_early_recall!
-- A recall that came before its message.
INSERT INTO early_recalls (chat_id, platform_id, recalled_at, recalled_by)
SELECT id, :platform_id, :at, :by FROM chats
WHERE bot_id = :bot_id AND kind = :kind AND peer_id = :peer_id
ON CONFLICT (chat_id, platform_id) DO UPDATE SET recalled_at = excluded.recalled_at;

-- name: forget_early_recalls!
-- Those that waited in vain.
DELETE FROM early_recalls WHERE recalled_at < :before;

-- name: drop_lines!
-- The lines and quotes of messages that are gone leave every stored turn.
DELETE FROM turn_lines WHERE message_id IN (SELECT value FROM json_each(:ids));

-- name: drop_reminder_lines!
-- So do those of the reminders that were made from them.
DELETE FROM turn_lines WHERE message_id IN (
    SELECT r.sent_row FROM reminder_messages AS rm
    JOIN reminders AS r ON r.id = rm.reminder_id
    WHERE rm.message_id IN (SELECT value FROM json_each(:ids))
);

-- name: blank_sent_reminders!
-- The stored copies of those reminders lose their text.
UPDATE messages SET text = '', segments = '[]' WHERE id IN (
    SELECT r.sent_row FROM reminder_messages AS rm
    JOIN reminders AS r ON r.id = rm.reminder_id
    WHERE rm.message_id IN (SELECT value FROM json_each(:ids))
);

-- name: drop_reminders!
-- Those that wait are not sent any more.
UPDATE reminders SET state = 'dropped', text = '', ended_at = :at
WHERE state = 'open' AND id IN (
    SELECT reminder_id FROM reminder_messages
    WHERE message_id IN (SELECT value FROM json_each(:ids))
);

-- name: empty_turns!
-- A turn whose question is gone leaves the conversation with its answer, also one that is being
-- sent.
UPDATE turns SET state = 'recalled'
WHERE state IN ('sending', 'sent')
  AND id IN (
      SELECT turn_id FROM turn_lines
      WHERE message_id IN (SELECT value FROM json_each(:ids)) AND part = 'question'
  )
  AND NOT EXISTS (
      SELECT 1 FROM turn_lines AS rest
      WHERE rest.turn_id = turns.id AND rest.part = 'question'
        AND rest.message_id NOT IN (SELECT value FROM json_each(:ids))
  );

-- name: close_turns!
-- A turn leaves the conversation with any part of its question, when that was not to be recorded.
UPDATE turns SET state = 'recalled'
WHERE state IN ('sending', 'sent') AND id IN (
    SELECT turn_id FROM turn_lines
    WHERE message_id IN (SELECT value FROM json_each(:ids)) AND part = 'question'
);

-- name: drop_answers!
-- So does what was answered.
DELETE FROM turn_lines WHERE part = 'answer' AND turn_id IN (
    SELECT turn_id FROM turn_lines
    WHERE message_id IN (SELECT value FROM json_each(:ids)) AND part = 'question'
);

-- name: said_in
-- In which chats some messages were said, with the earliest time of any in each.
SELECT chat_id, min(min(sent_at, received_at)) AS since FROM messages
WHERE id IN (SELECT value FROM json_each(:message_ids)) GROUP BY chat_id;

-- name: shown_in
-- The chats that have snapshots of a scope of which something rests on some messages.
WITH leaning (stream_id) AS (
    SELECT e.stream_id FROM proof_messages AS pm
    JOIN proofs AS p ON p.id = pm.proof_id
    JOIN entries AS e ON e.id = p.entry_id
    WHERE pm.message_id IN (SELECT value FROM json_each(:message_ids))
    UNION
    SELECT stream_id FROM summary_messages
    WHERE message_id IN (SELECT value FROM json_each(:message_ids))
)
SELECT DISTINCT n.chat_id FROM leaning
JOIN streams AS t ON t.id = leaning.stream_id
JOIN snapshots AS n ON n.scope_id = t.scope_id;

-- name: chat_rows
-- The rows of some chats.
SELECT c.id FROM json_each(:chats) AS one
JOIN chats AS c ON c.bot_id = one.value ->> 0 AND c.kind = one.value ->> 1
    AND c.peer_id = one.value ->> 2;

-- name: answer_lines
-- The answers of turns in some chats since a moment.
SELECT turn_id, position, text FROM turn_lines
WHERE part = 'answer' AND turn_id IN (
    SELECT id FROM turns
    WHERE chat_id IN (SELECT value FROM json_each(:chat_ids)) AND started_at >= :since
);

-- name: own_texts
-- What the account said in some chats since a moment.
SELECT id, text FROM messages
WHERE chat_id IN (SELECT value FROM json_each(:chat_ids)) AND sent_at >= :since
  AND direction = 'outbound' AND text <> '';

-- name: drop_answer_lines*!
-- An answer that quotes what is gone loses its text.
DELETE FROM turn_lines WHERE turn_id = :turn_id AND position = :position;

-- name: erase!
-- Their sender has opted out: a tombstone without text and name stays of each.
UPDATE messages
SET text = '', segments = '[]', mentions = '[]', sender_name = '', counted = 0, kept_until = NULL,
    forgotten_at = coalesce(forgotten_at, :at)
WHERE id IN (SELECT value FROM json_each(:ids));

-- name: said_by_rows
-- What some messages say.
SELECT text, segments FROM messages WHERE id IN (SELECT value FROM json_each(:ids));

-- name: by_rows
-- Some messages as they stand now; recalled and forgotten ones are left out, and so is what is kept
-- for one turn, unless it is asked for.
SELECT messages.*, m.user_id, m.anonymous, c.bot_id, c.kind AS chat_kind, c.peer_id
FROM messages
JOIN members AS m ON m.id = messages.member_id
JOIN chats AS c ON c.id = messages.chat_id
WHERE messages.id IN (SELECT value FROM json_each(:ids))
  AND recalled_at IS NULL AND (forgotten_at IS NULL OR (:kept AND kept_until IS NOT NULL))
  AND messages.id > m.hidden_until
ORDER BY messages.id;

-- name: kept
-- What is kept in a chat for the turn that answers it. Left to itself SQLite reads the whole chat.
SELECT id FROM messages INDEXED BY messages_kept
WHERE kept_until IS NOT NULL AND kept_until > 0 AND chat_id = (
    SELECT id FROM chats WHERE bot_id = :bot_id AND kind = :kind AND peer_id = :peer_id
);

-- name: as_it_is^
-- A message, also one that is gone.
SELECT messages.*, m.user_id, m.anonymous, c.bot_id, c.kind AS chat_kind, c.peer_id
FROM messages
JOIN members AS m ON m.id = messages.member_id
JOIN chats AS c ON c.id = messages.chat_id
WHERE messages.id = :id;

-- name: private_peer_of_own$
-- With whom the account had the private chat in which it sent a message last.
SELECT c.peer_id FROM messages JOIN chats AS c ON c.id = messages.chat_id
WHERE c.bot_id = :bot_id AND c.kind = 'private' AND platform_id = :platform_id
  AND direction = 'outbound' AND messages.received_at >= :since
ORDER BY messages.id DESC LIMIT 1;

-- name: erase_texts!
-- All that was said in a chat so far loses its text; the rows stay.
UPDATE messages
SET text = '', segments = '[]', mentions = '[]', counted = 0, kept_until = NULL,
    forgotten_at = coalesce(forgotten_at, :at)
WHERE chat_id = :chat_id;

-- name: erase_lines!
-- So does all that its turns showed.
DELETE FROM turn_lines WHERE turn_id IN (SELECT id FROM turns WHERE chat_id = :chat_id);

-- name: erase_reminders!
-- What was asked for there is not sent any more.
UPDATE reminders
SET state = CASE state WHEN 'open' THEN 'dropped' ELSE state END, text = '',
    ended_at = CASE state WHEN 'open' THEN :at ELSE ended_at END
WHERE chat_id = :chat_id;

-- name: uncount_all!
-- Nothing of it waits for a reflection.
UPDATE cursors SET pending = 0, oldest_pending_at = NULL, newest_pending_at = NULL
WHERE chat_id = :chat_id;
