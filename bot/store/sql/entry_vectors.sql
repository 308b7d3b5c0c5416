-- name: wanting
-- Entries that were not looked at in a space: new ones first, then those of older spaces. Where
-- texts leave the machine, those of chats that are switched off stay and wait.
SELECT e.id, e.text FROM entry_vectors AS v
CROSS JOIN entries AS e ON e.id = v.entry_id
JOIN streams AS t ON t.id = e.stream_id
JOIN chats AS c ON c.id = t.chat_id
WHERE v.space_id < :space_id AND (c.access <> 'disabled' OR NOT :is_remote)
ORDER BY v.space_id, v.entry_id DESC
LIMIT :limit;

-- name: keep!
-- What was made of an entry, unless its text is gone or another, or a newer space has it.
UPDATE entry_vectors SET space_id = :space_id, vector = :vector
WHERE entry_id = :id AND space_id < :space_id
  AND EXISTS (SELECT 1 FROM entries WHERE id = :id AND text = :text);

-- name: readable_vectors
-- The vectors of living entries that a turn may read: of some that were found, and of the newest.
-- The newest are chosen before any vector is read.
WITH allowed (stream_id, document) AS MATERIALIZED (
    SELECT json_extract(r.value, '$[0]'), d.document FROM json_each(:streams) AS r
    JOIN place_documents AS d ON d.place = json_extract(r.value, '$[1]')
), chosen (id) AS (
    SELECT value FROM json_each(:found)
    UNION
    SELECT id FROM (
        SELECT e.id FROM allowed AS a
        CROSS JOIN entries AS e ON e.stream_id = a.stream_id AND e.document = a.document
        WHERE e.ended_at IS NULL
        ORDER BY e.id DESC LIMIT :limit
    )
)
SELECT v.entry_id, v.vector FROM chosen AS c
CROSS JOIN entry_vectors AS v ON v.entry_id = c.id
JOIN entries AS e ON e.id = c.id
WHERE v.space_id = :space_id AND v.vector IS NOT NULL AND e.ended_at IS NULL
  AND (e.stream_id, e.document) IN (SELECT stream_id, document FROM allowed);

-- name: clear!
-- No entry has a vector any more.
DELETE FROM entry_vectors;

-- name: want_all!
-- Every entry that has text is to be looked at.
INSERT INTO entry_vectors (entry_id) SELECT id FROM entries WHERE text <> '';
