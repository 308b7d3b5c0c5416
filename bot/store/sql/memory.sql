-- name: ensure_scope!
-- Whose memory.
INSERT INTO scopes (bot_id, kind, key) VALUES (:bot_id, :scope_kind, :key)
ON CONFLICT (bot_id, kind, key) DO NOTHING;

-- name: ensure_stream!
-- The part of a scope's memory that comes from one chat.
INSERT INTO streams (scope_id, chat_id, changed_at)
SELECT s.id, c.id, :at FROM scopes AS s, chats AS c
WHERE s.bot_id = :bot_id AND s.kind = :scope_kind AND s.key = :key
  AND c.bot_id = :bot_id AND c.kind = :kind AND c.peer_id = :peer_id
ON CONFLICT (scope_id, chat_id) DO NOTHING;

-- name: stream^
-- One stream.
SELECT t.id, t.scope_id, t.summary, t.version FROM streams AS t
JOIN scopes AS s ON s.id = t.scope_id
JOIN chats AS c ON c.id = t.chat_id
WHERE s.bot_id = :bot_id AND s.kind = :scope_kind AND s.key = :key
  AND c.bot_id = :bot_id AND c.kind = :kind AND c.peer_id = :peer_id;

-- name: streams_of
-- All streams of a scope.
SELECT t.id, t.summary, c.bot_id, c.kind, c.peer_id FROM streams AS t
JOIN scopes AS s ON s.id = t.scope_id
JOIN chats AS c ON c.id = t.chat_id
WHERE s.bot_id = :bot_id AND s.kind = :scope_kind AND s.key = :key
ORDER BY t.id;

-- name: scopes
-- Every scope that has a stream.
SELECT bot_id, kind, key FROM scopes ORDER BY id;

-- name: living
-- The living entries of a stream, oldest first.
SELECT * FROM entries WHERE stream_id = :stream_id AND ended_at IS NULL ORDER BY number;

-- name: proofs_of
-- The proofs of a stream's living entries, with who said each message.
SELECT e.number, p.id AS proof_id, pm.message_id, m.user_id, msg.sent_at, msg.platform_id
FROM entries AS e
JOIN proofs AS p ON p.entry_id = e.id
JOIN proof_messages AS pm ON pm.proof_id = p.id
JOIN messages AS msg ON msg.id = pm.message_id
JOIN members AS m ON m.id = msg.member_id
WHERE e.stream_id = :stream_id AND e.ended_at IS NULL
ORDER BY e.number, p.id, pm.message_id;

-- name: living_some
-- Those of a list that live.
SELECT * FROM entries
WHERE stream_id = :stream_id AND number IN (SELECT value FROM json_each(:numbers))
  AND ended_at IS NULL
ORDER BY number;

-- name: proofs_of_some
-- The proofs of those of a list that live.
SELECT e.number, p.id AS proof_id, pm.message_id, m.user_id, msg.sent_at, msg.platform_id
FROM entries AS e
JOIN proofs AS p ON p.entry_id = e.id
JOIN proof_messages AS pm ON pm.proof_id = p.id
JOIN messages AS msg ON msg.id = pm.message_id
JOIN members AS m ON m.id = msg.member_id
WHERE e.stream_id = :stream_id AND e.number IN (SELECT value FROM json_each(:numbers))
  AND e.ended_at IS NULL
ORDER BY e.number, p.id, pm.message_id;

-- name: told_some
-- Those of a list that have a text, living or ended.
SELECT * FROM entries
WHERE stream_id = :stream_id AND number IN (SELECT value FROM json_each(:numbers)) AND text <> ''
ORDER BY number;

-- name: proofs_of_told
-- The proofs of those.
SELECT e.number, p.id AS proof_id, pm.message_id, m.user_id, msg.sent_at, msg.platform_id
FROM entries AS e
JOIN proofs AS p ON p.entry_id = e.id
JOIN proof_messages AS pm ON pm.proof_id = p.id
JOIN messages AS msg ON msg.id = pm.message_id
JOIN members AS m ON m.id = msg.member_id
WHERE e.stream_id = :stream_id AND e.number IN (SELECT value FROM json_each(:numbers))
  AND e.text <> ''
