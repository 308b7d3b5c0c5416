"""Where the project lies."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
"""The directory that holds ``pyproject.toml``, ``.env`` and ``data/``."""
