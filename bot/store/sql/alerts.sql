-- name: claim_alert!
-- One row changes if it is due, none if they were told since. Told a minute from now is told before
-- the clock was set back.
INSERT INTO alerts (kind, told_at) VALUES (:kind, :at)
ON CONFLICT (kind) DO UPDATE SET told_at = excluded.told_at WHERE told_at < :due_before
    OR told_at > :at + 60000;
