-- Vectors: what messages mean, as an embedder has it.

-- The spaces in which vectors lie, one for each time that an embedder was set; the last is in use.
-- Every message with newest >= id >= oldest was looked at and has a vector if it is to have one.
CREATE TABLE spaces (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    embedder   TEXT NOT NULL,
    dimensions INTEGER NOT NULL,
    newest     INTEGER NOT NULL,
    oldest     INTEGER NOT NULL
);

-- Sketches of the vectors of one chat, a few dozen messages on a page, in slots of 88 bytes: row of the
-- message, when it was sent, row of its sender, 64 bytes of sketch. `changed` counts all changes of
-- all pages, so that whoever holds pages in memory asks for those with greater numbers.
-- AUTOINCREMENT: a vector of another space may still name a page that is gone.
CREATE TABLE vector_pages (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    space_id INTEGER NOT NULL REFERENCES spaces (id),
    chat_id  INTEGER NOT NULL REFERENCES chats (id),
    filled   INTEGER NOT NULL,
    changed  INTEGER NOT NULL,
    slots    BLOB NOT NULL
);
CREATE INDEX vector_pages_of_chat ON vector_pages (space_id, chat_id, changed);
CREATE INDEX vector_pages_changed ON vector_pages (changed);

-- The vector itself: four bytes of step and one for each dimension.
CREATE TABLE message_vectors (
    message_id INTEGER PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE,
    space_id   INTEGER NOT NULL,
    page_id    INTEGER NOT NULL,
    slot       INTEGER NOT NULL,
    vector     BLOB NOT NULL
);

-- Messages whose text became another after they were looked at.
CREATE TABLE vector_requests (
    message_id INTEGER PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE
);

-- Whatever takes the text of a message away, or the message out of every context, takes its vector
-- and its sketch along, in its transaction.
CREATE TRIGGER vector_erased AFTER UPDATE OF text, recalled_at, forgotten_at ON messages
WHEN new.text <> old.text OR new.recalled_at IS NOT old.recalled_at
    OR new.forgotten_at IS NOT old.forgotten_at
BEGIN
    DELETE FROM message_vectors WHERE message_id = old.id;
    DELETE FROM vector_requests WHERE message_id = old.id;
    INSERT INTO vector_requests (message_id)
    SELECT new.id
    WHERE new.text <> '' AND new.recalled_at IS NULL AND new.forgotten_at IS NULL
      AND EXISTS (SELECT 1 FROM spaces WHERE new.id BETWEEN oldest AND newest);
END;
CREATE TRIGGER sketch_erased AFTER DELETE ON message_vectors BEGIN
    UPDATE vector_pages
    SET slots = CAST(
            substr(slots, 1, old.slot * 88) || zeroblob(88) || substr(slots, old.slot * 88 + 89)
            AS BLOB
        ),
        changed = (SELECT max(changed) + 1 FROM vector_pages)
    WHERE id = old.page_id;
END;
