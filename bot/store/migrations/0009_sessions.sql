-- Sessions: which turns a conversation shows, and the rolling summary of what it shows no more.

-- Turns up to `window_start` are shown no more; those up to `summary_cursor` are in the summary (a
-- summary without a cursor gets one). What is counted are answered turns behind either. `version`
-- counts whatever else than reading on changed the summary.
CREATE TABLE sessions (
    chat_id        INTEGER PRIMARY KEY REFERENCES chats (id),
    window_start   INTEGER NOT NULL DEFAULT 0,
    window_turns   INTEGER NOT NULL DEFAULT 0,
    compactions    INTEGER NOT NULL DEFAULT 0,
    summary        TEXT NOT NULL DEFAULT '',
    summary_cursor INTEGER,
    new_turns      INTEGER NOT NULL DEFAULT 0,
    version        INTEGER NOT NULL DEFAULT 0,
    cleared_turn   INTEGER NOT NULL DEFAULT 0,
    cleared_before INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX sessions_by_window ON sessions (window_turns);
CREATE INDEX sessions_by_new ON sessions (new_turns);

-- The summary as it stood behind each of the newest turns at which it was written: forgetting goes
-- back to one that had not read what is forgotten.
CREATE TABLE session_versions (
    chat_id INTEGER NOT NULL REFERENCES chats (id),
    turn_id INTEGER NOT NULL,
    summary TEXT NOT NULL,
    PRIMARY KEY (chat_id, turn_id)
) WITHOUT ROWID;

-- Which messages a summary was made from, and the first turn that showed it each.
CREATE TABLE session_messages (
    message_id INTEGER NOT NULL REFERENCES messages (id),
    chat_id    INTEGER NOT NULL REFERENCES chats (id),
    turn_id    INTEGER NOT NULL,
    PRIMARY KEY (message_id, chat_id)
) WITHOUT ROWID;
CREATE INDEX session_messages_by_turn ON session_messages (chat_id, turn_id);

-- However a turn joins or leaves the conversation, it is counted.
CREATE TRIGGER turn_told AFTER UPDATE OF state ON turns
WHEN new.state = 'sent' AND old.state <> 'sent' BEGIN
    INSERT INTO sessions (chat_id, window_turns, summary_cursor, new_turns)
    VALUES (new.chat_id, 1, 0, 1)
    ON CONFLICT (chat_id) DO UPDATE SET
        window_turns = window_turns + (new.id > window_start),
        new_turns = new_turns + (new.id > coalesce(summary_cursor, 0));
END;
CREATE TRIGGER turn_gone AFTER UPDATE OF state ON turns
WHEN new.state <> 'sent' AND old.state = 'sent' BEGIN
    UPDATE sessions
    SET window_turns = max(0, window_turns - (old.id > window_start)),
        new_turns = max(0, new_turns - (old.id > coalesce(summary_cursor, 0)))
    WHERE chat_id = old.chat_id;
END;

-- Conversations show what they showed. Of what had left them by then, the newest turns are still
-- summarised: 200 of them, those that are shown included.
INSERT INTO sessions (
    chat_id, window_start, window_turns, compactions, summary_cursor, new_turns
)
WITH kept (least) AS (
    SELECT max(1, coalesce((
        SELECT CAST(value AS INTEGER) FROM settings
        WHERE key = 'sessionMaxMessages' AND chat_id IS NULL
    ), 16) / 2)
),
told (chat_id, id, age, turns) AS (
    SELECT chat_id, id, row_number() OVER (PARTITION BY chat_id ORDER BY id DESC),
        count(*) OVER (PARTITION BY chat_id)
    FROM turns WHERE state = 'sent'
),
placed (chat_id, id, age, shown, folds) AS (
    SELECT chat_id, id, age, turns - max(0, turns - least) / least * least,
        max(0, turns - least) / least
    FROM told, kept
)
SELECT chat_id, coalesce(max(id) FILTER (WHERE age > shown), 0), max(shown), max(folds),
    coalesce(max(id) FILTER (WHERE age > max(shown, 200)), 0),
    count(*) FILTER (WHERE age <= max(shown, 200))
FROM placed GROUP BY chat_id;
