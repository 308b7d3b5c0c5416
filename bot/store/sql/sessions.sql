-- name: session
-- How the conversation of a chat stands, for a chat that has one. A summary without a cursor has
-- read what the window shows no more.
SELECT s.chat_id, s.window_start, s.window_turns, s.compactions, s.summary,
    coalesce(s.summary_cursor, iif(s.summary = '', 0, s.window_start)) AS summary_cursor,
    s.new_turns, s.version, s.cleared_turn, s.cleared_before
FROM sessions AS s JOIN chats AS c ON c.id = s.chat_id
WHERE c.bot_id = :bot_id AND c.kind = :kind AND c.peer_id = :peer_id;

-- name: ensure_session!
-- A chat may be reset before its first turn.
INSERT INTO sessions (chat_id, summary_cursor)
SELECT id, 0 FROM chats WHERE bot_id = :bot_id AND kind = :kind AND peer_id = :peer_id
ON CONFLICT (chat_id) DO NOTHING;

-- name: turns_after
-- The answered turns behind one, as far as no turn before them is still being sent.
SELECT t.*, m.user_id FROM turns AS t JOIN members AS m ON m.id = t.member_id
WHERE t.chat_id = :chat_id AND t.state = 'sent' AND t.id > :turn_id
  AND t.id < coalesce((
      SELECT min(id) FROM turns WHERE chat_id = :chat_id AND state = 'sending' AND id > :turn_id
  ), t.id + 1)
ORDER BY t.id
LIMIT :limit;

-- name: lines_of
-- The lines of some turns, in their order, without those of messages that are gone, and none of a
-- turn whose question is kept for it alone.
SELECT l.turn_id, l.message_id, l.part, l.text
FROM turn_lines AS l
LEFT JOIN messages AS m ON m.id = l.message_id
LEFT JOIN members AS p ON p.id = m.member_id
WHERE l.turn_id IN (SELECT value FROM json_each(:turn_ids))
  AND m.recalled_at IS NULL AND m.forgotten_at IS NULL AND (m.id IS NULL OR m.id > p.hidden_until)
  AND NOT EXISTS (
      SELECT 1 FROM turn_lines AS q JOIN messages AS k ON k.id = q.message_id
      WHERE q.turn_id = l.turn_id AND q.part = 'question' AND k.kept_until IS NOT NULL
  )
  AND NOT (m.id IS NOT NULL AND m.direction = 'outbound' AND m.segments = '[]')
ORDER BY l.turn_id, l.position;

-- name: voices
-- Who said some messages, and in which role.
SELECT messages.id, m.user_id, m.anonymous, sender_role
FROM messages JOIN members AS m ON m.id = messages.member_id
WHERE messages.id IN (SELECT value FROM json_each(:message_ids)) AND direction = 'inbound';

-- name: gone_count$
-- How many of some messages were recalled, forgotten or hidden, or lost their text because they quote
-- one.
SELECT count(*) FROM messages JOIN members AS m ON m.id = messages.member_id
WHERE messages.id IN (SELECT value FROM json_each(:message_ids))
  AND (recalled_at IS NOT NULL OR forgotten_at IS NOT NULL OR messages.id <= m.hidden_until
      OR (direction = 'outbound' AND segments = '[]'));

-- name: move_summary!
-- What was read, and the summary of it, from where they were expected: one row or none.
UPDATE sessions
SET summary = :summary, summary_cursor = :cursor,
    new_turns = (
        SELECT count(*) FROM turns AS t
        WHERE t.chat_id = sessions.chat_id AND t.state = 'sent' AND t.id > :cursor
    )
WHERE chat_id = :chat_id AND version = :version
  AND coalesce(summary_cursor, iif(summary = '', 0, window_start)) = :expected;

-- name: keep_version!
-- The summary as it stands behind a turn.
INSERT INTO session_versions (chat_id, turn_id, summary) VALUES (:chat_id, :cursor, :summary)
ON CONFLICT (chat_id, turn_id) DO UPDATE SET summary = excluded.summary;

