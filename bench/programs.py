"""The programs under measurement, as processes of their own on this machine."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from bot.config import variables
from bot.paths import ROOT
from bot.simulate import Endpoint

POLL_SECONDS = 0.002
PATIENCE_SECONDS = 60


def free_port() -> int:
    """Return a loopback port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Program:
    """A process that listens on a port; a context manager that ends it.

    Attributes:
        startup_seconds: from its start until the port accepted.
    """

    def __init__(
        self, name: str, arguments: Sequence[str], port: int, environ: Mapping[str, str], log: Path
    ) -> None:
        self.name = name
        self.port = port
        self.startup_seconds = 0.0
        self._arguments = arguments
        self._environ = environ
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> Endpoint:
        """Where its OneBot side listens."""
        return Endpoint(self.port)

    @property
    def resident_mib(self) -> float:
        """The memory that it holds now."""
        assert self._process is not None
        return _resident_mib(self._process.pid)

    @property
    def children_mib(self) -> float:
        """The memory that the processes which it started hold now."""
        assert self._process is not None
        pid = self._process.pid
        started = [task.read_text("ascii").split() for task in _tasks(pid)]
        return sum(_resident_mib(int(child)) for children in started for child in children)

    @property
    def cpu_seconds(self) -> float:
        """The processor time that it used so far."""
        assert self._process is not None
        fields = Path(f"/proc/{self._process.pid}/stat").read_text("ascii").split(")")[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def __enter__(self) -> Self:
        self._log.parent.mkdir(parents=True, exist_ok=True)
        began = time.perf_counter()
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, *self._arguments],
                cwd=ROOT,
                env={**os.environ, **self._environ},
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            self._wait_until_it_listens(began)
        except BaseException:
            self._process.kill()
            self._process.wait()
            raise
        self.startup_seconds = time.perf_counter() - began
        return self

    def _wait_until_it_listens(self, began: float) -> None:
        assert self._process is not None
        while not _accepts(self.port):
            status = self._process.poll()
            if status is not None or time.perf_counter() - began > PATIENCE_SECONDS:
                ended = "does not listen" if status is None else f"ended with status {status}"
                said = self._log.read_text("utf-8", "replace")[-2_000:]
                raise RuntimeError(f"{self.name} {ended}; it said:\n{said}")
            time.sleep(POLL_SECONDS)

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _tasks(pid: int) -> list[Path]:
    return list(Path(f"/proc/{pid}/task").glob("*/children"))


def _resident_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text("ascii")
    kib = next(row for row in status.splitlines() if row.startswith("VmRSS:"))
    return int(kib.split()[1]) / 1024


def _accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def bare_echo(folder: Path) -> Program:
    """Return the baseline: NoneBot with one handler that echoes."""
    port = free_port()
    return Program("bare NoneBot", ["bench/bare_echo.py", str(port)], port, {}, folder / "bare.log")


def qunyi(
    folder: Path,
    database: Path,
    settings: str = "{}",
    model_url: str = "",
    *,
    embedder: str = "off",
) -> Program:
    """Return the bot itself, with nothing of the operator's own configuration.

    Args:
        folder: where its log goes.
        database: its file, absolute.
        settings: ``INITIAL_SETTINGS``.
        model_url: the model server; none if empty.
        embedder: ``EMBEDDING_MODEL``; the one that comes along if empty.
    """
    port = free_port()
    environ = dict.fromkeys(variables(), "") | {
        "ENVIRONMENT": "bench",
        "PORT": str(port),
        "DATABASE_URL": f"sqlite:///{database}",
        "INITIAL_SETTINGS": settings,
        "OPENAI_API_KEY": "sk-bench" if model_url else "",
        "OPENAI_BASE_URL": model_url,
        "CHAT_MODEL": "bench-model" if model_url else "",
        "EMBEDDING_MODEL": embedder,
    }
    return Program("Qunyi", ["-m", "bot"], port, environ, folder / "qunyi.log")
