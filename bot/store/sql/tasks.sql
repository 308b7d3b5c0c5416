-- name: due_candidates
-- Chats in which a task may be due and none is open, by the index that fits each trigger (it is
-- named: without statistics another one is taken, and all chats that wait are read). The pure
-- decision has the last word; what it would refuse by a switch is left out here already, so that it
-- does not stand in the way of others.
WITH candidates (chat_id, task) AS (
    SELECT chat_id, task FROM cursors INDEXED BY cursors_by_newest
    WHERE pending > 0 AND task = :task AND newest_pending_at <= :idle_since
    UNION
    SELECT chat_id, task FROM cursors INDEXED BY cursors_by_oldest
    WHERE pending > 0 AND task = :task AND oldest_pending_at <= :waiting_since
    UNION
    SELECT chat_id, task FROM cursors INDEXED BY cursors_by_pending
    WHERE pending > 0 AND task = :task AND pending >= :count
    UNION
    SELECT chat_id, task FROM cursors INDEXED BY cursors_behind
    WHERE pending > 0 AND due_until > last_id AND task = :task
)
SELECT k.chat_id, k.task, k.pending, k.oldest_pending_at, k.newest_pending_at, k.last_id,
    k.due_until, c.bot_id, c.kind, c.peer_id,
    EXISTS (SELECT 1 FROM turns AS t WHERE t.chat_id = k.chat_id AND t.state = 'sent')
        AS has_answered
FROM candidates
JOIN cursors AS k ON k.chat_id = candidates.chat_id AND k.task = candidates.task
JOIN chats AS c ON c.id = k.chat_id
WHERE c.removed_at IS NULL AND c.access <> 'disabled' AND c.muted_until <= :now
  AND k.quarantined < :quarantines
  AND (k.task <> 'private-owner' OR has_answered)
  AND 'false' <> coalesce(
      (SELECT value FROM settings WHERE key = 'memoryEnabled' AND coalesce(chat_id, 0) = +k.chat_id),
      iif(:memory_enabled, 'true', 'false')
  )
  AND (k.task <> 'member-batch' OR 'false' <> coalesce(
      (
          SELECT value FROM settings
          WHERE key = 'memoryMemberBatchEnabled' AND coalesce(chat_id, 0) = +k.chat_id
      ),
      iif(:member_batch_enabled, 'true', 'false')
  ))
  AND NOT EXISTS (
      SELECT 1 FROM tasks AS o
      WHERE o.chat_id = k.chat_id AND o.task = k.task AND o.state IN ('queued', 'running')
  )
ORDER BY k.oldest_pending_at
LIMIT :limit;

-- name: standing^
-- How one task stands in one chat.
SELECT k.chat_id, k.task, k.pending, k.oldest_pending_at, k.newest_pending_at, k.last_id,
    k.due_until, c.bot_id, c.kind, c.peer_id,
    EXISTS (SELECT 1 FROM turns AS t WHERE t.chat_id = k.chat_id AND t.state = 'sent')
        AS has_answered
FROM cursors AS k JOIN chats AS c ON c.id = k.chat_id
WHERE c.bot_id = :bot_id AND c.kind = :kind AND c.peer_id = :peer_id AND k.task = :task;

-- name: queue_task!
-- At most one open task per chat and task.
INSERT INTO tasks (chat_id, scope, task, state, reason, next_run_at, created_at)
VALUES (:chat_id, :scope, :task, 'queued', :reason, :at, :at)
ON CONFLICT (chat_id, task, coalesce(stream_id, 0)) WHERE state IN ('queued', 'running')
DO NOTHING;

-- name: queue_compression!
-- At most one open task per stream.
INSERT INTO tasks (chat_id, scope, task, state, reason, next_run_at, created_at, stream_id)
SELECT c.id, s.kind, 'compress', 'queued', :reason, :at, :at, t.id FROM streams AS t
JOIN scopes AS s ON s.id = t.scope_id
JOIN chats AS c ON c.id = t.chat_id
WHERE s.bot_id = :bot_id AND s.kind = :scope_kind AND s.key = :key
  AND c.bot_id = :bot_id AND c.kind = :kind AND c.peer_id = :peer_id
ON CONFLICT (chat_id, task, coalesce(stream_id, 0)) WHERE state IN ('queued', 'running')
DO NOTHING;