-- name: drop_old_versions!
-- Only the newest are worth going back to.
DELETE FROM session_versions
WHERE chat_id = :chat_id AND turn_id <= (
    SELECT turn_id FROM session_versions WHERE chat_id = :chat_id
    ORDER BY turn_id DESC LIMIT 1 OFFSET :kept
);

-- name: keep_messages!
-- What a summary was made from.
INSERT INTO session_messages (message_id, chat_id, turn_id)
SELECT value ->> 0, :chat_id, value ->> 1 FROM json_each(:messages) WHERE true
ON CONFLICT (message_id, chat_id) DO NOTHING;

-- name: boundary$
-- The newest turn that is none of the newest ones.
SELECT id FROM turns WHERE chat_id = :chat_id AND state = 'sent' AND id > :window_start
ORDER BY id DESC LIMIT 1 OFFSET :kept;

-- name: fold!
-- The window begins later.
UPDATE sessions
SET window_start = :start, compactions = compactions + 1,
    window_turns = (
        SELECT count(*) FROM turns AS t
        WHERE t.chat_id = sessions.chat_id AND t.state = 'sent' AND t.id > :start
    )
WHERE chat_id = :chat_id;

-- name: newest_turn$
-- The newest turn of a chat, whatever became of it.
SELECT coalesce(max(id), 0) FROM turns WHERE chat_id = :chat_id;

-- name: clear_conversation!
-- Nothing that was answered is shown, or summarised, any more.
UPDATE sessions
SET window_start = :turn_id, window_turns = 0, summary_cursor = :turn_id, new_turns = 0,
    cleared_turn = :turn_id, compactions = compactions + 1, version = version + 1
WHERE chat_id = :chat_id;

-- name: clear_before!
-- Neither context nor a search without a date reaches before a moment.
UPDATE sessions SET cleared_before = max(cleared_before, :at) WHERE chat_id = :chat_id;

-- name: newest_moment$
-- When the newest message of a chat was said; one that claims to come from later does not count.
SELECT coalesce(max(sent_at), 0) FROM messages WHERE chat_id = :chat_id AND sent_at <= :latest;

-- name: rebuild_floor$
-- Behind which turn a summary begins that is made from nothing.
SELECT max(s.cleared_turn, coalesce((
    SELECT t.id FROM turns AS t WHERE t.chat_id = s.chat_id AND t.state = 'sent'
    ORDER BY t.id DESC LIMIT 1 OFFSET :turns
), 0))
FROM sessions AS s WHERE s.chat_id = :chat_id;

-- name: cleared_turn$
-- Up to which turn the conversation was cleared.
SELECT cleared_turn FROM sessions WHERE chat_id = :chat_id;

-- name: version_before^
-- The newest summary that had not read a turn.
SELECT turn_id, summary FROM session_versions
WHERE chat_id = :chat_id AND turn_id < :turn_id
ORDER BY turn_id DESC LIMIT 1;

-- name: set_back!
-- The summary is again what it was behind a turn, and reads on from there.
UPDATE sessions
SET summary = :summary, summary_cursor = :cursor, version = version + 1,
    new_turns = (
        SELECT count(*) FROM turns AS t
        WHERE t.chat_id = sessions.chat_id AND t.state = 'sent' AND t.id > :cursor
    )
WHERE chat_id = :chat_id;

-- name: drop_versions!
-- The summaries that had read further.
DELETE FROM session_versions WHERE chat_id = :chat_id AND turn_id > :cursor;

-- name: drop_messages!
-- What only they were made from.
DELETE FROM session_messages WHERE chat_id = :chat_id AND turn_id > :cursor;

-- name: resting_on
-- The sessions whose summary was made from some messages, each with the first turn that shows one.
SELECT c.bot_id, c.kind, c.peer_id, s.chat_id, min(s.turn_id) AS turn_id
FROM session_messages AS s JOIN chats AS c ON c.id = s.chat_id
WHERE s.message_id IN (SELECT value FROM json_each(:message_ids))
GROUP BY s.chat_id;

