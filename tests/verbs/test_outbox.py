"""Everything that is sent passes one queue per account: gaps, caps, drops, failures."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from itertools import pairwise
from typing import Any

import pytest

from bot.conversation.pacing import SendLimits
from bot.errors import (
    AccountOffline,
    SendDropped,
    SendError,
    SendRejected,
    SendTimedOut,
    TurnWithdrawn,
)
from bot.model import Chat
from bot.onebot.segments import text_segment
from bot.platform.accounts import Accounts
from bot.platform.outbox import QUEUE_LENGTH, Letter, Outbox
from bot.simulate import Delay, Disconnect, Fail, Silence, VirtualClock, World, WorldPlatform
from tests.verbs.stage import BOT, FISH, GROUP, NOON, OTHER_GROUP, new_world

HERE = Chat(str(BOT), "group", str(GROUP))
THERE = Chat(str(BOT), "group", str(OTHER_GROUP))


async def nothing() -> None:
    """Nothing happens before a send."""


class Post:
    """An outbox, its accounts and its clock."""

    def __init__(self) -> None:
        self.clock = VirtualClock(NOON)
        self.world: World = new_world()
        self.platform = WorldPlatform(self.world, self.clock)
        self.accounts = Accounts(frozenset())
        self.accounts.connect(str(BOT), self.platform)
        self.limits = SendLimits(1, 20, 40)
        self.outbox = Outbox(self.accounts, self.clock, lambda: self.limits)
        self.tasks: list[asyncio.Task[Any]] = []

    def send(
        self,
        text: str,
        chat: Chat = HERE,
        *,
        urgent: bool = False,
        before: Callable[[], Awaitable[None]] = nothing,
    ) -> "asyncio.Task[str]":
        letter = Letter(chat, (text_segment(text),), urgent=urgent, before=before)
        return self.start(self.outbox.send(letter))

    def start(self, work: Coroutine[Any, Any, str]) -> "asyncio.Task[str]":
        task = asyncio.create_task(work)
        self.tasks.append(task)
        return task

    @property
    def sent(self) -> list[tuple[str, float]]:
        return [(sent.text, (sent.at - NOON) / 1000) for sent in self.platform.sent]


@pytest.fixture
async def post() -> AsyncIterator[Post]:
    opened = Post()
    yield opened
    for task in opened.tasks:
        task.cancel()
    await asyncio.gather(*opened.tasks, return_exceptions=True)


async def test_messages_of_one_account_are_a_gap_apart_whatever_their_chat(post: Post):
    post.send("一")
    post.send("二", THERE)
    post.send("三")
    await post.clock.advance(10)
    assert post.sent == [("一", 0), ("二", 1), ("三", 2)]


async def test_the_id_of_what_was_sent_comes_back(post: Post):
    message_id = await post.send("一")
    assert message_id == str(post.platform.sent[0].message_id)


async def test_a_chat_at_its_cap_waits_and_holds_up_no_other(post: Post):
    post.limits = SendLimits(1, 2, 40)
    for text in ("一", "二", "三"):
        post.send(text)
    post.send("别处", THERE)
    await post.clock.advance(70)
    assert post.sent == [("一", 0), ("二", 1), ("别处", 2), ("三", 60)]


async def test_the_cap_of_the_account_holds_for_all_chats(post: Post):
    post.limits = SendLimits(0, 20, 2)
    for text, chat in (("一", HERE), ("二", THERE), ("三", HERE)):
        post.send(text, chat)
    await post.clock.advance(70)
    assert post.sent == [("一", 0), ("二", 0), ("三", 60)]


async def test_no_minute_holds_more_than_the_cap(post: Post):
    post.limits = SendLimits(0.5, 5, 40)
    for number in range(12):
        post.send(str(number), urgent=True)
    await post.clock.advance(300)
    times = [at for _, at in post.sent]
    assert len(times) == 12
    assert all(later - earlier >= 60 for earlier, later in zip(times, times[5:], strict=False))
    assert all(later - earlier >= 0.5 for earlier, later in pairwise(times))


async def test_what_would_wait_over_a_minute_is_dropped_and_a_reminder_is_not(post: Post):
    post.limits = SendLimits(40, 20, 40)
    post.send("一")
    await post.clock.advance(1)
    post.send("二")
    await post.clock.advance(1)
    late, reminder = post.send("三"), post.send("提醒", urgent=True)
    await post.clock.advance(200)
    with pytest.raises(SendDropped):
        await late
    assert post.sent == [("一", 0), ("二", 40), ("提醒", 80)]
    assert await reminder


async def test_a_full_queue_takes_only_reminders(post: Post):
    post.platform.hold()
    waiting = [post.send(str(number)) for number in range(QUEUE_LENGTH)]
    await post.clock.advance(0)
    with pytest.raises(SendDropped):
        await post.send("太多")
    reminder = post.send("提醒", urgent=True)
    await post.clock.advance(0)
    assert not reminder.done()
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    post.platform.release()
    await post.clock.advance(5)
    assert post.sent == [("提醒", 0)]


async def test_a_queue_that_was_full_takes_letters_again(post: Post):
    post.limits = SendLimits(0, 10_000, 10_000)
    for number in range(QUEUE_LENGTH):
        post.send(str(number))
    await post.clock.advance(5)
    assert await post.send("又有空了")


async def test_failures_in_a_row_double_the_gap_and_a_success_ends_it(post: Post):
    post.platform.behave("send_group_msg", Fail(), times=3)
    outcomes = [post.send(str(number)) for number in range(5)]
    await post.clock.advance(60)
    assert [(call.at - NOON) / 1000 for call in post.platform.calls] == [0, 2, 6, 14, 15]
    for failed in outcomes[:3]:
        with pytest.raises(SendRejected):
            await failed


@pytest.mark.parametrize(
    ("behaviour", "error"),
    [
        (Fail(1200, "你已被禁言"), SendRejected),
        (Fail(1200, "发送超时"), SendTimedOut),
        (Silence(), SendTimedOut),
        (Disconnect(), AccountOffline),
    ],
)
async def test_what_the_platform_says_is_told_and_counts_as_an_attempt(
    post: Post, behaviour: Fail | Silence | Disconnect, error: type[SendError]
):
    post.platform.behave("send_group_msg", behaviour, times=1)
    with pytest.raises(error):
        await post.send("一")
    post.send("二")
    await post.clock.advance(1.9)
    assert post.sent == []
    await post.clock.advance(0.1)
    assert post.sent == [("二", 2)]


async def test_an_account_that_is_offline_sends_nothing_until_it_is_back(post: Post):
    post.accounts.went_offline(str(BOT))
    begun: list[str] = []

    async def begin() -> None:
        begun.append("begun")

    with pytest.raises(AccountOffline):
        await post.send("一", before=begin)
    assert (post.platform.calls, begun) == ([], [])
    post.accounts.came_online(str(BOT))
    await post.send("二")
    assert post.sent == [("二", 0)]


async def test_an_account_that_never_came_sends_nothing(post: Post):
    with pytest.raises(AccountOffline):
        await post.send("一", Chat("10009", "group", str(GROUP)))


async def test_accounts_do_not_wait_for_each_other(post: Post):
    other_world = World(post.world.account)
    other_world.befriend(post.world.friends[FISH])
    other = WorldPlatform(other_world, post.clock)
    post.accounts.connect("10009", other)
    post.send("一")
    post.send("二", Chat("10009", "private", str(FISH)))
    await post.clock.advance(0)
    assert [sent.at for sent in (*post.platform.sent, *other.sent)] == [NOON, NOON]


async def test_what_happens_before_a_send_happens_once_right_before_it(post: Post):
    moments: list[int] = []

    async def note() -> None:
        moments.append(post.clock.now() - NOON)
        assert len(post.platform.calls) == 1

    post.send("一")
    post.send("二", before=note)
    await post.clock.advance(10)
    assert moments == [1000]
    assert len(post.sent) == 2


async def test_what_is_raised_before_a_send_stops_it_and_costs_no_gap(post: Post):
    async def refuse() -> None:
        raise TurnWithdrawn

    with pytest.raises(TurnWithdrawn):
        await post.send("一", before=refuse)
    await post.send("二")
    assert post.sent == [("二", 0)]
    assert [call.action for call in post.platform.calls] == ["send_group_msg"]


async def test_a_letter_that_is_cancelled_while_it_waits_is_not_sent(post: Post):
    post.send("一")
    waiting = post.send("二")
    await post.clock.advance(0.5)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    post.send("三")
    await post.clock.advance(5)
    assert post.sent == [("一", 0), ("三", 1)]


async def test_a_slow_answer_makes_the_next_wait_for_it_and_for_the_gap(post: Post):
    post.platform.behave("send_group_msg", Delay(4), times=1)
    post.send("一")
    post.send("二")
    await post.clock.advance(10)
    assert post.sent == [("一", 0), ("二", 5)]


async def test_new_limits_hold_at_once(post: Post):
    post.send("一")
    await post.clock.advance(0)
    post.limits = SendLimits(7, 20, 40)
    post.send("二")
    await post.clock.advance(10)
    assert post.sent == [("一", 0), ("二", 7)]


async def test_only_what_the_outbox_is_sending_now_is_in_flight(post: Post):
    post.platform.hold()
    task = post.send("一")
    await post.clock.advance(0)
    content = post.platform.calls[0].params["message"]
    assert post.outbox.is_in_flight(content)
    assert not post.outbox.is_in_flight(list(content))
    post.platform.release()
    await task
    assert not post.outbox.is_in_flight(content)


@pytest.mark.parametrize(
    ("letter", "action", "target"),
    [
        (Letter(HERE), "send_group_msg", {"group_id": GROUP}),
        (Letter(Chat(str(BOT), "private", "30001")), "send_private_msg", {"user_id": 30_001}),
        (
            Letter(Chat(str(BOT), "private", "30001"), temporary_group="20001"),
            "send_private_msg",
            {"user_id": 30_001, "group_id": 20_001},
        ),
        (Letter(HERE, nodes=("一", "二")), "send_group_forward_msg", {"group_id": GROUP}),
        (Letter(Chat(str(BOT), "group", "g-7")), "send_group_msg", {"group_id": "g-7"}),
    ],
)
async def test_a_letter_becomes_the_call_for_its_chat(
    post: Post, letter: Letter, action: str, target: dict[str, object]
):
    await asyncio.gather(post.start(post.outbox.send(letter)), return_exceptions=True)
    (call,) = post.platform.calls
    assert call.action == action
    assert {k: v for k, v in call.params.items() if k.endswith("_id")} == target


async def test_a_merged_forward_is_nodes_of_the_bot_with_text_segments(post: Post):
    await post.outbox.send(Letter(HERE, nodes=("[CQ:at,qq=all]", "二")))
    (sent,) = post.platform.sent
    assert [(node.user_id, node.segments) for node in sent.nodes] == [
        (str(BOT), (text_segment("[CQ:at,qq=all]"),)),
        (str(BOT), (text_segment("二"),)),
    ]
    assert sent.executed_cq == ()
