-- name: readable
-- The streams that a turn may read, with where each stands to it. A group turn: the group's, the
-- sender's of this group, and those of their other groups if that is on for all and for them. A
-- private turn: every one of the person. Never a private stream in a group, never another member's.
SELECT 'group' AS place, t.id, t.scope_id, t.version, t.summary,
    s.kind AS scope_kind, s.key, c.kind, c.peer_id
FROM scopes AS s
JOIN streams AS t ON t.scope_id = s.id
JOIN chats AS c ON c.id = t.chat_id
WHERE :kind = 'group' AND s.bot_id = :bot_id AND s.kind = 'group' AND s.key = :peer_id
  AND c.bot_id = :bot_id AND c.kind = 'group' AND c.peer_id = :peer_id
UNION ALL
SELECT iif(:kind = 'private', 'own', iif(c.peer_id = :peer_id, 'here', 'elsewhere')),
    t.id, t.scope_id, t.version, t.summary, s.kind, s.key, c.kind, c.peer_id
FROM scopes AS s
JOIN streams AS t ON t.scope_id = s.id
JOIN chats AS c ON c.id = t.chat_id
LEFT JOIN members AS m ON m.bot_id = s.bot_id AND m.user_id = s.key
WHERE s.bot_id = :bot_id AND s.kind = 'member'
  AND s.key = iif(:kind = 'private', :peer_id, :user_id)
  AND (:kind = 'private'
    OR (c.kind = 'group' AND (c.peer_id = :peer_id OR (:cross_group AND m.cross_group = 1))))
ORDER BY 2;