ORDER BY e.number, p.id, pm.message_id;

-- name: summary_messages
-- What a summary was made from.
SELECT r.message_id FROM summary_messages AS r
JOIN streams AS t ON t.id = r.stream_id
JOIN scopes AS s ON s.id = t.scope_id
JOIN chats AS c ON c.id = t.chat_id
WHERE s.bot_id = :bot_id AND s.kind = :scope_kind AND s.key = :key
  AND c.bot_id = :bot_id AND c.kind = :kind AND c.peer_id = :peer_id
ORDER BY r.message_id;

-- name: take_number$
-- The next number of a scope.
UPDATE scopes SET next_number = next_number + 1
WHERE id = :scope_id
RETURNING next_number - 1;

-- name: add_entry$
-- One remembered line.
INSERT INTO entries (
    stream_id, number, document, type, date, text, tier, source_task, created_at, updated_at,
    tier_since
) VALUES (
    :stream_id, :number, :document, :type, :date, :text, :tier, :source_task, :at, :at, :at
) RETURNING id;

-- name: entry_id$
-- The row of a living entry.
SELECT id FROM entries WHERE stream_id = :stream_id AND number = :number AND ended_at IS NULL;

-- name: touch_entry!
-- It was said again.
UPDATE entries SET updated_at = :at WHERE id = :id;

-- name: add_proof$
-- One more reason to believe an entry.
INSERT INTO proofs (entry_id, created_at, derived) VALUES (:entry_id, :at, :derived)
RETURNING id;

-- name: add_proof_messages*!
-- The messages that a proof rests on.
INSERT INTO proof_messages (proof_id, message_id) VALUES (:proof_id, :message_id)
ON CONFLICT DO NOTHING;

-- name: add_sources!
-- What a line of memory was made from: living entries of the same stream.
INSERT INTO entry_sources (entry_id, source_id)
SELECT :entry_id, id FROM entries
WHERE stream_id = :stream_id AND ended_at IS NULL
  AND number IN (SELECT value FROM json_each(:numbers));

-- name: add_sources_proof!
-- The proof of a made entry: every message that any of its sources rests on.
INSERT INTO proof_messages (proof_id, message_id)
SELECT DISTINCT :proof_id, pm.message_id FROM entry_sources AS s
JOIN proofs AS p ON p.entry_id = s.source_id
JOIN proof_messages AS pm ON pm.proof_id = p.id
WHERE s.entry_id = :entry_id;

-- name: rows_of
-- The rows of some entries, living or ended.
SELECT id FROM entries
WHERE stream_id = :stream_id AND number IN (SELECT value FROM json_each(:numbers));

-- name: cover_of$
-- A living entry that was made, in however many steps, from one that was compressed.
WITH RECURSIVE above (id) AS (
    SELECT id FROM entries
    WHERE stream_id = :stream_id AND number = :number AND ended_by = 'compressed'
    UNION
    SELECT s.entry_id FROM above JOIN entry_sources AS s ON s.source_id = above.id
)
SELECT e.number FROM above JOIN entries AS e ON e.id = above.id
WHERE e.ended_at IS NULL LIMIT 1;

-- name: revive_sources
-- What some entries were made from lives again as far as it stands; where a source has fallen that
-- was itself made from others, those do.
WITH RECURSIVE released (id, opens) AS (
    SELECT value, 1 FROM json_each(:entry_ids)
    UNION
    SELECT s.source_id, NOT EXISTS (SELECT 1 FROM proofs WHERE entry_id = s.source_id)
    FROM released AS r JOIN entry_sources AS s ON s.entry_id = r.id
    WHERE r.opens
)
UPDATE entries SET ended_at = NULL, ended_by = NULL, ended_why = ''
WHERE id IN (SELECT id FROM released) AND ended_by = 'compressed'
  AND EXISTS (SELECT 1 FROM proofs WHERE entry_id = entries.id)
