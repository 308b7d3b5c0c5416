-- name: upsert_chats*!
-- A message that arrives now proves that the account is in the chat, and may tell the chat's name.
INSERT INTO chats (bot_id, kind, peer_id, name, first_seen, last_seen)
VALUES (:bot_id, :kind, :peer_id, :group_name, :first_at, :at)
ON CONFLICT (bot_id, kind, peer_id) DO UPDATE
SET name = CASE excluded.name WHEN '' THEN name ELSE excluded.name END,
    first_seen = min(first_seen, excluded.first_seen),
    last_seen = max(last_seen, excluded.last_seen),
    removed_at = CASE WHEN :live THEN NULL ELSE removed_at END;

-- name: upsert_members*!
-- A newer nickname replaces the older one; history keeps both.
INSERT INTO members (bot_id, user_id, nickname, anonymous, first_seen, last_seen)
VALUES (:bot_id, :user_id, :nickname, :anonymous, :first_at, :at)
ON CONFLICT (bot_id, user_id) DO UPDATE
SET nickname = CASE
        WHEN excluded.nickname <> '' AND excluded.last_seen >= last_seen THEN excluded.nickname
        ELSE nickname
    END,
    first_seen = min(first_seen, excluded.first_seen),
    last_seen = max(last_seen, excluded.last_seen);

-- name: upsert_memberships*!
-- What the group shows of a member, as of the newest event.
INSERT INTO memberships (chat_id, member_id, card, role, title, first_seen, last_seen)
SELECT c.id, m.id, :card, :role, :title, :first_at, :at
FROM chats AS c, members AS m
WHERE c.bot_id = :bot_id AND c.kind = :kind AND c.peer_id = :peer_id
  AND m.bot_id = :bot_id AND m.user_id = :user_id
ON CONFLICT (chat_id, member_id) DO UPDATE
SET card = CASE WHEN excluded.last_seen >= last_seen THEN excluded.card ELSE card END,
    role = CASE
        WHEN excluded.role <> '' AND excluded.last_seen >= last_seen THEN excluded.role
        ELSE role
    END,
    title = CASE WHEN excluded.last_seen >= last_seen THEN excluded.title ELSE title END,
    left_at = CASE
        WHEN left_at IS NOT NULL AND excluded.last_seen > left_at THEN NULL ELSE left_at
    END,
    first_seen = min(first_seen, excluded.first_seen),
    last_seen = max(last_seen, excluded.last_seen);

-- name: upsert_nicknames*!
-- Nicknames belong to no chat.
INSERT INTO names (member_id, chat_id, name, first_seen, last_seen)
SELECT m.id, NULL, :nickname, :first_at, :at
FROM members AS m
WHERE :nickname <> '' AND m.bot_id = :bot_id AND m.user_id = :user_id
ON CONFLICT (member_id, coalesce(chat_id, 0), name) DO UPDATE
SET first_seen = min(first_seen, excluded.first_seen),
    last_seen = max(last_seen, excluded.last_seen);

-- name: upsert_cards*!
-- Cards belong to one group.
INSERT INTO names (member_id, chat_id, name, first_seen, last_seen)
SELECT m.id, c.id, :card, :first_at, :at
FROM chats AS c, members AS m
WHERE :card <> '' AND c.bot_id = :bot_id AND c.kind = :kind AND c.peer_id = :peer_id
  AND m.bot_id = :bot_id AND m.user_id = :user_id
ON CONFLICT (member_id, coalesce(chat_id, 0), name) DO UPDATE
SET first_seen = min(first_seen, excluded.first_seen),
    last_seen = max(last_seen, excluded.last_seen);

-- name: quoted^
-- What a message quotes, as far as it tells whether that is the account's own.
SELECT direction FROM messages
WHERE chat_id = (
    SELECT id FROM chats WHERE bot_id = :bot_id AND kind = :kind AND peer_id = :peer_id
) AND platform_id = :reply_to
ORDER BY sent_at DESC LIMIT 1;

-- name: newest_id$
-- Row ids above it are what this transaction adds.
SELECT coalesce(max(id), 0) FROM messages;

-- name: insert_messages*!
-- The same event twice is one row. The account's own message comes from the answer of the send
-- call, from the platform's echo and later from a history, with the same id and other times: said
-- or received within 60 s it is one row.
INSERT INTO messages (
    chat_id, member_id, platform_id, direction, kind, sent_at, received_at, local_date, sequence,
    sender_name, sender_role, segments, text, reply_to, mentions, temporary_group, counted,
    forgotten_at, kept_until
)
SELECT
    c.id, m.id, :platform_id, :direction, :message_kind, :sent_at, :received_at, :local_date,
    :sequence, :sender_name, :role, :segments, :text, :reply_to, :mentions, :temporary_group,
    :counted, :forgotten_at, :kept_until
