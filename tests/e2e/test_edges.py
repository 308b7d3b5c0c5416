"""Where the program meets a port that something else has."""

import socket
from pathlib import Path

from tests.e2e.command import command


async def test_a_port_that_something_has_is_named_with_its_cure(tmp_path: Path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ended = await command(
            "run",
            PORT=str(taken.getsockname()[1]),
            DATABASE_URL=f"sqlite:///{tmp_path / 'qunyi.db'}",
        )
    assert ended.status == 1
    assert "PORT" in ended.errors
    assert "Traceback" not in ended.output + ended.errors
