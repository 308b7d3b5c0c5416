-- Accounts, chats, people, messages, turns, and what the house needs to run.
-- Every chat and member belongs to one bot account; everything else hangs on those two.

CREATE TABLE accounts (
    bot_id       TEXT PRIMARY KEY,
    first_seen   INTEGER NOT NULL,
    connected_at INTEGER NOT NULL,
    offline_at   INTEGER
) WITHOUT ROWID;

CREATE TABLE chats (
    id          INTEGER PRIMARY KEY,
    bot_id      TEXT NOT NULL,
    kind        TEXT NOT NULL CHECK (kind IN ('group', 'private')),
    peer_id     TEXT NOT NULL,
    name        TEXT NOT NULL DEFAULT '',
    access      TEXT NOT NULL DEFAULT '' CHECK (access IN ('', 'enabled', 'disabled')),
    access_by   TEXT NOT NULL DEFAULT '',
    access_at   INTEGER,
    muted_until INTEGER NOT NULL DEFAULT 0,
    removed_at  INTEGER,
    first_seen  INTEGER NOT NULL,
    last_seen   INTEGER NOT NULL,
    UNIQUE (bot_id, kind, peer_id)
);

CREATE TABLE members (
    id         INTEGER PRIMARY KEY,
    bot_id     TEXT NOT NULL,
    user_id    TEXT NOT NULL,
    nickname   TEXT NOT NULL DEFAULT '',
    anonymous  INTEGER NOT NULL DEFAULT 0,
    first_seen INTEGER NOT NULL,
    last_seen  INTEGER NOT NULL,
    UNIQUE (bot_id, user_id)
);

-- History of what people were called. A name without a chat is a nickname, with one a group card.
CREATE TABLE names (
    member_id  INTEGER NOT NULL REFERENCES members (id),
    chat_id    INTEGER REFERENCES chats (id),
    name       TEXT NOT NULL,
    first_seen INTEGER NOT NULL,
    last_seen  INTEGER NOT NULL
);
CREATE UNIQUE INDEX names_identity ON names (member_id, coalesce(chat_id, 0), name);

CREATE TABLE memberships (
    chat_id    INTEGER NOT NULL REFERENCES chats (id),
    member_id  INTEGER NOT NULL REFERENCES members (id),
    card       TEXT NOT NULL DEFAULT '',
    role       TEXT NOT NULL DEFAULT '',
    title      TEXT NOT NULL DEFAULT '',
    joined_at  INTEGER,
    left_at    INTEGER,
    first_seen INTEGER NOT NULL,
    last_seen  INTEGER NOT NULL,
    PRIMARY KEY (chat_id, member_id)
) WITHOUT ROWID;

-- AUTOINCREMENT: cursors are row ids, so an id must never come back after a deletion.
CREATE TABLE messages (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    chat_id         INTEGER NOT NULL REFERENCES chats (id),
    member_id       INTEGER NOT NULL REFERENCES members (id),
    platform_id     TEXT NOT NULL,
    direction       TEXT NOT NULL CHECK (direction IN ('inbound', 'outbound')),
    kind            TEXT NOT NULL CHECK (kind IN ('chat', 'command', 'notice')),
    sent_at         INTEGER NOT NULL,
    received_at     INTEGER NOT NULL,
    local_date      TEXT NOT NULL,
    sequence        INTEGER,
    sender_name     TEXT NOT NULL,
    sender_role     TEXT NOT NULL DEFAULT '',
    segments        TEXT NOT NULL,
    text            TEXT NOT NULL,
    reply_to        TEXT,
    mentions        TEXT NOT NULL DEFAULT '[]',
    temporary_group TEXT,
    counted         INTEGER NOT NULL DEFAULT 0,
    recalled_at     INTEGER,
    recalled_by     TEXT,
    UNIQUE (chat_id, platform_id, sent_at)
);
CREATE INDEX messages_by_time ON messages (chat_id, sent_at);
CREATE INDEX messages_by_arrival ON messages (received_at);

-- Recalls that came before their message; each waits ten minutes for it.
CREATE TABLE early_recalls (
    chat_id     INTEGER NOT NULL REFERENCES chats (id),
    platform_id TEXT NOT NULL,
    recalled_at INTEGER NOT NULL,
    recalled_by TEXT NOT NULL,
    PRIMARY KEY (chat_id, platform_id)
) WITHOUT ROWID;

-- What a task has read of a chat, and what waits for it. Kept in the transaction of ingest.
CREATE TABLE cursors (
    chat_id           INTEGER NOT NULL REFERENCES chats (id),
    task              TEXT NOT NULL,
    last_id           INTEGER NOT NULL DEFAULT 0,
    pending           INTEGER NOT NULL DEFAULT 0,
    oldest_pending_at INTEGER,
    newest_pending_at INTEGER,
    PRIMARY KEY (chat_id, task)
) WITHOUT ROWID;