-- name: hurry_compression!
-- One that waits for its next try is tried now.
UPDATE tasks SET next_run_at = :at, reason = :reason
WHERE state = 'queued' AND task = 'compress' AND stream_id = (
    SELECT t.id FROM streams AS t
    JOIN scopes AS s ON s.id = t.scope_id
    JOIN chats AS c ON c.id = t.chat_id
    WHERE s.bot_id = :bot_id AND s.kind = :scope_kind AND s.key = :key
      AND c.bot_id = :bot_id AND c.kind = :kind AND c.peer_id = :peer_id
);

-- name: advance!
-- One call of several is written; what is left is done even if this run ends here.
UPDATE tasks
SET reason = 'backlog', attempts = 0, unusable = 0, error = '', messages = messages + :messages,
    calls = calls + :calls, tokens = tokens + :tokens,
    counts = json_set(
        counts, '$.changes', coalesce(json_extract(counts, '$.changes'), 0) + :changes
    )
WHERE id = :id AND lease_owner = :owner AND state = 'running';

-- name: end_task!
-- A task of several calls is done. No row changes if the lease was lost.
UPDATE tasks
SET state = 'done', lease_owner = NULL, lease_until = NULL, finished_at = :at, error = ''
WHERE id = :id AND lease_owner = :owner AND state = 'running';

-- name: narrow_task!
-- How much its next call reads.
UPDATE tasks SET chunk = :chunk, unusable = :unusable WHERE id = :id;

-- name: mark_due!
-- What is stored now is due, however many batches it takes; what comes later is not.
UPDATE cursors
SET due_until = max(due_until, (SELECT coalesce(max(id), 0) FROM messages WHERE chat_id = :chat_id))
WHERE chat_id = :chat_id AND task = :task;

-- name: claimable
-- Tasks whose time has come, or lies further ahead than any back-off (the clock was set back), or
-- whose worker died; the oldest first. Those of a chat that the
-- account left, or may not speak in, wait.
SELECT t.*, c.bot_id, c.kind, c.peer_id, c.name, s.kind AS scope_kind, s.key AS scope_key
FROM tasks AS t JOIN chats AS c ON c.id = t.chat_id
LEFT JOIN streams AS st ON st.id = t.stream_id
LEFT JOIN scopes AS s ON s.id = st.scope_id
WHERE t.id IN (
    SELECT id FROM tasks INDEXED BY tasks_due WHERE state = 'queued' AND next_run_at <= :now
    UNION ALL
    SELECT id FROM tasks INDEXED BY tasks_due WHERE state = 'queued' AND next_run_at > :too_late
    UNION ALL
    SELECT id FROM tasks INDEXED BY tasks_leased WHERE state = 'running' AND lease_until < :now
) AND c.removed_at IS NULL AND c.access <> 'disabled' AND c.muted_until <= :now
  AND CASE t.task WHEN 'compress' THEN :compressions WHEN 'summarize' THEN :summaries
      ELSE :reflections END
ORDER BY t.id
LIMIT :limit;

-- name: claim!
-- Take a task: one row changes if nobody else has it.
UPDATE tasks SET state = 'running', lease_owner = :owner, lease_until = :until
WHERE id = :id AND (state = 'queued' OR (state = 'running' AND lease_until < :now));

-- name: renew_lease!
-- A long model call keeps its task.
UPDATE tasks SET lease_until = :until
WHERE id = :id AND state = 'running' AND lease_owner = :owner;

-- name: free_leases!
-- A starting process frees what its own last run held.
UPDATE tasks INDEXED BY tasks_leased SET state = 'queued', lease_owner = NULL, lease_until = NULL
WHERE state = 'running' AND lease_owner = :owner;

-- name: withdraw_task!
-- It was switched off, or nothing waits any more, before it began. What is due is queued again.
DELETE FROM tasks WHERE id = :id AND lease_owner = :owner AND state = 'running';

-- name: put_off!
-- A failure writes nothing but when to try again. No row changes if the lease was lost.
UPDATE tasks
SET state = 'queued', lease_owner = NULL, lease_until = NULL, attempts = :attempts,
    next_run_at = :next_run_at, error = :error, calls = calls + :calls, tokens = tokens + :tokens
WHERE id = :id AND lease_owner = :owner AND state = 'running';

-- name: finish_task!
-- A task that is done, or stopped for an operator to look at. No row changes if the lease was lost.
UPDATE tasks
SET state = :state, lease_owner = NULL, lease_until = NULL, finished_at = :at, error = :error,
    after_id = :after_id, last_id = :last_id, messages = :messages, calls = calls + :calls,
    tokens = tokens + :tokens, counts = :counts, refusals = :refusals
WHERE id = :id AND lease_owner = :owner AND state = 'running';

-- name: cursor^
-- Where a task stands and how large its batches may be.
SELECT last_id, batch_limit, narrow_until, quarantined, unusable FROM cursors
WHERE chat_id = :chat_id AND task = :task;

