-- Vectors of entries: what is remembered means something, too.

-- One row for each entry that has text, living or ended. A space of 0 is none: it was not looked at
-- yet; nor was one of an older space in the one in use. Without a vector it was looked at in vain.
CREATE TABLE entry_vectors (
    entry_id INTEGER PRIMARY KEY REFERENCES entries (id) ON DELETE CASCADE,
    space_id INTEGER NOT NULL DEFAULT 0,
    vector   BLOB
);
CREATE INDEX entry_vectors_by_space ON entry_vectors (space_id, entry_id DESC);

INSERT INTO entry_vectors (entry_id) SELECT id FROM entries WHERE text <> '';

-- The row comes with the entry. Whatever takes its text away takes the row along, in its
-- transaction; another text begins anew.
CREATE TRIGGER entry_vector_wanted AFTER INSERT ON entries WHEN new.text <> '' BEGIN
    INSERT OR REPLACE INTO entry_vectors (entry_id) VALUES (new.id);
END;
CREATE TRIGGER entry_vector_erased AFTER UPDATE OF text ON entries WHEN new.text <> old.text BEGIN
    DELETE FROM entry_vectors WHERE entry_id = old.id;
    INSERT INTO entry_vectors (entry_id) SELECT new.id WHERE new.text <> '';
END;
