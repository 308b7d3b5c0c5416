"""Whether what somebody said in one group may be known in another: 跨群."""

from bot.commands.call import Call, Refusal
from bot.model import Member, Scope, Shown
from bot.store.snapshots import crosses_groups, mark_stale, set_crosses_groups

_WORDS = {"开": True, "on": True, "true": True, "关": False, "off": False, "false": False}


async def cross_groups(call: Call) -> str:
    """跨群: let one's memory of other groups be used in a group, or not; at once."""
    member = Member(call.chat.bot_id, call.caller_id)
    word = call.arguments.strip().lower()
    if not word:
        return _told(call, await crosses_groups(call.app.db, member))
    if word not in _WORDS:
        raise Refusal("用法：/跨群 开 或 /跨群 关")
    await _switch(call, member, _WORDS[word])
    return _told(call, _WORDS[word])


async def _switch(call: Call, member: Member, crosses: bool) -> None:
    shown = Shown()
    async with call.app.db.transaction() as tx:
        await set_crosses_groups(tx, member, crosses)
        if not crosses:
            shown = await mark_stale(tx, Scope(member.bot_id, "member", member.user_id))
    # Only now: a turn that begins again must find it switched off.
    call.app.floor.renew_shown(shown)


def _told(call: Call, crosses: bool) -> str:
    if not crosses:
        return "跨群：关。我在一个群里记得的你，只用在那个群里。"
    told = "跨群：开。你在一个群里说过的个人情况和习惯，在别的群里也能用上；私聊里说的不会。"
    if call.app.settings.of(call.chat).memory_member_cross_group:
        return told
    return f"{told}\n（操作者目前对所有人关闭了跨群，所以暂时没有作用。）"
