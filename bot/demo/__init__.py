"""The demo: a week of a sample group, played through the real program.

See ``docs/demo.md``. The people and what the model answers are recorded in ``data/sample/``; the
adapter, the socket, the checks, the database and the prompts are those that a bot runs with.
"""
