-- What tools keep: reminders and lessons; and which model a chat is answered by.

-- A reminder is written as `sending` before its send call, so that a crash cannot send it twice.
-- One that ended has no text any more.
CREATE TABLE reminders (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    chat_id    INTEGER NOT NULL REFERENCES chats (id),
    member_id  INTEGER NOT NULL REFERENCES members (id),
    due_at     INTEGER NOT NULL,
    next_at    INTEGER NOT NULL,
    text       TEXT NOT NULL,
    state      TEXT NOT NULL
        CHECK (state IN ('open', 'sending', 'sent', 'failed', 'cancelled', 'dropped')),
    attempts   INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    tried_at   INTEGER,
    ended_at   INTEGER,
    sent_row   INTEGER REFERENCES messages (id),
    error      TEXT NOT NULL DEFAULT ''
);
CREATE INDEX reminders_due ON reminders (next_at) WHERE state = 'open';
CREATE INDEX reminders_open ON reminders (member_id) WHERE state = 'open';
CREATE INDEX reminders_ended ON reminders (ended_at) WHERE ended_at IS NOT NULL;

-- What a reminder was made from; it goes with any of these.
CREATE TABLE reminder_messages (
    reminder_id INTEGER NOT NULL REFERENCES reminders (id) ON DELETE CASCADE,
    message_id  INTEGER NOT NULL REFERENCES messages (id),
    PRIMARY KEY (reminder_id, message_id)
) WITHOUT ROWID;
CREATE INDEX reminder_messages_by_message ON reminder_messages (message_id);

-- Errors of tools and how they were solved, without values. One without a chat holds everywhere, one
-- from a private chat in that chat.
CREATE TABLE lessons (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    tool       TEXT NOT NULL,
    chat_id    INTEGER REFERENCES chats (id),
    keywords   TEXT NOT NULL,
    symptom    TEXT NOT NULL,
    cause      TEXT NOT NULL,
    action     TEXT NOT NULL,
    outcome    TEXT NOT NULL CHECK (outcome = 'resolved'),
    created_at INTEGER NOT NULL,
    renewed_at INTEGER NOT NULL,
    uses       INTEGER NOT NULL DEFAULT 0,
    edited_by  TEXT NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX lessons_identity ON lessons (tool, coalesce(chat_id, 0), symptom);

-- The model that an operator chose for a chat; empty for the configured order.
ALTER TABLE chats ADD COLUMN model TEXT NOT NULL DEFAULT '';
ALTER TABLE chats ADD COLUMN model_by TEXT NOT NULL DEFAULT '';
ALTER TABLE chats ADD COLUMN model_at INTEGER;
