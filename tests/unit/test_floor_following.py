"""A question may come in two messages: `@bot`, and then what one wants to know."""

from bot.conversation.floor import Floor, Pace, Question
from bot.model import Chat, Message, Segment, Sender, StoredMessage

NOW = 1_800_000_000_000
PACE = Pace(debounce_ms=1200, gap_ms=3000)
HERE = Chat("10001", "group", "20001")


def stored(row_id: int, sender_id: str) -> StoredMessage:
    message = Message(
        chat=HERE,
        platform_id=str(row_id),
        sender=Sender(sender_id),
        direction="inbound",
        sent_at=NOW,
        received_at=NOW,
        local_date="2027-01-15",
        segments=(Segment("text", {"text": "嗨"}),),
        text="嗨",
    )
    return StoredMessage(row_id, message)


def asked(floor: Floor, at: int) -> tuple[int, ...]:
    step = floor.next_step(HERE, PACE, at)
    assert isinstance(step, Question)
    return tuple(message.row_id for message in step.messages)


def test_what_a_sender_says_right_after_calling_the_bot_belongs_to_the_question():
    floor = Floor()
    floor.offer(stored(1, "30001"), addressed=True, now=NOW)
    assert floor.join(stored(2, "30001"), PACE, now=NOW + 1000)
    assert asked(floor, NOW + 10_000) == (1, 2)


def test_what_somebody_else_says_meanwhile_does_not():
    floor = Floor()
    floor.offer(stored(1, "30001"), addressed=True, now=NOW)
    assert not floor.join(stored(2, "30002"), PACE, now=NOW + 1000)
    assert asked(floor, NOW + 10_000) == (1,)


def test_what_comes_after_the_debounce_does_not():
    floor = Floor()
    floor.offer(stored(1, "30001"), addressed=True, now=NOW)
    assert not floor.join(stored(2, "30001"), PACE, now=NOW + 1201)


def test_nothing_is_joined_where_nobody_waits():
    assert not Floor().join(stored(1, "30001"), PACE, now=NOW)


def test_a_message_would_join_exactly_where_it_joins():
    floor = Floor()
    follower = stored(2, "30001")
    assert not floor.would_join(follower.message, PACE, now=NOW)
    floor.offer(stored(1, "30001"), addressed=True, now=NOW)
    for waited, joins in ((0, True), (PACE.debounce_ms, True), (PACE.debounce_ms + 1, False)):
        assert floor.would_join(follower.message, PACE, now=NOW + waited) is joins
    assert not floor.would_join(stored(3, "30002").message, PACE, now=NOW)
    assert floor.join(follower, PACE, now=NOW + PACE.debounce_ms)
