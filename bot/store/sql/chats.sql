-- name: ensure_chat!
-- A chat may be named by a command or a notice before its first message.
INSERT INTO chats (bot_id, kind, peer_id, first_seen, last_seen)
VALUES (:bot_id, :kind, :peer_id, :at, :at)
ON CONFLICT (bot_id, kind, peer_id) DO NOTHING;

-- name: ensure_member!
-- A notice may name a member before their first message.
INSERT INTO members (bot_id, user_id, first_seen, last_seen)
VALUES (:bot_id, :user_id, :at, :at)
ON CONFLICT (bot_id, user_id) DO NOTHING;

-- name: situation^
-- What decides whether a message is answered and is not in memory, in one read.
SELECT c.id AS chat_id, c.removed_at AS removed_at, quoted.direction AS quoted_direction
FROM (SELECT 1) AS one
LEFT JOIN chats AS c ON c.bot_id = :bot_id AND c.kind = :kind AND c.peer_id = :peer_id
LEFT JOIN messages AS quoted ON quoted.id = (
    SELECT id FROM messages
    WHERE chat_id = c.id AND platform_id = :reply_to
    ORDER BY sent_at DESC LIMIT 1
);

-- name: chat_name
-- What a chat calls itself.
SELECT name FROM chats WHERE bot_id = :bot_id AND kind = :kind AND peer_id = :peer_id;

-- name: switched_chats
-- Those that an operator switched on or off, or where nothing can be sent.
SELECT bot_id, kind, peer_id, access, muted_until FROM chats
WHERE access <> '' OR muted_until > 0;

-- name: blocked
-- Whom the bot does not answer.
SELECT bot_id, user_id FROM blocks;

-- name: set_access!
-- An operator's word on whether a chat is recorded and answered.
UPDATE chats SET access = :access, access_by = :by, access_at = :at
WHERE bot_id = :bot_id AND kind = :kind AND peer_id = :peer_id;

-- name: chosen_models
-- Those chats for which an operator chose a model.
SELECT bot_id, kind, peer_id, model FROM chats WHERE model <> '';

-- name: choose_model!
-- An operator's word on which model answers there first.
UPDATE chats SET model = :model, model_by = :by, model_at = :at
WHERE bot_id = :bot_id AND kind = :kind AND peer_id = :peer_id;

-- name: set_muted!
-- Until when nothing can be sent there.
UPDATE chats SET muted_until = :until
WHERE bot_id = :bot_id AND kind = :kind AND peer_id = :peer_id;

-- name: set_removed!
-- The account is no longer in the chat; a null brings it back.
UPDATE chats SET removed_at = :at
WHERE bot_id = :bot_id AND kind = :kind AND peer_id = :peer_id;

-- name: rename_chat!
-- Display only.
UPDATE chats SET name = :name
WHERE bot_id = :bot_id AND kind = :kind AND peer_id = :peer_id;

-- name: groups_to_catch_up
-- Groups that have rows, the account is in and nobody switched off; the most recent first.
SELECT peer_id, last_seen FROM chats
WHERE bot_id = :bot_id AND kind = 'group' AND removed_at IS NULL AND access <> 'disabled'
ORDER BY last_seen DESC;

-- name: join_member!
-- A member joined, or came back.
INSERT INTO memberships (chat_id, member_id, joined_at, first_seen, last_seen)
SELECT c.id, m.id, :at, :at, :at
FROM chats AS c, members AS m
WHERE c.bot_id = :bot_id AND c.kind = 'group' AND c.peer_id = :peer_id
  AND m.bot_id = :bot_id AND m.user_id = :user_id
ON CONFLICT (chat_id, member_id) DO UPDATE SET joined_at = excluded.joined_at, left_at = NULL;

-- name: leave_member!
-- Nothing is forgotten when a member leaves; it is known when.
UPDATE memberships SET left_at = :at
WHERE chat_id = (
    SELECT id FROM chats WHERE bot_id = :bot_id AND kind = 'group' AND peer_id = :peer_id
) AND member_id = (SELECT id FROM members WHERE bot_id = :bot_id AND user_id = :user_id);

-- name: set_card!
-- The current card, unless something newer was seen; history is kept by add_name.
INSERT INTO memberships (chat_id, member_id, card, first_seen, last_seen)
SELECT c.id, m.id, :card, :at, :at
FROM chats AS c, members AS m
WHERE c.bot_id = :bot_id AND c.kind = 'group' AND c.peer_id = :peer_id
  AND m.bot_id = :bot_id AND m.user_id = :user_id
ON CONFLICT (chat_id, member_id) DO UPDATE
SET card = CASE WHEN excluded.last_seen >= last_seen THEN excluded.card ELSE card END,
    last_seen = max(last_seen, excluded.last_seen);

-- name: set_role!
-- The current role.
INSERT INTO memberships (chat_id, member_id, role, first_seen, last_seen)
SELECT c.id, m.id, :role, :at, :at
FROM chats AS c, members AS m
WHERE c.bot_id = :bot_id AND c.kind = 'group' AND c.peer_id = :peer_id
  AND m.bot_id = :bot_id AND m.user_id = :user_id
