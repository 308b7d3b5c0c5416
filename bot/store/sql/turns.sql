-- name: recalled_count$
-- How many messages of a list were recalled, forgotten or hidden; what is kept for its turn is not.
SELECT count(*) FROM messages JOIN members AS m ON m.id = messages.member_id
WHERE messages.id IN (SELECT value FROM json_each(:message_ids))
  AND (recalled_at IS NOT NULL OR messages.id <= m.hidden_until
      OR (forgotten_at IS NOT NULL AND kept_until IS NULL));

-- name: add_turn<!
-- A turn in the state that it has reached.
INSERT INTO turns (
    chat_id, member_id, state, asked_at, started_at, answered_at, addressed, third_party,
    context_until, model, endpoint, error
)
SELECT c.id, m.id, :state, :asked_at, :started_at, :at, :addressed, :third_party, :context_until,
    :model, :endpoint, :error
FROM chats AS c, members AS m
WHERE c.bot_id = :bot_id AND c.kind = :kind AND c.peer_id = :peer_id
  AND m.bot_id = :bot_id AND m.user_id = :user_id;

-- name: add_lines*!
-- The lines of a turn, each with the message it shows.
INSERT INTO turn_lines (turn_id, position, message_id, part, text)
VALUES (:turn_id, :position, :message_id, :part, :text);

-- name: link_answer!
-- The message row of an answer's line, once it is sent.
UPDATE turn_lines SET message_id = :message_id WHERE turn_id = :turn_id AND position = :position;

-- name: drop_unsent!
-- The parts of an answer that never went out.
DELETE FROM turn_lines WHERE turn_id = :turn_id AND part = 'answer' AND message_id IS NULL;

-- name: finish_turn!
-- How it ended; one whose question was recalled meanwhile stays out of the conversation.
UPDATE turns
SET state = CASE state WHEN 'recalled' THEN state ELSE :state END, answered_at = :at,
    error = :error
WHERE id = :id;

-- name: sent_count$
-- How many turns the conversation of a chat has.
SELECT count(*) FROM turns
WHERE chat_id = (
    SELECT id FROM chats WHERE bot_id = :bot_id AND kind = :kind AND peer_id = :peer_id
) AND state = 'sent';

-- name: recent_turns
-- The newest answered turns of a chat, each with its lines in their order.
SELECT t.id, m.user_id, t.asked_at, t.answered_at, t.third_party, t.context_until, t.tools, (
    SELECT json_group_array(json_array(message_id, part, text)) FROM (
        SELECT message_id, part, text FROM turn_lines WHERE turn_id = t.id ORDER BY position
    )
) AS lines
FROM turns AS t JOIN members AS m ON m.id = t.member_id
WHERE t.chat_id = (
    SELECT id FROM chats WHERE bot_id = :bot_id AND kind = :kind AND peer_id = :peer_id
) AND t.state = 'sent'
ORDER BY t.id DESC
LIMIT :limit;

-- name: load^
-- Turns lately taken, for the limits: of a person in a minute and a day, of all in a minute but begun
-- before a moment (each with its start), and unaddressed ones of a chat in an hour. Taking a question back gives nobody
-- another turn. What began after now did so before the clock was set back.
SELECT
    (SELECT count(*) FROM turns WHERE member_id = m.id AND started_at > :minute_ago
        AND started_at <= :now AND state IN ('sending', 'sent', 'failed', 'recalled')) AS member_minute,
    (SELECT count(*) FROM turns WHERE member_id = m.id AND started_at >= :day_start
        AND state IN ('sending', 'sent', 'failed', 'recalled')) AS member_day,
    (SELECT json_group_array(started_at) FROM (
        SELECT started_at FROM turns WHERE started_at > :minute_ago
            AND started_at <= :now AND started_at < :before AND state IN ('sending', 'sent', 'failed', 'recalled') ORDER BY started_at
    )) AS all_minute,
    (SELECT count(*) FROM turns WHERE started_at > :hour_ago
        AND started_at <= :now AND addressed = 0
        AND state IN ('sending', 'sent', 'recalled') AND chat_id = (
            SELECT id FROM chats WHERE bot_id = :bot_id AND kind = :kind AND peer_id = :peer_id
        )) AS unaddressed_hour
FROM (SELECT 1) AS one
LEFT JOIN members AS m ON m.bot_id = :bot_id AND m.user_id = :user_id;

-- name: settle_turns!
-- Turns that a dead process of the account was sending: they are taken as sent, never repeated.
-- What began after now did so before the clock was set back.
UPDATE turns SET state = 'sent', error = 'the process ended while sending'
WHERE state = 'sending' AND (started_at < :before OR started_at > :now)
  AND chat_id IN (SELECT id FROM chats WHERE bot_id = :bot_id);
