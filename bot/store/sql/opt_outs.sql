-- name: opted_out
-- Everybody who is not recorded.
SELECT bot_id, user_id FROM members WHERE opted_out_at IS NOT NULL AND opted_out_at > 0;

-- name: ensure_member!
-- Somebody may opt out before anything of theirs is known.
INSERT INTO members (bot_id, user_id, first_seen, last_seen) VALUES (:bot_id, :user_id, :at, :at)
ON CONFLICT (bot_id, user_id) DO NOTHING;

-- name: opt_out!
-- From now on nothing is recorded of them, and nothing so far is shown. Who has opted out already
-- stays so since then.
UPDATE members
SET opted_out_at = coalesce(opted_out_at, :at),
    hidden_until = (SELECT coalesce(max(id), 0) FROM messages)
WHERE bot_id = :bot_id AND user_id = :user_id;

-- name: opt_in!
-- What they say from now on is recorded; what was hidden goes all the same.
UPDATE members SET opted_out_at = NULL
WHERE bot_id = :bot_id AND user_id = :user_id AND opted_out_at IS NOT NULL;
