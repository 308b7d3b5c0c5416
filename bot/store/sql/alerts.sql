-- name: claim_alert!
-- One row changes if it is due, none if they were told since.
INSERT INTO alerts (kind, told_at) VALUES (:kind, :at)
ON CONFLICT (kind) DO UPDATE SET told_at = excluded.told_at WHERE told_at < :due_before;
