"""Conversation: what is answered, when, and how it is sent. Pure: no I/O, no SQL, no clock."""
