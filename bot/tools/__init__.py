"""The tools that a model may use in a turn, one per file."""
