-- Opting out: who is not recorded, what is kept of them for one turn, how far erasing has come.

-- Since when somebody is not recorded, and which of their messages are hidden: nothing shows those up
-- to one row any more, and those up to another have lost their text. Who is recorded again stays so.
ALTER TABLE members ADD COLUMN opted_out_at INTEGER;
ALTER TABLE members ADD COLUMN hidden_until INTEGER NOT NULL DEFAULT 0;
ALTER TABLE members ADD COLUMN erased_until INTEGER NOT NULL DEFAULT 0;
CREATE INDEX members_opted_out ON members (opted_out_at) WHERE opted_out_at IS NOT NULL;
CREATE INDEX members_hidden ON members (hidden_until) WHERE erased_until < hidden_until;

-- A message of somebody who is not recorded is forgotten as it comes. One that the bot answers has its
-- text until then, for its turn alone.
ALTER TABLE messages ADD COLUMN kept_until INTEGER;
CREATE INDEX messages_kept ON messages (kept_until) WHERE kept_until IS NOT NULL;