ON CONFLICT (chat_id, member_id) DO UPDATE
SET role = CASE WHEN excluded.last_seen >= last_seen THEN excluded.role ELSE role END,
    last_seen = max(last_seen, excluded.last_seen);

-- name: set_title!
-- The current special title.
INSERT INTO memberships (chat_id, member_id, title, first_seen, last_seen)
SELECT c.id, m.id, :title, :at, :at
FROM chats AS c, members AS m
WHERE c.bot_id = :bot_id AND c.kind = 'group' AND c.peer_id = :peer_id
  AND m.bot_id = :bot_id AND m.user_id = :user_id
ON CONFLICT (chat_id, member_id) DO UPDATE
SET title = CASE WHEN excluded.last_seen >= last_seen THEN excluded.title ELSE title END,
    last_seen = max(last_seen, excluded.last_seen);

-- name: add_name!
-- One more name of a member in a group.
INSERT INTO names (member_id, chat_id, name, first_seen, last_seen)
SELECT m.id, c.id, :name, :at, :at
FROM chats AS c, members AS m
WHERE c.bot_id = :bot_id AND c.kind = 'group' AND c.peer_id = :peer_id
  AND m.bot_id = :bot_id AND m.user_id = :user_id
ON CONFLICT (member_id, coalesce(chat_id, 0), name) DO UPDATE
SET first_seen = min(first_seen, excluded.first_seen),
    last_seen = max(last_seen, excluded.last_seen);

-- name: names_of
-- Every name a member ever had, oldest first.
SELECT n.name, c.peer_id, n.first_seen, n.last_seen
FROM names AS n
JOIN members AS m ON m.id = n.member_id
LEFT JOIN chats AS c ON c.id = n.chat_id
WHERE m.bot_id = :bot_id AND m.user_id = :user_id
ORDER BY n.first_seen, n.name;

-- name: role_in_group$
-- The role that the newest event showed.
SELECT s.role FROM memberships AS s
JOIN chats AS c ON c.id = s.chat_id
JOIN members AS m ON m.id = s.member_id
WHERE c.bot_id = :bot_id AND c.kind = 'group' AND c.peer_id = :peer_id
  AND m.bot_id = :bot_id AND m.user_id = :user_id AND s.left_at IS NULL;

-- name: block!
-- Whom the bot answers no more.
INSERT INTO blocks (bot_id, user_id, blocked_at, blocked_by) VALUES (:bot_id, :user_id, :at, :by)
ON CONFLICT (bot_id, user_id) DO NOTHING;

-- name: unblock!
-- Whom the bot answers again.
DELETE FROM blocks WHERE bot_id = :bot_id AND user_id = :user_id;

-- name: connect_account!
-- Every account that ever used this store; their messages are never taken for people's.
INSERT INTO accounts (bot_id, first_seen, connected_at) VALUES (:bot_id, :at, :at)
ON CONFLICT (bot_id) DO UPDATE SET connected_at = excluded.connected_at, offline_at = NULL;

-- name: account_offline!
-- The platform says that the account is offline although the connection stands.
UPDATE accounts SET offline_at = :at WHERE bot_id = :bot_id;

-- name: accounts
-- All of them.
SELECT bot_id FROM accounts;

-- name: claim_notice!
-- One row is changed if the notice is due, none if it was given since. One that is repeated and was
-- given a minute from now was given before the clock was set back.
INSERT INTO notices (chat_id, member_id, kind, given_at)
SELECT c.id, (SELECT id FROM members WHERE bot_id = :bot_id AND user_id = :user_id), :notice, :at
FROM chats AS c
WHERE c.bot_id = :bot_id AND c.kind = :kind AND c.peer_id = :peer_id
ON CONFLICT (chat_id, kind, coalesce(member_id, 0)) DO UPDATE SET given_at = excluded.given_at
WHERE given_at < :due_before OR (:due_before > 0 AND given_at > :at + 60000);

-- name: withdraw_notice!
-- It did not reach anybody after all.
DELETE FROM notices WHERE kind = :notice AND chat_id = (
    SELECT id FROM chats WHERE bot_id = :bot_id AND kind = :kind AND peer_id = :peer_id
) AND (:user_id IS NULL OR member_id = (
    SELECT id FROM members WHERE bot_id = :bot_id AND user_id = :user_id
));

-- name: keep_request!
-- A friend request or an invitation waits for an operator.
INSERT INTO requests (bot_id, kind, flag, user_id, group_id, comment, arrived_at)
VALUES (:bot_id, :request, :flag, :user_id, :group_id, :comment, :at)
ON CONFLICT (bot_id, flag) DO NOTHING;

-- name: request_by_flag^
-- The request of one event.
SELECT * FROM requests WHERE bot_id = :bot_id AND flag = :flag;

-- name: open_request^
-- One request that nobody approved yet.
SELECT * FROM requests WHERE id = :id AND bot_id = :bot_id AND approved_at IS NULL;

-- name: open_requests
-- All that nobody approved yet.
SELECT * FROM requests WHERE bot_id = :bot_id AND approved_at IS NULL ORDER BY id DESC LIMIT 20;

-- name: approve_request!
-- By whom and when.
UPDATE requests SET approved_at = :at, approved_by = :by WHERE id = :id;
