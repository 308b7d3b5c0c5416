-- name: space^
-- The space in use.
SELECT id, embedder, dimensions, newest, oldest FROM spaces ORDER BY id DESC LIMIT 1;

-- name: open_space<!
-- Nothing was looked at in it yet: what is there goes from the newest message down, what comes from
-- it up.
INSERT INTO spaces (embedder, dimensions, newest, oldest)
SELECT :embedder, :dimensions, coalesce(max(id), 0), coalesce(max(id), 0) + 1 FROM messages;

-- name: newer
-- Messages that came since.
SELECT messages.id, chat_id, member_id, sent_at, messages.kind, text, sender_name,
    recalled_at IS NOT NULL OR forgotten_at IS NOT NULL OR messages.id <= m.hidden_until AS gone,
    c.access
FROM messages JOIN chats AS c ON c.id = chat_id JOIN members AS m ON m.id = member_id
WHERE messages.id > :newest ORDER BY messages.id LIMIT :limit;

-- name: older
-- Messages that were there before, the newest first.
SELECT messages.id, chat_id, member_id, sent_at, messages.kind, text, sender_name,
    recalled_at IS NOT NULL OR forgotten_at IS NOT NULL OR messages.id <= m.hidden_until AS gone,
    c.access
FROM messages JOIN chats AS c ON c.id = chat_id JOIN members AS m ON m.id = member_id
WHERE messages.id < :oldest ORDER BY messages.id DESC LIMIT :limit;

-- name: requested
-- Messages whose text became another.
SELECT messages.id, chat_id, member_id, sent_at, messages.kind, text, sender_name,
    recalled_at IS NOT NULL OR forgotten_at IS NOT NULL OR messages.id <= m.hidden_until AS gone,
    c.access
FROM vector_requests JOIN messages ON messages.id = message_id
JOIN chats AS c ON c.id = chat_id JOIN members AS m ON m.id = member_id
ORDER BY message_id LIMIT :limit;

-- name: is_unchanged$
-- Whether a message still says what was embedded.
SELECT 1 FROM messages JOIN members AS m ON m.id = member_id
WHERE messages.id = :id AND text = :text AND recalled_at IS NULL AND forgotten_at IS NULL
  AND messages.id > m.hidden_until;

-- name: drop_vector!
-- It may have one of another space, or of an older text.
DELETE FROM message_vectors WHERE message_id = :id;

-- name: drop_foreign!
-- What is left of other spaces where all was looked at.
DELETE FROM message_vectors WHERE message_id BETWEEN :low AND :high AND space_id <> :space_id;

-- name: drop_foreign_pages!
-- Sketches of other spaces, a few at a time.
DELETE FROM vector_pages WHERE id IN (
    SELECT id FROM vector_pages WHERE space_id < :space_id ORDER BY space_id LIMIT :limit
);

-- name: page_with_room^
-- The page of a chat that is being filled.
SELECT id, filled FROM vector_pages
WHERE space_id = :space_id AND chat_id = :chat_id
ORDER BY id DESC LIMIT 1;

-- name: add_page<!
-- A new page of a chat.
INSERT INTO vector_pages (space_id, chat_id, filled, changed, slots)
SELECT :space_id, :chat_id, 0, (SELECT coalesce(max(changed), 0) + 1 FROM vector_pages), x'';

-- name: fill_page!
-- Slots more behind those that a page has.
UPDATE vector_pages
SET slots = CAST(slots || :slots AS BLOB), filled = filled + :count,
    changed = (SELECT max(changed) + 1 FROM vector_pages)
WHERE id = :id;

-- name: add_vector!
-- A vector, and where its sketch is.
INSERT INTO message_vectors (message_id, space_id, page_id, slot, vector)
VALUES (:id, :space_id, :page_id, :slot, :vector);

-- name: move_newest!
-- All up to a row was looked at.
UPDATE spaces SET newest = :row_id WHERE id = :space_id AND newest = :expected;

-- name: move_oldest!
-- All down to a row was looked at.
UPDATE spaces SET oldest = :row_id WHERE id = :space_id AND oldest = :expected;

-- name: request_again!
-- A message that became another while it was embedded.
INSERT OR IGNORE INTO vector_requests (message_id)
SELECT id FROM messages
WHERE id = :id AND text <> :text AND text <> '' AND recalled_at IS NULL AND forgotten_at IS NULL;

-- name: drop_requests!
-- They were met.
DELETE FROM vector_requests WHERE message_id IN (SELECT value FROM json_each(:ids));

-- name: pages_since
-- The pages of a chat that are new or changed, the oldest change first.
SELECT id, changed, slots FROM vector_pages
WHERE space_id = :space_id AND chat_id = :chat_id AND changed > :seen
ORDER BY changed LIMIT :limit;

-- name: vectors_of
-- The vectors of some messages in a space.
SELECT message_id, vector FROM message_vectors
WHERE message_id IN (SELECT value FROM json_each(:ids)) AND space_id = :space_id;

-- name: member_row$
-- The row of somebody.
SELECT id FROM members WHERE bot_id = :bot_id AND user_id = :user_id;
