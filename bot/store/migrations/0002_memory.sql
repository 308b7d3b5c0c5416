-- Memory: scopes and their streams, entries with proofs, summaries, revisions; what tasks did.

CREATE TABLE scopes (
    id          INTEGER PRIMARY KEY,
    bot_id      TEXT NOT NULL,
    kind        TEXT NOT NULL CHECK (kind IN ('group', 'member')),
    key         TEXT NOT NULL,
    next_number INTEGER NOT NULL DEFAULT 1,
    UNIQUE (bot_id, kind, key)
);

-- What a scope's memory has from one chat. The version counts its changes.
CREATE TABLE streams (
    id         INTEGER PRIMARY KEY,
    scope_id   INTEGER NOT NULL REFERENCES scopes (id),
    chat_id    INTEGER NOT NULL REFERENCES chats (id),
    summary    TEXT NOT NULL DEFAULT '',
    version    INTEGER NOT NULL DEFAULT 0,
    changed_at INTEGER NOT NULL,
    UNIQUE (scope_id, chat_id)
);
CREATE INDEX streams_by_chat ON streams (chat_id);

CREATE TABLE summary_messages (
    stream_id  INTEGER NOT NULL REFERENCES streams (id) ON DELETE CASCADE,
    message_id INTEGER NOT NULL REFERENCES messages (id),
    PRIMARY KEY (stream_id, message_id)
) WITHOUT ROWID;
CREATE INDEX summary_messages_by_message ON summary_messages (message_id);

-- A living entry is one that nothing superseded and whose proofs did not all fall.
CREATE TABLE entries (
    id            INTEGER PRIMARY KEY,
    stream_id     INTEGER NOT NULL REFERENCES streams (id),
    number        INTEGER NOT NULL,
    document      TEXT NOT NULL CHECK (document IN ('profile', 'pattern', 'daily', 'memory', 'note')),
    type          TEXT,
    date          TEXT,
    text          TEXT NOT NULL,
    tier          TEXT NOT NULL CHECK (tier IN ('working', 'episodic', 'profile')),
    pinned        INTEGER NOT NULL DEFAULT 0,
    source_task   TEXT NOT NULL,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    ended_at      INTEGER,
    ended_by      TEXT CHECK (ended_by IN ('superseded', 'compressed', 'fallen', 'forgotten', 'expired')),
    ended_why     TEXT NOT NULL DEFAULT '',
    UNIQUE (stream_id, number)
);
CREATE INDEX entries_living ON entries (stream_id, document) WHERE ended_at IS NULL;

CREATE TABLE proofs (
    id         INTEGER PRIMARY KEY,
    entry_id   INTEGER NOT NULL REFERENCES entries (id) ON DELETE CASCADE,
    created_at INTEGER NOT NULL
);
CREATE INDEX proofs_by_entry ON proofs (entry_id);

CREATE TABLE proof_messages (
    proof_id   INTEGER NOT NULL REFERENCES proofs (id) ON DELETE CASCADE,
    message_id INTEGER NOT NULL REFERENCES messages (id),
    PRIMARY KEY (proof_id, message_id)
) WITHOUT ROWID;
CREATE INDEX proof_messages_by_message ON proof_messages (message_id);

-- Which messages say that an entry is no longer true.
CREATE TABLE ending_messages (
    entry_id   INTEGER NOT NULL REFERENCES entries (id) ON DELETE CASCADE,
    message_id INTEGER NOT NULL REFERENCES messages (id),
    PRIMARY KEY (entry_id, message_id)
) WITHOUT ROWID;
CREATE INDEX ending_messages_by_message ON ending_messages (message_id);

-- One change of one stream: what stood before and after, by whom and why.
CREATE TABLE revisions (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    stream_id INTEGER NOT NULL REFERENCES streams (id),
    task_id   INTEGER REFERENCES tasks (id),
    at        INTEGER NOT NULL,
    by        TEXT NOT NULL,
    why       TEXT NOT NULL,
    before    TEXT NOT NULL,
    after     TEXT NOT NULL
);
CREATE INDEX revisions_by_stream ON revisions (stream_id, id);
CREATE INDEX revisions_by_task ON revisions (task_id);

-- A message that the provider refuses is kept, passed and named to the operator.
CREATE TABLE quarantine (
    chat_id    INTEGER NOT NULL REFERENCES chats (id),
    task       TEXT NOT NULL,
    message_id INTEGER NOT NULL REFERENCES messages (id),
    reason     TEXT NOT NULL,
    at         INTEGER NOT NULL,
    PRIMARY KEY (chat_id, task, message_id)
) WITHOUT ROWID;

-- How a task stands in a chat: up to where it fell due, and how small its batches are made while a
-- bad message is looked for.
ALTER TABLE cursors ADD COLUMN due_until INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cursors ADD COLUMN batch_limit INTEGER;
ALTER TABLE cursors ADD COLUMN narrow_until INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cursors ADD COLUMN quarantined INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cursors ADD COLUMN unusable INTEGER NOT NULL DEFAULT 0;
CREATE INDEX cursors_by_newest ON cursors (task, newest_pending_at) WHERE pending > 0;
CREATE INDEX cursors_by_oldest ON cursors (task, oldest_pending_at) WHERE pending > 0;
CREATE INDEX cursors_by_pending ON cursors (task, pending) WHERE pending > 0;
CREATE INDEX cursors_behind ON cursors (task) WHERE pending > 0 AND due_until > last_id;

-- What one run read and did.
ALTER TABLE tasks ADD COLUMN after_id INTEGER;
ALTER TABLE tasks ADD COLUMN last_id INTEGER;
ALTER TABLE tasks ADD COLUMN messages INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN calls INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN counts TEXT NOT NULL DEFAULT '{}';
CREATE INDEX tasks_by_chat ON tasks (chat_id, id);
CREATE INDEX tasks_leased ON tasks (lease_until) WHERE state = 'running';

-- When operators were last told something that they are told once a day.
CREATE TABLE alerts (
    kind    TEXT PRIMARY KEY,
    told_at INTEGER NOT NULL
) WITHOUT ROWID;

-- Batches are the lowest rows above a cursor, chat by chat.
CREATE INDEX messages_by_row ON messages (chat_id, id);
