"""Whether a message is kept, whether it speaks to the bot, whether it is answered, and why."""

from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.conversation.policy import (
    FRESH_MS,
    GroupAccess,
    PrivateAccess,
    ReplyMode,
    Standing,
    is_addressed,
    is_admitted,
    is_kept_for_turn,
    should_reply,
)
from bot.model import EVERYONE, Chat, Message, Segment, Sender

NOW = 1_800_000_000_000
BOT, FISH, BEAR = "10001", "30001", "30002"
GROUP = Chat(BOT, "group", "20001")
PRIVATE = Chat(BOT, "private", FISH)
NAMES = ("小忆", "Qunyi")

FINE = Standing(
    is_new=True,
    recalled=False,
    from_bot=False,
    blocked=False,
    muted=False,
    removed=False,
    quotes_bot=False,
)


def message(*pieces: str | Segment, chat: Chat = GROUP, **fields: Any) -> Message:
    """A message of text pieces and segments; an @ is read as the reader does."""
    segments = tuple(p if isinstance(p, Segment) else text(p) for p in pieces)
    mentions = tuple(str(s.data["qq"]) for s in segments if s.type == "at")
    known: dict[str, Any] = {
        "chat": chat,
        "platform_id": "1",
        "sender": Sender(FISH),
        "direction": "inbound",
        "sent_at": NOW,
        "received_at": NOW,
        "local_date": "2027-01-15",
        "segments": segments,
        "text": "".join(str(s.data.get("text", "")) for s in segments),
        "mentions": mentions,
    }
    return Message(**{**known, **fields})


def text(words: str) -> Segment:
    return Segment("text", {"text": words})


def at(user_id: str) -> Segment:
    return Segment("at", {"qq": user_id})


QUOTE = Segment("reply", {"id": "700"})
IMAGE = Segment("image", {"file": "a.gif"})


# Access


@pytest.mark.parametrize("switch", ["", "enabled", "disabled"])
@pytest.mark.parametrize("group_access", get_args(GroupAccess))
@pytest.mark.parametrize("is_operator", [True, False])
def test_a_group_is_admitted_by_its_own_switch_or_the_general_rule(
    switch: str, group_access: GroupAccess, is_operator: bool
):
    admitted = is_admitted(
        message("嗨"),
        switch,
        group_access=group_access,
        private_access="none",
        is_operator=is_operator,
    )
    assert admitted is (switch == "enabled" or (switch == "" and group_access == "all"))


PRIVATE_TABLE = [
    # general rule, switch, friend, temporary session
    ("friends", "", True, False),
    ("friends", "enabled", True, True),
    ("friends", "disabled", False, False),
    ("none", "", False, False),
    ("none", "enabled", False, False),
    ("none", "disabled", False, False),
    ("list", "", False, False),
    ("list", "enabled", True, True),
    ("list", "disabled", False, False),
    ("all", "", True, True),
    ("all", "enabled", True, True),
    ("all", "disabled", False, False),
]


@pytest.mark.parametrize(("rule", "switch", "friend", "temporary"), PRIVATE_TABLE)
def test_a_private_chat_is_admitted_by_its_switch_or_the_general_rule(
    rule: PrivateAccess, switch: str, friend: bool, temporary: bool
):
    def admitted(spoken: Message) -> bool:
        return is_admitted(
            spoken, switch, group_access="all", private_access=rule, is_operator=False
        )

    assert admitted(message("嗨", chat=PRIVATE)) is friend
    assert admitted(message("嗨", chat=PRIVATE, temporary_group="20001")) is temporary
    assert admitted(message("嗨", chat=PRIVATE, temporary_group="")) is temporary


@pytest.mark.parametrize("rule", get_args(PrivateAccess))
@pytest.mark.parametrize("group_access", get_args(GroupAccess))
def test_an_operator_is_heard_in_private_unless_they_switched_it_off(
    rule: PrivateAccess, group_access: GroupAccess
):
    for switch, admitted in (("", True), ("enabled", True), ("disabled", False)):
        assert admitted is is_admitted(
            message("嗨", chat=PRIVATE),
            switch,
            group_access=group_access,
            private_access=rule,
            is_operator=True,
        )


# Addressing

ADDRESSED = {
    "an @ at the start": message(at(BOT), " 在吗"),
    "an @ in mid-sentence": message("我问", at(BOT), "一下"),
    "an @ at the end": message("在吗", at(BOT)),
    "an @ among others": message(at(BEAR), at(BOT), " 你们好"),
    "an @ together with everyone": message(at(EVERYONE), at(BOT)),
    "a nickname at the start": message("小忆，在吗"),
    "a nickname in another case": message("QUNYI 在吗"),
    "a nickname after spaces": message("  小忆在吗"),
    "a nickname after a quote": message(QUOTE, "小忆 在吗"),
    "a nickname and an @ of another": message("小忆", at(BEAR), " 是谁"),
    "anything in a private chat": message("在吗", chat=PRIVATE),
    "a picture in a private chat": message(IMAGE, chat=PRIVATE),
}

NOT_ADDRESSED = {
    "nothing of the kind": message("大家好"),
    "an @ of everyone": message(at(EVERYONE), " 开会"),
    "an @ of another": message(at(BEAR), " 在吗"),
    "a nickname in mid-sentence": message("我觉得小忆不错"),
    "a nickname after a picture": message(IMAGE, "小忆"),
    "an @ typed as text": message("@10001 在吗"),
    "a CQ code typed as text": message("[CQ:at,qq=10001]"),
    "a picture": message(IMAGE),
    "nothing at all": message(),
}