RETURNING number;

-- name: revive
-- Ended entries live again that something still proves. The time of one that expired begins anew.
UPDATE entries
SET ended_at = NULL, ended_by = NULL, ended_why = '',
    tier_since = iif(ended_by = 'expired', :at, tier_since),
    updated_at = iif(ended_by = 'expired', :at, updated_at)
WHERE stream_id = :stream_id AND ended_at IS NOT NULL
  AND number IN (SELECT value FROM json_each(:numbers))
  AND EXISTS (SELECT 1 FROM proofs WHERE entry_id = entries.id)
RETURNING number;

-- name: reshape!
-- Another tier, with the document that goes with it, or a pin.
UPDATE entries
SET document = :document, type = :type, tier = :tier, pinned = :pinned,
    tier_since = iif(tier = :tier, tier_since, :at)
WHERE id = :id;

-- name: drop_proof
-- The proof of exactly these messages. The last one of an entry stays.
DELETE FROM proofs WHERE id = (
    SELECT p.id FROM proofs AS p
    WHERE p.entry_id = :entry_id AND p.derived = 0
      AND (SELECT json_group_array(message_id) FROM (
          SELECT message_id FROM proof_messages WHERE proof_id = p.id ORDER BY message_id
      )) = :messages
      AND (SELECT count(*) FROM proofs AS other WHERE other.entry_id = :entry_id) > 1
    ORDER BY p.id DESC LIMIT 1
) RETURNING id;

-- name: falling
-- Entries whose last proof is gone, living or ended, that still have their text.
SELECT id, text, created_at, ended_at FROM entries
WHERE stream_id = :stream_id AND (ended_at IS NULL OR text <> '')
  AND NOT EXISTS (SELECT 1 FROM proofs WHERE entry_id = entries.id);

-- name: set_aside!
-- No model takes it for compression.
UPDATE entries SET set_aside = 1 WHERE stream_id = :stream_id AND number = :number;

-- name: take_back!
-- What was set aside in a chat is tried again.
UPDATE entries SET set_aside = 0
WHERE set_aside = 1 AND stream_id IN (
    SELECT t.id FROM streams AS t JOIN chats AS c ON c.id = t.chat_id
    WHERE c.bot_id = :bot_id AND c.kind = :kind AND c.peer_id = :peer_id
);

-- name: daily_counts
-- How many daily entries each stream of a chat has that could be compressed.
SELECT s.kind AS scope_kind, s.key AS scope_key, count(*) AS entries FROM streams AS t
JOIN chats AS c ON c.id = t.chat_id
JOIN scopes AS s ON s.id = t.scope_id
JOIN entries AS e ON e.stream_id = t.id AND e.document = 'daily' AND e.ended_at IS NULL
WHERE c.bot_id = :bot_id AND c.kind = :kind AND c.peer_id = :peer_id
  AND e.pinned = 0 AND e.set_aside = 0
GROUP BY t.id ORDER BY t.id;

-- name: daily_count$
-- How many daily entries a stream has.
SELECT count(*) FROM entries
WHERE stream_id = :stream_id AND document = 'daily' AND ended_at IS NULL;

-- name: end_entry!
-- An entry lives no more; it stays for undo.
UPDATE entries SET ended_at = :at, ended_by = :by, ended_why = :why WHERE id = :id;

-- name: add_ending_messages*!
-- The messages that an ending rests on.
INSERT INTO ending_messages (entry_id, message_id) VALUES (:entry_id, :message_id)
ON CONFLICT DO NOTHING;

-- name: set_summary!
-- A stream has one summary.
UPDATE streams SET summary = :summary, changed_at = :at, version = version + 1 WHERE id = :id;

-- name: clear_summary_messages!
-- It was cleared.
DELETE FROM summary_messages WHERE stream_id = :stream_id;

