-- name: hits
-- The living entries that a turn may read and that match, with their words; the newest, if many do.
-- The join is crossed so that the index is read once, from outside.
WITH allowed (stream_id, document) AS (
    SELECT json_extract(r.value, '$[0]'), d.document FROM json_each(:streams) AS r
    JOIN place_documents AS d ON d.place = json_extract(r.value, '$[1]')
)
SELECT e.id, i.words FROM entry_index AS i
CROSS JOIN entries AS e ON e.id = i.rowid
WHERE i.entry_index MATCH :match AND e.ended_at IS NULL AND e.text <> ''
  AND (e.stream_id, e.document) IN (SELECT stream_id, document FROM allowed)
ORDER BY i.rowid DESC
LIMIT :limit;

-- name: total$
-- How many living entries a turn may read.
SELECT count(*) FROM json_each(:streams) AS r
CROSS JOIN place_documents AS d ON d.place = json_extract(r.value, '$[1]')
JOIN entries AS e ON e.stream_id = json_extract(r.value, '$[0]') AND e.document = d.document
WHERE e.ended_at IS NULL;

-- name: candidates
-- What may be packed: some entries that were found, pins, and the notes of running conversations,
-- as far as they live and a turn may read them.
WITH readable (stream_id, place) AS MATERIALIZED (
    SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(:streams)
), chosen (id) AS (
    SELECT value FROM json_each(:found)
    UNION
    SELECT e.id FROM readable AS r JOIN entries AS e ON e.stream_id = r.stream_id
    WHERE e.pinned = 1 AND e.ended_at IS NULL
    UNION
    SELECT e.id FROM readable AS r JOIN entries AS e ON e.stream_id = r.stream_id
    WHERE e.document = 'note' AND e.tier = 'working' AND e.ended_at IS NULL
)
SELECT e.*, r.place FROM chosen AS c
CROSS JOIN entries AS e ON e.id = c.id
JOIN readable AS r ON r.stream_id = e.stream_id
JOIN place_documents AS d ON d.place = r.place AND d.document = e.document
WHERE e.ended_at IS NULL AND e.text <> '';

-- name: count_uses!
-- A use counts once a local day.
UPDATE entries SET uses = uses + 1, used_on = :local_date
WHERE id IN (SELECT value FROM json_each(:row_ids)) AND used_on IS NOT :local_date;

-- name: evidence
-- The messages that some entries rest on.
SELECT DISTINCT pm.message_id FROM proofs AS p
JOIN proof_messages AS pm ON pm.proof_id = p.id
WHERE p.entry_id IN (SELECT value FROM json_each(:row_ids));
