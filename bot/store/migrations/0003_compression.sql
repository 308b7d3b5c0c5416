-- Compression: what an entry was made from, and tasks that work on one stream.

-- An entry of memory that was made from others falls with any of them; those that stand return.
CREATE TABLE entry_sources (
    entry_id  INTEGER NOT NULL REFERENCES entries (id) ON DELETE CASCADE,
    source_id INTEGER NOT NULL REFERENCES entries (id) ON DELETE CASCADE,
    PRIMARY KEY (entry_id, source_id)
) WITHOUT ROWID;
CREATE INDEX entry_sources_by_source ON entry_sources (source_id);

-- The proof of a made entry has the messages of all its sources; the entry falls with it, whatever
-- else proves it.
ALTER TABLE proofs ADD COLUMN derived INTEGER NOT NULL DEFAULT 0;

-- A model refuses to compress it: it stays as it is.
ALTER TABLE entries ADD COLUMN set_aside INTEGER NOT NULL DEFAULT 0;

-- A task of one stream, how many entries its calls read while a bad one is looked for, and how many
-- answers running could not be used. At most one is open per stream.
ALTER TABLE tasks ADD COLUMN stream_id INTEGER REFERENCES streams (id);
ALTER TABLE tasks ADD COLUMN chunk INTEGER;
ALTER TABLE tasks ADD COLUMN unusable INTEGER NOT NULL DEFAULT 0;
DROP INDEX tasks_open;
CREATE UNIQUE INDEX tasks_open ON tasks (chat_id, task, coalesce(stream_id, 0))
WHERE state IN ('queued', 'running');
