"""What a model may do besides speaking: the tools of a turn, each in a file of its own."""
