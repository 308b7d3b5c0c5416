-- The search of messages.

-- The tokens of messages: messages.id is the row, and the text itself is not kept a second time.
-- Neither are places and lengths; what a token is, `message_tokens` alone knows.
CREATE VIRTUAL TABLE message_index USING fts5 (
    tokens, content = '', detail = none, columnsize = 0, tokenize = 'porter ascii'
);

-- Which rows have been indexed: those from the one to the other, as far as they may be found. What
-- is older is indexed in the background, from the newest to the oldest; 0 once all are. And whether
-- deleted tokens may be in older parts of the index: 1 if so, 2 while they are being taken out.
CREATE TABLE message_index_state (
    id           INTEGER PRIMARY KEY CHECK (id = 1),
    filled_from  INTEGER NOT NULL,
    filled_until INTEGER NOT NULL,
    erased       INTEGER NOT NULL DEFAULT 0
);
INSERT INTO message_index_state (id, filled_from, filled_until)
SELECT 1, iif(count(*) = 0, 0, max(id) + 1), coalesce(max(id), 0) FROM messages;

-- Whatever changes what of a message may be found changes the index with it, whoever does it.
CREATE TRIGGER message_changed
AFTER UPDATE OF chat_id, member_id, local_date, kind, text, recalled_at, forgotten_at ON messages
WHEN (
    old.chat_id <> new.chat_id OR old.member_id <> new.member_id
    OR old.local_date <> new.local_date OR old.kind <> new.kind OR old.text <> new.text
    OR old.recalled_at IS NOT new.recalled_at OR old.forgotten_at IS NOT new.forgotten_at
) AND EXISTS (
    SELECT 1 FROM message_index_state WHERE old.id BETWEEN filled_from AND filled_until
) BEGIN
    INSERT INTO message_index (message_index, rowid, tokens)
    SELECT 'delete', old.id,
        message_tokens(old.chat_id, old.member_id, old.local_date, old.text)
    WHERE old.kind = 'chat' AND old.text <> '' AND old.recalled_at IS NULL
      AND old.forgotten_at IS NULL;
    INSERT INTO message_index (rowid, tokens)
    SELECT new.id, message_tokens(new.chat_id, new.member_id, new.local_date, new.text)
    WHERE new.kind = 'chat' AND new.text <> '' AND new.recalled_at IS NULL
      AND new.forgotten_at IS NULL;
    UPDATE message_index_state SET erased = 1 WHERE erased <> 1;
END;
CREATE TRIGGER message_deleted AFTER DELETE ON messages
WHEN old.kind = 'chat' AND old.text <> '' AND old.recalled_at IS NULL
    AND old.forgotten_at IS NULL AND EXISTS (
        SELECT 1 FROM message_index_state WHERE old.id BETWEEN filled_from AND filled_until
    )
BEGIN
    INSERT INTO message_index (message_index, rowid, tokens)
    VALUES ('delete', old.id,
        message_tokens(old.chat_id, old.member_id, old.local_date, old.text));
    UPDATE message_index_state SET erased = 1 WHERE erased <> 1;
END;

-- Who answered a message.
CREATE INDEX messages_replies ON messages (chat_id, reply_to) WHERE reply_to IS NOT NULL;
