-- name: add!
-- The words of an entry. Its stream is a word as well, so that a search reads no other's.
INSERT INTO entry_index (rowid, stream, words, pairs)
VALUES (:entry_id, 's' || :stream_id, :words, :pairs);

-- name: is_empty$
-- Whether entries have text, but none of them words.
SELECT NOT EXISTS (SELECT 1 FROM entry_index) AND EXISTS (SELECT 1 FROM entries WHERE text <> '');

-- name: texts
-- What the index is made of.
SELECT id, stream_id, text FROM entries WHERE id > :after AND text <> '' ORDER BY id LIMIT :limit;

-- name: scrub!
-- Deleted words stay in the older parts of the index until all parts are merged into one.
INSERT INTO entry_index (entry_index) VALUES ('optimize');

-- name: clear!
-- No entry is indexed any more.
DELETE FROM entry_index;