FROM chats AS c, members AS m
WHERE c.bot_id = :bot_id AND c.kind = :kind AND c.peer_id = :peer_id
  AND m.bot_id = :bot_id AND m.user_id = :user_id
  AND (:direction = 'inbound' OR NOT EXISTS (
      SELECT 1 FROM messages AS own
      WHERE own.chat_id = c.id AND own.platform_id = :platform_id AND own.direction = 'outbound'
        AND (own.received_at BETWEEN :received_at - 60000 AND :received_at + 60000
            OR own.sent_at BETWEEN :sent_at - 60000 AND :sent_at + 60000)
  ))
ON CONFLICT (chat_id, platform_id, sent_at) DO NOTHING;

-- name: merge_echoes*!
-- The two copies of an own message complete each other: the echo knows the sequence, the send call
-- whether it was a notice, which keeps no text. A history does not know.
UPDATE messages
SET sequence = coalesce(sequence, :sequence),
    kind = CASE WHEN :live AND :message_kind = 'notice' THEN 'notice' ELSE kind END,
    text = CASE WHEN :live AND :message_kind = 'notice' THEN '' ELSE text END,
    segments = CASE WHEN :live AND :message_kind = 'notice' THEN '[]' ELSE segments END
WHERE direction = 'outbound' AND platform_id = :platform_id
  AND (received_at BETWEEN :received_at - 60000 AND :received_at + 60000
      OR sent_at BETWEEN :sent_at - 60000 AND :sent_at + 60000)
  AND chat_id = (
      SELECT id FROM chats WHERE bot_id = :bot_id AND kind = :kind AND peer_id = :peer_id
  );

-- name: apply_early_recalls!
-- A recall that came first takes the text of the message it waited for, not of the next with its id.
UPDATE messages
SET recalled_at = early.recalled_at, recalled_by = early.recalled_by, text = '', segments = '[]',
    mentions = '[]', counted = 0, kept_until = NULL
FROM early_recalls AS early
WHERE messages.id > :newest_id AND messages.recalled_at IS NULL
  AND early.chat_id = messages.chat_id AND early.platform_id = messages.platform_id
  AND early.recalled_at > messages.received_at - 600000
  AND NOT EXISTS (
      SELECT 1 FROM messages AS sooner
      WHERE sooner.chat_id = messages.chat_id AND sooner.platform_id = messages.platform_id
        AND sooner.id > :newest_id AND sooner.id < messages.id
  );

-- name: drop_met_recalls!
-- Recalls whose message came.
DELETE FROM early_recalls
WHERE (chat_id, platform_id) IN (
    SELECT chat_id, platform_id FROM messages WHERE id > :newest_id
);

-- name: added
-- What this transaction added, with what is needed to match it to its event, and whether a
-- recall waited for it.
SELECT messages.id, c.bot_id, c.kind, c.peer_id, messages.platform_id, sent_at,
    messages.recalled_at IS NOT NULL AS recalled, early.platform_id IS NOT NULL AS awaited
FROM messages
JOIN chats AS c ON c.id = messages.chat_id
LEFT JOIN early_recalls AS early
    ON early.chat_id = messages.chat_id AND early.platform_id = messages.platform_id
WHERE messages.id > :newest_id;

-- name: find_row^
-- The row of an event that was stored before: by its identity, or an own message by its id and the
-- nearest time.
SELECT messages.id, recalled_at IS NOT NULL AS recalled
FROM messages JOIN chats AS c ON c.id = messages.chat_id
WHERE c.bot_id = :bot_id AND c.kind = :kind AND c.peer_id = :peer_id
  AND platform_id = :platform_id
  AND (sent_at = :sent_at OR (direction = 'outbound' AND :direction = 'outbound'))
ORDER BY sent_at = :sent_at DESC,
    min(abs(sent_at - :sent_at), abs(messages.received_at - :received_at))
LIMIT 1;

-- name: add_pending*!
-- What waits for each task, kept where the messages are kept.
INSERT INTO cursors (chat_id, task, pending, oldest_pending_at, newest_pending_at)
SELECT c.id, :task, :count, :oldest, :newest
FROM chats AS c
WHERE c.bot_id = :bot_id AND c.kind = :kind AND c.peer_id = :peer_id
ON CONFLICT (chat_id, task) DO UPDATE
SET pending = pending + excluded.pending,
    oldest_pending_at = min(coalesce(oldest_pending_at, excluded.oldest_pending_at),
        excluded.oldest_pending_at),
    newest_pending_at = max(coalesce(newest_pending_at, excluded.newest_pending_at),
        excluded.newest_pending_at);
