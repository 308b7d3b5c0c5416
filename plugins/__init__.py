"""The NoneBot edge: the adapter, and one plugin per way in."""
