"""A transcript: everything that happens in the demo, as JSON Lines.

Each line is one happening: its kind, and its fields by their names. It is what the view shows, and
every prompt besides, so that a test, or a reader who doubts, can look for what must not be there.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any, TextIO

from bot.demo.errors import TranscriptError
from bot.demo.happenings import Happening


class Transcript:
    """Writes happenings into a file."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    async def tell(self, happening: Happening) -> None:
        """Write down what happened."""
        line = {"kind": type(happening).__name__, **_plain(happening)}
        self._file.write(json.dumps(line, ensure_ascii=False) + "\n")

    async def add(self, kind: str, value: Any) -> None:
        """Write down something else."""
        self._file.write(json.dumps({"kind": kind, "value": value}, ensure_ascii=False) + "\n")


@asynccontextmanager
async def open_transcript(path: Path | None) -> AsyncIterator[Transcript | None]:
    """Open a transcript, or none if no file is named.

    Raises:
        TranscriptError: the file cannot be written.
    """
    if path is None:
        yield None
        return
    try:
        file = path.open("w", encoding="utf-8")
    except OSError as error:
        raise TranscriptError(f"{path} cannot be written: {error.strerror}") from error
    with file:
        yield Transcript(file)


def _plain(happening: Happening) -> dict[str, Any]:
    assert is_dataclass(happening)
    return asdict(happening)
