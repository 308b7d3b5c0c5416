"""Search: the words of texts and questions, and how what is found is ranked.

Pure: no await, no I/O, no SQL, no clock. See ``docs/search.md``.
"""