-- name: add_summary_messages*!
-- What a summary was made from.
INSERT INTO summary_messages (stream_id, message_id) VALUES (:stream_id, :message_id)
ON CONFLICT DO NOTHING;

-- name: bump_stream!
-- Its memory changed.
UPDATE streams SET version = version + 1, changed_at = :at WHERE id = :id;

-- name: add_revision!
-- What changed, by whom and why.
INSERT INTO revisions (stream_id, task_id, at, by, why, before, after)
VALUES (:stream_id, :task_id, :at, :by, :why, :before, :after);

-- name: was_read$
-- Whether any task has read as far as one of some messages; what none has read, nothing rests on.
SELECT 1 FROM messages AS m JOIN cursors AS k ON k.chat_id = m.chat_id
WHERE m.id IN (SELECT value FROM json_each(:message_ids)) AND k.last_id >= m.id
LIMIT 1;

-- name: emptied_answers
-- The account's own messages in some chats since a moment that lost their text, because they quoted
-- what is gone, and that memory, or the summary of a session, still rests on.
SELECT m.id FROM messages AS m
WHERE m.chat_id IN (SELECT value FROM json_each(:chat_ids)) AND m.sent_at >= :since
  AND m.direction = 'outbound' AND m.segments = '[]'
  AND (EXISTS (SELECT 1 FROM proof_messages AS p WHERE p.message_id = m.id)
    OR EXISTS (SELECT 1 FROM summary_messages AS s WHERE s.message_id = m.id)
    OR EXISTS (SELECT 1 FROM session_messages AS s WHERE s.message_id = m.id)
    OR EXISTS (SELECT 1 FROM ending_messages AS e WHERE e.message_id = m.id));

-- name: leaning_streams
-- Streams whose entries, endings or summary rest on some messages.
SELECT e.stream_id FROM proof_messages AS pm
JOIN proofs AS p ON p.id = pm.proof_id
JOIN entries AS e ON e.id = p.entry_id
WHERE pm.message_id IN (SELECT value FROM json_each(:message_ids))
UNION
SELECT stream_id FROM summary_messages
WHERE message_id IN (SELECT value FROM json_each(:message_ids))
UNION
SELECT e.stream_id FROM ending_messages AS em JOIN entries AS e ON e.id = em.entry_id
WHERE em.message_id IN (SELECT value FROM json_each(:message_ids));

-- name: streams_beside
-- Every stream of the chats in which some messages were said: no other can ever have told of them.
SELECT id AS stream_id FROM streams WHERE chat_id IN (
    SELECT chat_id FROM messages WHERE id IN (SELECT value FROM json_each(:message_ids))
);

-- name: drop_proofs!
-- A proof falls with any of its messages, and all proofs of an entry with the one that has what it
-- was made from.
DELETE FROM proofs
WHERE id IN (
    SELECT proof_id FROM proof_messages
    WHERE message_id IN (SELECT value FROM json_each(:message_ids))
) OR entry_id IN (
    SELECT p.entry_id FROM proof_messages AS pm JOIN proofs AS p ON p.id = pm.proof_id
    WHERE pm.message_id IN (SELECT value FROM json_each(:message_ids)) AND p.derived = 1
);

-- name: drop_reasons!
-- Why an entry ended is told in the words of the messages that say so.
UPDATE entries SET ended_why = ''
WHERE id IN (
    SELECT entry_id FROM ending_messages
    WHERE message_id IN (SELECT value FROM json_each(:message_ids))
);

-- name: drop_endings!
-- An entry stays ended, with what is left of the messages that say so.
DELETE FROM ending_messages WHERE message_id IN (SELECT value FROM json_each(:message_ids));

-- name: drop_unproven!
-- An entry falls with its last proof, and its text with it.
UPDATE entries SET ended_at = :at, ended_by = 'fallen', ended_why = '', text = ''
WHERE stream_id = :stream_id AND NOT EXISTS (SELECT 1 FROM proofs WHERE entry_id = entries.id)
  AND (ended_at IS NULL OR text <> '');

