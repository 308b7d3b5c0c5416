-- name: add_new!
-- The tokens of all messages that came since the last time, in one statement.
INSERT INTO message_index (rowid, tokens)
SELECT id, message_tokens(chat_id, member_id, local_date, text) FROM messages
WHERE id > (SELECT filled_until FROM message_index_state)
  AND kind = 'chat' AND text <> '' AND recalled_at IS NULL AND forgotten_at IS NULL
ORDER BY id;

-- name: note_new!
-- All that came is indexed.
UPDATE message_index_state SET filled_until = (SELECT max(id) FROM messages);

-- name: state^
-- How far the index is, and whether words of what was erased may be in the older parts of it.
SELECT filled_from, filled_until, erased FROM message_index_state;

-- name: step_start^
-- Where a step of so many rows begins that are older than the index, and how many there are.
SELECT min(id), count(*) FROM (
    SELECT id FROM messages WHERE id < :filled_from ORDER BY id DESC LIMIT :rows
);

-- name: add_step!
-- The tokens of some older messages, in the order of their rows: FTS5 writes its buffer whenever an
-- id is lower than the one before.
INSERT INTO message_index (rowid, tokens)
SELECT id, message_tokens(chat_id, member_id, local_date, text) FROM messages
WHERE id >= :start AND id < :filled_from
  AND kind = 'chat' AND text <> '' AND recalled_at IS NULL AND forgotten_at IS NULL
ORDER BY id;

-- name: note_step!
-- A step is done.
UPDATE message_index_state SET filled_from = :filled_from;

-- name: clear!
-- Nothing is indexed any more.
INSERT INTO message_index (message_index) VALUES ('delete-all');

-- name: note_clear!
-- All rows wait to be indexed.
UPDATE message_index_state
SET filled_from = (SELECT coalesce(max(id), 0) + 1 FROM messages),
    filled_until = (SELECT coalesce(max(id), 0) FROM messages),
    erased = 0;

-- name: left$
-- About how many rows wait to be indexed, at most.
SELECT filled_from FROM message_index_state;

-- name: merge!
-- Some pages of the parts of the index become pages of one part, without what was deleted.
INSERT INTO message_index (message_index, rank) VALUES ('merge', :pages);

-- name: note_scrub!
-- 1: something was erased. 2: what was erased before is being scrubbed. 0: nothing is left.
UPDATE message_index_state SET erased = :erased;
