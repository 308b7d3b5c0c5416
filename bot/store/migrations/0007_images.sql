-- What models said of pictures. It stands in the text of the message as well, and goes with it.

CREATE TABLE image_descriptions (
    message_id  INTEGER NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
    number      INTEGER NOT NULL,
    hash        TEXT NOT NULL,
    description TEXT NOT NULL,
    model       TEXT NOT NULL,
    at          INTEGER NOT NULL,
    PRIMARY KEY (message_id, number)
) WITHOUT ROWID;

-- The same picture is described once, in whichever chats it is shown.
CREATE INDEX image_descriptions_by_hash ON image_descriptions (hash);

CREATE TRIGGER image_description_erased AFTER UPDATE OF text, recalled_at, forgotten_at ON messages
WHEN new.text = '' OR new.recalled_at IS NOT NULL OR new.forgotten_at IS NOT NULL BEGIN
    DELETE FROM image_descriptions WHERE message_id = new.id;
END;