-- name: rests_on$
-- Whether a summary was made from one of some messages.
SELECT 1 FROM summary_messages
WHERE stream_id = :stream_id AND message_id IN (SELECT value FROM json_each(:message_ids))
LIMIT 1;

-- name: blank_later_summaries!
-- Summaries of each stream's revisions since the first that read one of some messages. Looking for
-- their digits first spares reading most of the JSON.
WITH reading (stream_id, since) AS (
    SELECT r.stream_id, min(r.id) FROM revisions AS r
    WHERE r.stream_id IN (SELECT value FROM json_each(:stream_ids))
      AND EXISTS (SELECT 1 FROM json_each(:message_ids) WHERE instr(r.after, value) > 0)
      AND EXISTS (
          SELECT 1 FROM json_each(r.after, '$.summary.messages') AS m
          WHERE m.value IN (SELECT value FROM json_each(:message_ids))
      )
    GROUP BY r.stream_id
)
UPDATE revisions
SET before = json_remove(before, '$.summary'), after = json_remove(after, '$.summary')
FROM reading
WHERE revisions.stream_id = reading.stream_id AND revisions.id >= reading.since
  AND (json_type(before, '$.summary') IS NOT NULL OR json_type(after, '$.summary') IS NOT NULL);

-- name: blank_revisions!
-- The record of changes no longer tells what rested on some messages. Looking for their digits
-- first spares reading most of the JSON.
UPDATE revisions SET before = '{}', after = '{}'
WHERE stream_id IN (SELECT value FROM json_each(:stream_ids))
  AND EXISTS (
      SELECT 1 FROM json_each(:message_ids)
      WHERE instr(before, value) > 0 OR instr(after, value) > 0
  )
  AND EXISTS (
      SELECT 1 FROM json_tree(json_array(json(before), json(after)))
      WHERE atom IN (SELECT value FROM json_each(:message_ids))
        AND (fullkey LIKE '%.proofs%' OR fullkey LIKE '%.messages%')
  );

-- name: names_of_chat
-- Every name that each member of a chat has or had. Of who has opted out no new one becomes history,
-- so the names of today are added.
SELECT m.user_id, n.name FROM names AS n
JOIN members AS m ON m.id = n.member_id
JOIN memberships AS s ON s.member_id = m.id AND s.chat_id = :chat_id
WHERE n.chat_id = :chat_id OR n.chat_id IS NULL
UNION ALL
SELECT m.user_id, nullif(m.nickname, '') FROM members AS m
JOIN memberships AS s ON s.member_id = m.id AND s.chat_id = :chat_id
WHERE m.opted_out_at > 0 AND m.nickname <> ''
UNION ALL
SELECT m.user_id, s.card FROM members AS m
JOIN memberships AS s ON s.member_id = m.id AND s.chat_id = :chat_id
WHERE m.opted_out_at > 0 AND s.card <> '';

-- name: admins_of_chat
-- Its owner and admins as last shown.
SELECT m.user_id FROM memberships AS s JOIN members AS m ON m.id = s.member_id
WHERE s.chat_id = :chat_id AND s.role IN ('owner', 'admin') AND s.left_at IS NULL;

-- name: gone_among
-- Which messages of a list were recalled, forgotten or hidden meanwhile, or lost their text with one
-- that was.
SELECT messages.id FROM messages JOIN members AS m ON m.id = member_id
WHERE messages.id IN (SELECT value FROM json_each(:message_ids))
  AND (recalled_at IS NOT NULL OR forgotten_at IS NOT NULL OR messages.id <= m.hidden_until
      OR (direction = 'outbound' AND segments = '[]'));

-- name: cursors_of
-- How far each task has read in a chat.
SELECT k.task, k.last_id FROM cursors AS k JOIN chats AS c ON c.id = k.chat_id
WHERE c.bot_id = :bot_id AND c.kind = :kind AND c.peer_id = :peer_id
ORDER BY k.task;
