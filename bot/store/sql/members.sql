-- name: in_group
-- A member of a group, as the newest events showed them. Anonymous senders are several people.
SELECT m.user_id, m.nickname, s.card, s.role, s.title, s.joined_at, s.left_at, s.first_seen
FROM chats AS c
JOIN members AS m ON m.bot_id = c.bot_id AND m.user_id = :user_id AND m.anonymous = 0
JOIN memberships AS s ON s.chat_id = c.id AND s.member_id = m.id
WHERE c.bot_id = :bot_id AND c.kind = :kind AND c.peer_id = :peer_id;

-- name: named_in_group
-- The members of a group with a word in any name that they have or had there, the closest first.
SELECT m.user_id, m.nickname, s.card, s.role, s.title, s.joined_at, s.left_at, s.first_seen
FROM chats AS c
CROSS JOIN memberships AS s ON s.chat_id = c.id
CROSS JOIN members AS m ON m.id = s.member_id AND m.anonymous = 0
CROSS JOIN names AS n ON n.member_id = m.id AND (n.chat_id IS NULL OR n.chat_id = c.id)
WHERE c.bot_id = :bot_id AND c.kind = :kind AND c.peer_id = :peer_id
  AND instr(lower(n.name), lower(:name)) > 0
GROUP BY m.id
ORDER BY min(length(n.name)), m.id
LIMIT :limit;

-- name: called_in
-- What somebody is or was called, in a chat or anywhere, the newest first.
SELECT n.name FROM names AS n
JOIN members AS m ON m.id = n.member_id
WHERE m.bot_id = :bot_id AND m.user_id = :user_id AND (
    n.chat_id IS NULL OR n.chat_id = (
        SELECT id FROM chats WHERE bot_id = :bot_id AND kind = :kind AND peer_id = :peer_id
    )
)
GROUP BY n.name
ORDER BY max(n.last_seen) DESC
LIMIT :limit;

-- name: bearers
-- Who of a chat has, or ever had, a name.
SELECT DISTINCT m.user_id FROM chats AS c
CROSS JOIN memberships AS s ON s.chat_id = c.id
CROSS JOIN names AS n ON n.member_id = s.member_id
JOIN members AS m ON m.id = n.member_id
WHERE c.bot_id = :bot_id AND c.kind = :kind AND c.peer_id = :peer_id
  AND (n.chat_id IS NULL OR n.chat_id = c.id) AND lower(n.name) = lower(:name);