-- name: full_windows
-- Chats whose window is to be folded and that nobody works on, the fullest first. While an answer
-- goes out nothing can be read behind it.
SELECT c.bot_id, c.kind, c.peer_id, s.chat_id
FROM sessions AS s INDEXED BY sessions_by_window JOIN chats AS c ON c.id = s.chat_id
WHERE s.window_turns >= :full_at AND c.removed_at IS NULL AND c.access <> 'disabled'
  AND c.muted_until <= :now
  AND NOT EXISTS (SELECT 1 FROM turns AS t WHERE t.chat_id = s.chat_id AND t.state = 'sending')
  AND NOT EXISTS (
      SELECT 1 FROM tasks AS o
      WHERE o.chat_id = s.chat_id AND o.task = 'summarize' AND o.state IN ('queued', 'running')
  )
ORDER BY s.window_turns DESC
LIMIT :limit;

-- name: waiting_sessions
-- Chats that had enough new turns when they were last to be looked at, and that nobody works on.
SELECT c.bot_id, c.kind, c.peer_id, s.chat_id
FROM sessions AS s INDEXED BY sessions_by_new JOIN chats AS c ON c.id = s.chat_id
WHERE s.new_turns >= :enough AND c.removed_at IS NULL AND c.access <> 'disabled'
  AND c.muted_until <= :now
  AND NOT EXISTS (SELECT 1 FROM turns AS t WHERE t.chat_id = s.chat_id AND t.state = 'sending')
  AND NOT EXISTS (
      SELECT 1 FROM tasks AS o
      WHERE o.chat_id = s.chat_id AND o.task = 'summarize' AND o.state IN ('queued', 'running')
  )
  AND :mark >= (
      SELECT t.answered_at FROM turns AS t
      WHERE t.chat_id = s.chat_id AND t.state = 'sent' AND t.id > coalesce(s.summary_cursor, 0)
      ORDER BY t.id LIMIT 1 OFFSET :enough - 1
  )
ORDER BY s.new_turns DESC
LIMIT :limit;

-- name: queue_summary!
-- At most one open task per session.
INSERT INTO tasks (chat_id, scope, task, state, reason, next_run_at, created_at)
VALUES (:chat_id, 'session', 'summarize', 'queued', :reason, :at, :at)
ON CONFLICT (chat_id, task, coalesce(stream_id, 0)) WHERE state IN ('queued', 'running')
DO NOTHING;

-- name: queue_rebuild!
-- Whoever works on the session finds out that it has changed, and the open task is this one then.
INSERT INTO tasks (chat_id, scope, task, state, reason, next_run_at, created_at)
VALUES (:chat_id, 'session', 'summarize', 'queued', 'rebuild', :at, :at)
ON CONFLICT (chat_id, task, coalesce(stream_id, 0)) WHERE state IN ('queued', 'running')
DO UPDATE SET reason = 'rebuild';

-- name: change_session!
-- What was read for its summary is not kept.
UPDATE sessions SET version = version + 1 WHERE chat_id = :chat_id;

-- name: read_on!
-- A task that made a summary from nothing reads on in it.
UPDATE tasks SET reason = 'command' WHERE id = :id;

-- name: take_summary!
-- Take the open task of a session at once, unless somebody works on it.
UPDATE tasks
SET state = 'running', lease_owner = :owner, lease_until = :until,
    reason = iif(reason = 'rebuild', reason, :reason)
WHERE chat_id = :chat_id AND task = 'summarize'
  AND (state = 'queued' OR (state = 'running' AND lease_until < :now));

-- name: open_summary^
-- The open task of a session.
SELECT id, reason, attempts, chunk, unusable FROM tasks
WHERE chat_id = :chat_id AND task = 'summarize' AND state IN ('queued', 'running');