@pytest.mark.parametrize("case", ADDRESSED)
def test_these_speak_to_the_bot(case: str):
    assert is_addressed(ADDRESSED[case], False, NAMES)


@pytest.mark.parametrize("case", NOT_ADDRESSED)
def test_these_do_not_speak_to_the_bot(case: str):
    assert not is_addressed(NOT_ADDRESSED[case], False, NAMES)


def test_a_quote_of_the_bot_speaks_to_it_unless_only_others_are_mentioned():
    assert is_addressed(message(QUOTE, "真的吗"), True, NAMES)
    assert is_addressed(message(QUOTE, IMAGE), True, NAMES)
    assert is_addressed(message(QUOTE, at(BOT), at(BEAR), " 你们看"), True, NAMES)
    assert not is_addressed(message(QUOTE, at(BEAR), " 你看"), True, NAMES)
    assert not is_addressed(message(QUOTE, at(EVERYONE), " 看"), True, NAMES)


def test_a_quote_of_somebody_else_does_not_speak_to_the_bot():
    assert not is_addressed(message(QUOTE, "真的吗"), False, NAMES)


def test_an_empty_nickname_is_no_name():
    assert not is_addressed(message("大家好"), False, ("",))


# Answering


@pytest.mark.parametrize("mode", get_args(ReplyMode))
@pytest.mark.parametrize("addressed", [True, False])
def test_in_a_group_the_mode_decides(mode: ReplyMode, addressed: bool):
    spoken = message(at(BOT), " 在吗") if addressed else message("大家好")
    expected = {
        ("mention", True): "reply",
        ("mention", False): "ignore",
        ("auto", True): "reply",
        ("auto", False): "consider",
        ("silent", True): "ignore",
        ("silent", False): "ignore",
    }
    assert should_reply(spoken, FINE, mode, NAMES, NOW).answering == expected[mode, addressed]


@pytest.mark.parametrize("mode", get_args(ReplyMode))
def test_a_private_chat_is_answered_in_every_mode(mode: ReplyMode):
    assert should_reply(message("嗨", chat=PRIVATE), FINE, mode, NAMES, NOW).answering == "reply"


AGAINST = {
    "the bot's own": (message(at(BOT), direction="outbound"), FINE),
    "a command": (message(at(BOT), "/帮助", kind="command"), FINE),
    "a notice": (message(at(BOT), "好的", kind="notice"), FINE),
    "seen before": (message(at(BOT)), replace(FINE, is_new=False)),
    "recalled": (message(at(BOT)), replace(FINE, recalled=True)),
    "from a bot": (message(at(BOT)), replace(FINE, from_bot=True)),
    "from somebody blocked": (message(at(BOT)), replace(FINE, blocked=True)),
    "muted": (message(at(BOT)), replace(FINE, muted=True)),
    "no longer in the chat": (message(at(BOT)), replace(FINE, removed=True)),
    "too old": (message(at(BOT), sent_at=NOW - FRESH_MS - 1), FINE),
}


@pytest.mark.parametrize("case", AGAINST)
@pytest.mark.parametrize("mode", get_args(ReplyMode))
@pytest.mark.parametrize("chat", [GROUP, PRIVATE])
def test_one_thing_against_it_is_enough(case: str, mode: ReplyMode, chat: Chat):
    spoken, standing = AGAINST[case]
    verdict = should_reply(replace(spoken, chat=chat), standing, mode, NAMES, NOW)
    assert verdict.answering == "ignore"
    assert verdict.reason


def test_a_message_of_exactly_a_minute_ago_is_answered():
    spoken = message(at(BOT), sent_at=NOW - FRESH_MS)
    assert should_reply(spoken, FINE, "mention", NAMES, NOW).answering == "reply"


def test_a_clock_that_goes_slow_makes_nothing_too_old():
    spoken = message(at(BOT), sent_at=NOW + 3_600_000)
    assert should_reply(spoken, FINE, "mention", NAMES, NOW).answering == "reply"


@given(
    st.builds(Standing, *(st.booleans() for _ in range(7))),
    st.sampled_from(get_args(ReplyMode)),
    st.sampled_from([*ADDRESSED.values(), *NOT_ADDRESSED.values()]),
)
def test_a_reply_is_given_only_to_who_speaks_to_the_bot(
    standing: Standing, mode: ReplyMode, spoken: Message
):
    verdict = should_reply(spoken, standing, mode, NAMES, NOW)
    addressed = is_addressed(spoken, standing.quotes_bot, NAMES)
    if verdict.answering == "reply":
        assert addressed
        assert standing.is_new
        assert not any((standing.recalled, standing.from_bot, standing.blocked))
    if verdict.answering == "consider":
        assert not addressed
        assert mode == "auto"


# Who has opted out


def test_what_is_said_to_the_bot_is_kept_for_its_turn():
    assert is_kept_for_turn(message("小忆 在吗"), False, NAMES)
    assert is_kept_for_turn(message("在吗", chat=PRIVATE), False, NAMES)
    assert is_kept_for_turn(message("在吗"), True, NAMES)
    assert not is_kept_for_turn(message("在吗"), False, NAMES)


def test_neither_a_command_nor_what_is_too_old_to_be_answered_is_kept():
    assert not is_kept_for_turn(message("小忆", kind="command"), False, NAMES)
    assert not is_kept_for_turn(message("小忆", received_at=NOW + FRESH_MS + 1), False, NAMES)


def test_what_left_no_text_is_neither_answered_nor_considered():
    for mode in ("mention", "auto"):
        verdict = should_reply(message("小忆 在吗"), replace(FINE, is_blank=True), mode, NAMES, NOW)
        assert verdict.answering == "ignore"
        assert not verdict.may_follow
