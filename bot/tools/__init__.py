"""The tools that a model may use in a turn. See ``docs/tools.md``."""
