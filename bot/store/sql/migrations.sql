-- name: create_record_table#
-- Where each applied step is recorded.
CREATE TABLE IF NOT EXISTS schema_steps (
    version    INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    applied_at INTEGER NOT NULL
);

-- name: applied_version$
-- The last applied step.
SELECT max(version) FROM schema_steps;

-- name: record_step!
-- Record one applied step.
INSERT INTO schema_steps (version, name, applied_at) VALUES (:version, :name, :applied_at);