-- name: move_cursor!
-- Only from where it was expected: a batch is never reflected twice. As long as a bad message is
-- looked for, what is known of it stays.
UPDATE cursors
SET last_id = :last_id,
    quarantined = :quarantined,
    unusable = CASE WHEN :widen OR :last_id >= narrow_until THEN 0 ELSE unusable END,
    batch_limit = CASE WHEN :widen OR :last_id >= narrow_until THEN NULL ELSE batch_limit END,
    narrow_until = CASE WHEN :widen THEN 0 ELSE narrow_until END
WHERE chat_id = :chat_id AND task = :task AND last_id = :expected;

-- name: recount!
-- What still waits behind the cursor.
UPDATE cursors
SET (pending, oldest_pending_at, newest_pending_at) = (
    SELECT count(*), min(received_at), max(received_at) FROM messages
    WHERE messages.chat_id = :chat_id AND messages.id > cursors.last_id AND counted = 1
)
WHERE chat_id = :chat_id AND task = :task;

-- name: narrow!
-- Smaller batches until the cursor has passed the batch that failed.
UPDATE cursors
SET batch_limit = :batch_limit, narrow_until = max(narrow_until, :narrow_until),
    unusable = :unusable
WHERE chat_id = :chat_id AND task = :task;

-- name: quarantine_message!
-- Kept, marked, listed, passed.
INSERT INTO quarantine (chat_id, task, message_id, reason, at)
VALUES (:chat_id, :task, :message_id, :reason, :at)
ON CONFLICT (chat_id, task, message_id) DO NOTHING;

-- name: quarantined
-- What was passed over, for the operator: in one chat, or in all.
SELECT q.task, q.message_id, q.reason, q.at, c.bot_id, c.kind, c.peer_id
FROM quarantine AS q JOIN chats AS c ON c.id = q.chat_id
WHERE :peer_id IS NULL OR (c.bot_id = :bot_id AND c.kind = :kind AND c.peer_id = :peer_id)
ORDER BY q.at DESC LIMIT :limit;

-- name: recent_tasks
-- The newest tasks of all chats.
SELECT t.*, c.bot_id, c.kind, c.peer_id
FROM tasks AS t JOIN chats AS c ON c.id = t.chat_id
ORDER BY t.id DESC LIMIT :limit;

-- name: recent_tasks_of
-- The newest tasks of one chat.
SELECT t.*, c.bot_id, c.kind, c.peer_id
FROM chats AS c JOIN tasks AS t ON t.chat_id = c.id
WHERE c.bot_id = :bot_id AND c.kind = :kind AND c.peer_id = :peer_id
ORDER BY t.id DESC LIMIT :limit;

-- name: batch_rows
-- The lowest rows above a cursor that a reflection may read; no answers to who has opted out.
SELECT messages.*, m.user_id, m.anonymous
FROM messages JOIN members AS m ON m.id = messages.member_id
WHERE chat_id = :chat_id AND messages.id > :after_id
  AND messages.kind = 'chat' AND recalled_at IS NULL AND forgotten_at IS NULL
  AND messages.id > m.hidden_until
  AND (direction = 'inbound' OR NOT EXISTS (
      SELECT 1 FROM turn_lines AS l
      JOIN turns AS t ON t.id = l.turn_id
      JOIN members AS asker ON asker.id = t.member_id
      WHERE l.message_id = messages.id AND l.part = 'answer' AND asker.opted_out_at > 0
  ))
ORDER BY messages.id
LIMIT :limit;

-- name: newest_row$
-- Everything of the chat up to here has been looked at when a batch is not full.
SELECT coalesce(max(id), :after_id) FROM messages WHERE chat_id = :chat_id AND id > :after_id;

-- name: release_stopped!
-- An operator looked at what was quarantined and lets the task go on.
UPDATE cursors SET quarantined = 0
WHERE task = :task AND chat_id = (
    SELECT id FROM chats WHERE bot_id = :bot_id AND kind = :kind AND peer_id = :peer_id
);

-- name: hurry!
-- A task that waits for its next try is tried now.
UPDATE tasks SET next_run_at = :at
WHERE state = 'queued' AND task = :task AND chat_id = (
    SELECT id FROM chats WHERE bot_id = :bot_id AND kind = :kind AND peer_id = :peer_id
);

-- name: last_route^
-- The model that answered in the chat last.
SELECT model, endpoint FROM turns
WHERE chat_id = :chat_id AND state = 'sent' AND model <> ''
ORDER BY id DESC LIMIT 1;
