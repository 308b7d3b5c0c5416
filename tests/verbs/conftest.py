"""A stage of its own for every test of the verbs."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.verbs.stage import Stage, open_stage


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    """The program, at noon, with people who have said nothing yet."""
    async with open_stage(tmp_path) as opened:
        yield opened
