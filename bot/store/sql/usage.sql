-- name: add_usage!
-- One call; the numbers are the provider's.
INSERT INTO usage (
    at, purpose, model, endpoint, chat_id, duration_ms,
    prompt_tokens, cached_tokens, completion_tokens, ok, error
) VALUES (
    :at, :purpose, :model, :endpoint,
    (SELECT id FROM chats WHERE bot_id = :bot_id AND kind = :kind AND peer_id = :peer_id),
    :duration_ms, :prompt_tokens, :cached_tokens, :completion_tokens, :ok, :error
);

-- name: usage_since
-- Sums by purpose since a moment.
SELECT purpose, count(*) AS calls, sum(ok) AS succeeded, sum(prompt_tokens) AS prompt_tokens,
    sum(cached_tokens) AS cached_tokens, sum(completion_tokens) AS completion_tokens
FROM usage WHERE at >= :since
GROUP BY purpose ORDER BY purpose;

-- name: tokens_since$
-- What the purposes of a list cost since a moment.
SELECT coalesce(sum(prompt_tokens + completion_tokens), 0) FROM usage
WHERE at >= :since AND purpose IN (SELECT value FROM json_each(:purposes));
