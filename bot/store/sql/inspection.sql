-- name: tables
-- The names of all tables, whoever made them.
SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB 'sqlite_*';

-- name: quick_check$
-- The first fault in the file's structure, or `ok`.
PRAGMA quick_check(1);

-- name: row_counts^
-- How much there is.
SELECT
    (SELECT count(*) FROM accounts) AS accounts,
    (SELECT count(*) FROM chats) AS chats,
    (SELECT count(*) FROM members) AS members,
    (SELECT count(*) FROM messages) AS messages,
    (SELECT max(received_at) FROM messages) AS newest_at;

-- name: chats_with_settings
-- The chats that have settings of their own.
SELECT DISTINCT c.bot_id, c.kind, c.peer_id
FROM settings AS s JOIN chats AS c ON c.id = s.chat_id;
