-- Recollection: what a turn may read, snapshots of it, notes and what became of them.

-- Whether what a person said in one group may be known in their turns in another.
ALTER TABLE members ADD COLUMN cross_group INTEGER NOT NULL DEFAULT 1;

-- Which documents of a stream a turn may read, by where the stream stands to the turn: 'group' is
-- that of the turn's own group, 'here' the sender's of this group, 'elsewhere' the sender's of other
-- groups, 'own' any of the person in their private chat.
CREATE VIEW place_documents (place, document) AS VALUES
    ('group', 'profile'), ('group', 'daily'), ('group', 'memory'), ('group', 'note'),
    ('here', 'profile'), ('here', 'pattern'), ('here', 'note'),
    ('elsewhere', 'profile'), ('elsewhere', 'pattern'),
    ('own', 'profile'), ('own', 'pattern'), ('own', 'daily'), ('own', 'memory'), ('own', 'note');

-- How often an entry was packed, on which local day last, and since when it has its tier.
ALTER TABLE entries ADD COLUMN uses INTEGER NOT NULL DEFAULT 0;
ALTER TABLE entries ADD COLUMN used_on TEXT;
ALTER TABLE entries ADD COLUMN tier_since INTEGER NOT NULL DEFAULT 0;
UPDATE entries SET tier_since = created_at;

-- The newest entries of a document, and the pinned ones of a stream, found without reading the rest.
DROP INDEX entries_living;
CREATE INDEX entries_living ON entries (stream_id, document, date, updated_at, number)
WHERE ended_at IS NULL;
CREATE INDEX entries_pinned ON entries (stream_id) WHERE ended_at IS NULL AND pinned = 1;

-- When somebody had what they said in it forgotten: the row stays, nothing is made of it any more.
ALTER TABLE messages ADD COLUMN forgotten_at INTEGER;

-- What the account itself said in a chat, which forgetting looks through in every chat that was shown
-- what is forgotten.
CREATE INDEX messages_own ON messages (chat_id, sent_at) WHERE direction = 'outbound';

-- What of an answer was refused: places in the answer and reasons, and nobody's words.
ALTER TABLE tasks ADD COLUMN refusals TEXT NOT NULL DEFAULT '[]';

-- One per scope and chat: the memory as a chat's prompts show it. The text of a stale one is gone.
-- It was made from some streams of the scope, by a rule that let the person's other groups in or
-- not, and shows some entries.
CREATE TABLE snapshots (
    chat_id     INTEGER NOT NULL REFERENCES chats (id),
    scope_id    INTEGER NOT NULL REFERENCES scopes (id),
    text        TEXT NOT NULL,
    shown       TEXT NOT NULL DEFAULT '[]',
    hash        TEXT NOT NULL,
    streams     TEXT NOT NULL,
    across      INTEGER NOT NULL,
    version     INTEGER NOT NULL,
    compactions INTEGER NOT NULL,
    injected_at INTEGER NOT NULL,
    active_at   INTEGER NOT NULL,
    stale       INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (chat_id, scope_id)
) WITHOUT ROWID;
CREATE INDEX snapshots_by_scope ON snapshots (scope_id);

-- The words of all entries, living or ended, the pairs of CJK characters among them, and of which
-- stream each entry is: entries.id is the row. Rows are made by the program; whatever erases the
-- text of an entry takes them along.
CREATE VIRTUAL TABLE entry_index USING fts5 (stream, words, pairs, tokenize = 'porter unicode61');
CREATE TRIGGER entry_erased AFTER UPDATE OF text ON entries
WHEN new.text = '' AND old.text <> '' BEGIN
    DELETE FROM entry_index WHERE rowid = old.id;
END;
CREATE TRIGGER entry_deleted AFTER DELETE ON entries BEGIN
    DELETE FROM entry_index WHERE rowid = old.id;
END;
