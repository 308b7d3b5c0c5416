"""Not to be recorded, and to be recorded again: 别记我 记我."""

from bot.commands.call import Call, Refusal
from bot.commands.confirmation import await_confirmation, is_confirmed
from bot.model import Member
from bot.opt_out import Erased, go_on_erasing
from bot.opt_out import opt_in as record_again
from bot.opt_out import opt_out as record_no_more

CONFIRMED = "确认"
DEED = "opting-out"

ASKED = (
    "确认后，我不再记录你，在所有群和私聊里都是：你说的话不保存文字，也不会被整理、搜索。"
    "已经存下的会抹去，不能恢复：你发过的消息文字、我记得的关于你的内容、只依据你的话的群记忆，"
    "以及它们的索引、向量、图片描述和证据。"
    "你叫我时我照样回答，那条消息只为回答保留，最多 24 小时。"
    "确认请在 60 秒内发送 /别记我 确认。(confirm within 60 s)"
)
ALREADY = "你已经选择不被记录。想让我重新记录，发送 /记我。(already opted out)"
REST_FOLLOWS = "还没抹去的已经看不到、搜不到，正在继续抹去。"
REMAINS = (
    "留下的只有：有人在那时发过消息这件事、你的 QQ 号和用过的名字（用来不记提到你的群记忆）、"
    "别人说过的话，还有之前的备份和导出。你定的提醒还会发。想让我重新记录，发送 /记我。"
)


async def opt_out(call: Call) -> str:
    """别记我: record the caller no more, and erase what is kept of them, once that is confirmed."""
    words = call.arguments.strip()
    if words not in ("", CONFIRMED):
        raise Refusal("用法：/别记我，然后 /别记我 确认")
    if call.message.sender.anonymous:
        raise Refusal("匿名的人我分不清谁是谁，请用自己的身份发送。")
    if call.app.opt_outs.has(call.chat.bot_id, call.caller_id):
        is_left = await go_on_erasing(call.app, Member(call.chat.bot_id, call.caller_id))
        return f"{ALREADY}{REST_FOLLOWS}" if is_left else ALREADY
    if words and await is_confirmed(call, DEED):
        return await _opt_out(call)
    await await_confirmation(call, DEED)
    return ASKED


async def _opt_out(call: Call) -> str:
    erased = await record_no_more(call.app, Member(call.chat.bot_id, call.caller_id))
    return f"{_done(erased)}{REMAINS}(opted out)"


def _done(erased: Erased) -> str:
    told = f"好，不再记录你。抹去了 {erased.messages} 条消息的文字、{erased.entries} 条记忆。"
    if erased.is_whole:
        return told
    return f"{told}{REST_FOLLOWS}"


async def opt_in(call: Call) -> str:
    """记我: record the caller again from now on."""
    if call.arguments.strip():
        raise Refusal("用法：/记我")
    if not await record_again(call.app, Member(call.chat.bot_id, call.caller_id)):
        return "我本来就在记录你。不想被记录，发送 /别记我。(already recorded)"
    return "好，从现在起重新记录你；之前没记的、抹去的不会回来。(recorded again)"
