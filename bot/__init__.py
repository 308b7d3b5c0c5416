"""Qunyi 群忆: a QQ bot that remembers, with evidence."""

__version__ = "0.1.0"
