-- name: of_tool
-- What is known of a tool's errors: from groups, and from one private chat.
SELECT l.* FROM lessons AS l
WHERE l.tool = :tool AND l.renewed_at > :since AND (
    l.chat_id IS NULL OR l.chat_id = (
        SELECT id FROM chats WHERE bot_id = :bot_id AND kind = :kind AND peer_id = :peer_id
    )
)
ORDER BY l.renewed_at DESC, l.id DESC
LIMIT :limit;

-- name: renew_shared!
-- What is known everywhere is not learned once more in a private chat.
UPDATE lessons SET renewed_at = :at
WHERE tool = :tool AND symptom = :symptom AND chat_id IS NULL AND :kind = 'private';

-- name: keep!
-- An error that was solved; a newer way takes the place of an older one, unless an operator wrote it.
INSERT INTO lessons (
    tool, chat_id, keywords, symptom, cause, action, outcome, created_at, renewed_at
)
SELECT :tool, iif(:kind = 'private', c.id, NULL), :keywords, :symptom, :cause, :action, :outcome,
    :at, :at
FROM chats AS c WHERE c.bot_id = :bot_id AND c.kind = :kind AND c.peer_id = :peer_id
ON CONFLICT (tool, coalesce(chat_id, 0), symptom) DO UPDATE SET
    renewed_at = excluded.renewed_at,
    cause = iif(edited_by = '', excluded.cause, cause),
    action = iif(edited_by = '', excluded.action, action);

-- name: renew!
-- Those that helped, of what the chat may know.
UPDATE lessons SET renewed_at = :at, uses = uses + 1
WHERE id IN (SELECT value FROM json_each(:ids)) AND renewed_at > :since AND (
    chat_id IS NULL OR chat_id = (
        SELECT id FROM chats WHERE bot_id = :bot_id AND kind = :kind AND peer_id = :peer_id
    )
);

-- name: expire!
-- Those that helped nobody for long.
DELETE FROM lessons WHERE renewed_at <= :since;

-- name: bound!
-- Of one place the newest stay.
DELETE FROM lessons
WHERE iif(:kind = 'private', chat_id IS (
    SELECT id FROM chats WHERE bot_id = :bot_id AND kind = :kind AND peer_id = :peer_id
), chat_id IS NULL)
AND id NOT IN (
    SELECT id FROM lessons
    WHERE iif(:kind = 'private', chat_id IS (
        SELECT id FROM chats WHERE bot_id = :bot_id AND kind = :kind AND peer_id = :peer_id
    ), chat_id IS NULL)
    ORDER BY renewed_at DESC, id DESC LIMIT :limit
);

-- name: all_lessons
-- All that is known, or without what comes from private chats, the newest first.
SELECT * FROM lessons
WHERE renewed_at > :since AND (:with_private OR chat_id IS NULL)
ORDER BY renewed_at DESC, id DESC;

-- name: edit!
-- An operator knows better.
UPDATE lessons SET action = :action, edited_by = :by, renewed_at = :at
WHERE id = :id AND renewed_at > :since AND (:with_private OR chat_id IS NULL);

-- name: remove!
-- An operator does not want it.
DELETE FROM lessons WHERE id = :id AND (:with_private OR chat_id IS NULL);
