"""What is asked to be remembered, judged by the rules of a reflection."""

from dataclasses import replace
from typing import Any

import pytest

from bot.memory.notes import NOTE, Again, Wish, judged_wish
from bot.memory.verdict import Added
from bot.model import Batch, BatchMessage, Chat, Entry, Scope, Stream, StreamMemory

GROUP = Chat("10001", "group", "20001")
OF_GROUP = Stream(Scope("10001", "group", "20001"), GROUP)
OF_FISH = Stream(Scope("10001", "member", "30001"), GROUP)
FISH, BEAR = "30001", "30002"


def said(text: str, by: str = FISH, **fields: Any) -> Batch:
    """The messages of a turn: one, and everybody's names."""
    message = BatchMessage(1, 7, 0, "2026-08-22", "inbound", by, "小鱼", True, text, text)
    return Batch(
        task="group",
        chat=GROUP,
        messages=(replace(message, **fields),),
        after_id=0,
        last_id=0,
        memories=(),
        names={FISH: frozenset({"小鱼"}), BEAR: frozenset({"大熊"})},
    )


def about(user_id: str | None, text: str) -> Wish:
    document, tier = NOTE
    return Wish(text, user_id, document, tier)


def test_a_note_rests_on_the_messages_and_is_a_working_one():
    found = judged_wish(about(FISH, "明天考试"), said("我明天考试"), StreamMemory(OF_FISH))
    assert isinstance(found, Added)
    assert (found.document, found.tier, found.proofs) == ("note", "working", ((7,),))
    assert found.text == "明天(2026-08-23)考试"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"is_person": False}, "evidence-missing"),
        ({"is_anonymous": True}, "evidence-missing"),
        ({"direction": "outbound"}, "evidence-missing"),
        ({"statement": ""}, "evidence-missing"),
        ({"sender_id": BEAR}, "evidence-missing"),
    ],
)
def test_only_the_persons_own_words_prove_a_note_of_theirs(fields: dict[str, Any], reason: str):
    batch = said("我明天考试", **fields)
    assert judged_wish(about(FISH, "要考试"), batch, StreamMemory(OF_FISH)) == reason


def test_without_messages_there_is_no_note():
    batch = replace(said("x"), messages=())
    assert judged_wish(about(None, "x"), batch, StreamMemory(OF_GROUP)) == "refs-missing"


def test_a_note_of_the_group_may_be_told_as_a_saying():
    found = judged_wish(about(None, "小鱼(30001) 说：春游"), said("春游"), StreamMemory(OF_GROUP))
    assert isinstance(found, Added)
    assert found.text == "30001 说：春游"
    other = judged_wish(about(None, "大熊要请客"), said("春游"), StreamMemory(OF_GROUP))
    assert other == "names-member"


def test_nothing_is_noted_of_who_opted_out():
    out = frozenset({FISH})
    memory = StreamMemory(OF_FISH)
    assert judged_wish(about(FISH, "要考试"), said("考试"), memory, opted_out=out) == "opted-out"
    of_group = about(None, "小鱼要考试")
    found = judged_wish(of_group, said("考试", BEAR), StreamMemory(OF_GROUP), opted_out=out)
    assert found == "opted-out"


def test_the_profile_goes_before_a_note_when_both_say_it():
    note = Entry(1, OF_FISH, "note", "爱爬山", ((1,),), tier="working")
    profile = replace(note, number=2, document="profile", tier="profile")
    memory = StreamMemory(OF_FISH, (note, profile))
    assert judged_wish(about(FISH, "爱爬山。"), said("爱爬山"), memory) == Again(
        profile, (7,), rises=False
    )


def test_a_note_rises_when_it_is_asked_to_be_kept():
    note = Entry(1, OF_FISH, "note", "爱爬山", ((1,),), tier="working")
    wish = Wish("爱爬山", FISH, "profile", "profile", "note")
    found = judged_wish(wish, said("爱爬山"), StreamMemory(OF_FISH, (note,)))
    assert found == Again(note, (7,), rises=True)
