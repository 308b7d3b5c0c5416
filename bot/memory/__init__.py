"""Memory: when messages are reflected, what a model is shown, what of its answer is believed.

Pure: no await, no I/O, no SQL, no clock. See ``docs/memory.md``.
"""