CREATE TABLE tasks (
    id          INTEGER PRIMARY KEY,
    chat_id     INTEGER NOT NULL REFERENCES chats (id),
    scope       TEXT NOT NULL,
    task        TEXT NOT NULL,
    state       TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done', 'failed', 'stopped')),
    reason      TEXT NOT NULL DEFAULT '',
    attempts    INTEGER NOT NULL DEFAULT 0,
    next_run_at INTEGER NOT NULL,
    lease_owner TEXT,
    lease_until INTEGER,
    error       TEXT NOT NULL DEFAULT '',
    created_at  INTEGER NOT NULL,
    finished_at INTEGER
);
CREATE UNIQUE INDEX tasks_open ON tasks (chat_id, task) WHERE state IN ('queued', 'running');
CREATE INDEX tasks_due ON tasks (next_run_at) WHERE state = 'queued';

-- One turn: what was asked, and how far its answer got. It is written as `sending` before the send
-- call, so that a crash cannot make it answer twice.
CREATE TABLE turns (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    chat_id       INTEGER NOT NULL REFERENCES chats (id),
    member_id     INTEGER NOT NULL REFERENCES members (id),
    state         TEXT NOT NULL CHECK (state IN ('sending', 'sent', 'silent', 'failed', 'recalled')),
    asked_at      INTEGER NOT NULL,
    started_at    INTEGER NOT NULL,
    answered_at   INTEGER NOT NULL,
    addressed     INTEGER NOT NULL,
    third_party   INTEGER NOT NULL,
    context_until INTEGER NOT NULL,
    model         TEXT NOT NULL,
    endpoint      TEXT NOT NULL,
    error         TEXT NOT NULL DEFAULT ''
);
CREATE INDEX turns_by_chat ON turns (chat_id, state);
CREATE INDEX turns_by_start ON turns (started_at);
CREATE INDEX turns_by_member ON turns (member_id, started_at);

-- The lines a turn put into the conversation, each with the message it shows, so that a recall
-- reaches it. An answer has no message until it is sent.
CREATE TABLE turn_lines (
    turn_id    INTEGER NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
    position   INTEGER NOT NULL,
    message_id INTEGER REFERENCES messages (id),
    part       TEXT NOT NULL CHECK (part IN ('context', 'quote', 'question', 'answer')),
    text       TEXT NOT NULL,
    PRIMARY KEY (turn_id, position)
) WITHOUT ROWID;
CREATE INDEX turn_lines_by_message ON turn_lines (message_id);

CREATE TABLE settings (
    key        TEXT NOT NULL,
    chat_id    INTEGER REFERENCES chats (id),
    value      TEXT NOT NULL,
    changed_at INTEGER NOT NULL,
    changed_by TEXT NOT NULL
);
CREATE UNIQUE INDEX settings_identity ON settings (key, coalesce(chat_id, 0));

CREATE TABLE usage (
    id                INTEGER PRIMARY KEY,
    at                INTEGER NOT NULL,
    purpose           TEXT NOT NULL,
    model             TEXT NOT NULL,
    endpoint          TEXT NOT NULL,
    chat_id           INTEGER REFERENCES chats (id),
    duration_ms       INTEGER NOT NULL,
    prompt_tokens     INTEGER NOT NULL,
    cached_tokens     INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    ok                INTEGER NOT NULL,
    error             TEXT NOT NULL DEFAULT ''
);
CREATE INDEX usage_by_time ON usage (at);

-- Notices given once or seldom: of what is kept, of a missing model, of a failure.
CREATE TABLE notices (
    chat_id   INTEGER NOT NULL REFERENCES chats (id),
    member_id INTEGER REFERENCES members (id),
    kind      TEXT NOT NULL,
    given_at  INTEGER NOT NULL
);
CREATE UNIQUE INDEX notices_identity ON notices (chat_id, kind, coalesce(member_id, 0));

CREATE TABLE blocks (
    bot_id     TEXT NOT NULL,
    user_id    TEXT NOT NULL,
    blocked_at INTEGER NOT NULL,
    blocked_by TEXT NOT NULL,
    PRIMARY KEY (bot_id, user_id)
) WITHOUT ROWID;

-- Friend requests and group invitations: never accepted without an operator.
CREATE TABLE requests (
    id          INTEGER PRIMARY KEY,
    bot_id      TEXT NOT NULL,
    kind        TEXT NOT NULL CHECK (kind IN ('friend', 'group_add', 'group_invite')),
    flag        TEXT NOT NULL,
    user_id     TEXT NOT NULL,
    group_id    TEXT NOT NULL DEFAULT '',
    comment     TEXT NOT NULL DEFAULT '',
    arrived_at  INTEGER NOT NULL,
    approved_at INTEGER,
    approved_by TEXT,
    UNIQUE (bot_id, flag)
);
