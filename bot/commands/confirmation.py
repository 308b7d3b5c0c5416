"""What cannot be taken back is done only once whoever asks for it confirms it, soon and there."""

from bot.commands.call import Call
from bot.store.chats import claim_notice, withdraw_notice

CONFIRM_MS = 60_000
"""So long it waits to be confirmed, also over a restart."""


async def await_confirmation(call: Call, deed: str) -> None:
    """Let a deed wait until its caller confirms it in the same chat."""
    now = call.app.clock.now()
    async with call.app.db.transaction() as tx:
        await withdraw_notice(tx, call.chat, deed, call.caller_id)
        await claim_notice(tx, call.chat, deed, at=now, due_before=0, user_id=call.caller_id)


async def is_confirmed(call: Call, deed: str) -> bool:
    """Whether a deed of the caller waited for just this; it waits no more in any case."""
    due_before = call.app.clock.now() - CONFIRM_MS
    async with call.app.db.transaction() as tx:
        # It is due again once the last one is too old, or if there was none.
        is_late = await claim_notice(
            tx,
            call.chat,
            deed,
            at=call.app.clock.now(),
            due_before=due_before,
            user_id=call.caller_id,
        )
        await withdraw_notice(tx, call.chat, deed, call.caller_id)
    return not is_late
