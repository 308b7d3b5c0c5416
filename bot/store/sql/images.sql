-- name: of_message^
-- What is said of one picture of a message.
SELECT description FROM image_descriptions WHERE message_id = :message_id AND number = :number;

-- name: of_content^
-- What was said last of a picture with the same content.
SELECT description, model FROM image_descriptions WHERE hash = :hash ORDER BY at DESC LIMIT 1;

-- name: standing^
-- A message of which something may be kept.
SELECT text, segments FROM messages JOIN members AS m ON m.id = member_id
WHERE messages.id = :message_id AND recalled_at IS NULL AND forgotten_at IS NULL AND text <> ''
  AND messages.id > m.hidden_until;

-- name: keep!
-- Keep what a model says of a picture.
INSERT INTO image_descriptions (message_id, number, hash, description, model, at)
VALUES (:message_id, :number, :hash, :description, :model, :at)
ON CONFLICT (message_id, number) DO UPDATE SET
    hash = excluded.hash, description = excluded.description, model = excluded.model,
    at = excluded.at;
