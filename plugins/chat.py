"""What people say to the bot: commands, and conversation.

One matcher for both: each further one costs every message a third of a millisecond and more on its
way to the model. See ``plugins/ingest.py`` for when not even this one is waited for.
"""

from nonebot import on

from plugins.heard import REPLY_PRIORITY, reply

heard = on("message", priority=REPLY_PRIORITY, block=False, handlers=[reply])
