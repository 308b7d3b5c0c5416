"""OneBot v11 as nouns: what clients send, read and rendered without I/O or clock.

See ``docs/onebot.md``.
"""
