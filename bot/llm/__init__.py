"""Models: one protocol, an OpenAI-compatible client, and a scripted one."""
