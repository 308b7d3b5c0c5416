-- What tools were used in a turn, as the model called them and was told of them.
-- JSON, since prompts show it whole or not at all; empty for most turns.
ALTER TABLE turns ADD COLUMN tools TEXT NOT NULL DEFAULT '';
CREATE INDEX turns_with_tools ON turns (chat_id, id) WHERE tools <> '';

-- Which messages the results of a turn's tools show, so that a recall reaches them.
CREATE TABLE tool_messages (
    message_id INTEGER NOT NULL REFERENCES messages (id),
    turn_id    INTEGER NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
    PRIMARY KEY (message_id, turn_id)
) WITHOUT ROWID;
CREATE INDEX tool_messages_by_turn ON tool_messages (turn_id);
