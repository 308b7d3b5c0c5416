"""A workshop of its own for every test of memory."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.memory.workshop import Workshop, check_all, open_workshop


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Workshop]:
    """The program at noon, and what must always hold at the end."""
    async with open_workshop(tmp_path) as opened:
        yield opened
        await check_all(opened)
