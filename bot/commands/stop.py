"""Stop what is being thought about in this chat: 停."""

from bot.commands.call import Call


async def stop(call: Call) -> str:
    """停: end the turn of this chat, and let nobody who waits there be answered."""
    floor = call.app.floor
    if floor.silence(call.chat):
        return "停下了。"
    if floor.is_speaking(call.chat):
        return "回答已经在发了，停不下来。"
    return "现在没有在回答。"
