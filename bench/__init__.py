"""Measurements of Qunyi beside the simplest thing that could do the same; ``python -m bench``."""
