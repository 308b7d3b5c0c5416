-- name: keep!
-- What tools were used in a turn.
UPDATE turns SET tools = :tools WHERE id = :turn_id;

-- name: link*!
-- The messages that their results show.
INSERT INTO tool_messages (message_id, turn_id)
SELECT id, :turn_id FROM messages WHERE id = :message_id
ON CONFLICT DO NOTHING;

-- name: with_old_tools
-- Turns of the chat of one that have tools, all but the newest.
SELECT id FROM turns
WHERE tools <> '' AND chat_id = (SELECT chat_id FROM turns WHERE id = :turn_id)
ORDER BY id DESC
LIMIT -1 OFFSET :kept;

-- name: drop_tools!
-- Some turns lose what they know of tools.
UPDATE turns SET tools = '' WHERE id IN (SELECT value FROM json_each(:turn_ids));

-- name: drop_links!
-- And of the messages that the results showed.
DELETE FROM tool_messages WHERE turn_id IN (SELECT value FROM json_each(:turn_ids));

-- name: showing
-- Turns of which a tool showed one of some messages, or that answered one.
SELECT id, state, tools FROM turns
WHERE tools <> '' AND id IN (
    SELECT turn_id FROM tool_messages
    WHERE message_id IN (SELECT value FROM json_each(:message_ids))
    UNION
    SELECT turn_id FROM turn_lines
    WHERE message_id IN (SELECT value FROM json_each(:message_ids)) AND part = 'question'
);

-- name: since
-- Turns of some chats that used tools.
SELECT id, tools FROM turns
WHERE tools <> '' AND chat_id IN (SELECT value FROM json_each(:chat_ids))
  AND started_at >= :since;

-- name: some
-- Some turns that used tools.
SELECT id, tools FROM turns WHERE tools <> '' AND id IN (SELECT value FROM json_each(:turn_ids));

-- name: of_chat
-- Turns of a chat that used tools.
SELECT id FROM turns WHERE chat_id = :chat_id AND tools <> '';
