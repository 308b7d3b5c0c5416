"""When a failed task is tried again. See ``docs/memory.md``, "Failure"."""

LONGEST_MINUTES = 60


def retry_minutes(attempts: int) -> int:
    """Return how long to wait after ``attempts`` failures running (≥ 1): 1, 2, 4 … 60 minutes."""
    return min(LONGEST_MINUTES, 2 ** min(attempts - 1, 10))
