"""What tools show and write: what the place and the sender of a turn may know, and nothing else."""

import json
from collections.abc import Mapping

import pytest

from bot.errors import ToolError
from bot.model import Sender
from bot.remind import send_due
from bot.tools.surroundings import Surroundings
from tests.verbs.stage import BEAR, CAT, FISH, Stage
from tests.verbs.test_leaks import (
    IN_PACKS,
    OF_A_PERSON,
    OPERATOR_ALONE,
    OPERATOR_IN_GROUP_1,
    PACKS_ACROSS,
    PEOPLE,
    PLACES,
    TURNS,
    Turn,
    answer,
    marks,
    marks_in,
    remember_everything,
)
from tests.verbs.tooling import spoken, stored, turn, use

ACROSS = [True, False]


async def begun(stage: Stage, one: Turn, text: str = "随便问问") -> Surroundings:
    """Return what the tools of somebody's turn somewhere may know."""
    return await turn(stage, text, PLACES[one.place], PEOPLE[one.speaker])


@pytest.mark.parametrize("one", TURNS, ids=str)
@pytest.mark.parametrize("is_across", ACROSS, ids=["across", "not-across"])
async def test_memory_is_searched_as_far_as_the_turn_may_read(
    stage: Stage, one: Turn, is_across: bool
):
    await remember_everything(stage)
    await stage.set(memoryMemberCrossGroup=is_across)
    asker = await begun(stage, one)
    found = [await use(asker, "memory_search", query=word) for word in OF_A_PERSON.split()]
    expected = marks(IN_PACKS[one])
    if is_across:
        expected |= marks(PACKS_ACROSS[one])
    assert marks_in("\n".join(found)) == expected


@pytest.mark.parametrize("one", TURNS, ids=str)
async def test_only_what_the_turn_may_read_is_offered_to_be_forgotten(stage: Stage, one: Turn):
    await remember_everything(stage)
    asker = await begun(stage, one)
    found = [await use(asker, "forget", query=word) for word in OF_A_PERSON.split()]
    found += [await use(asker, "forget", id=f"{number:04}") for number in range(1, 10)]
    shown = marks_in("\n".join(found))
    assert shown
    assert shown <= marks(IN_PACKS[one]) | marks(PACKS_ACROSS[one])


SAID: Mapping[tuple[str, str], str] = {
    (place, who): f"〈{place}·{who}〉湖边"
    for place, people in {
        "private of A": ["A"],
        "private of B": ["B"],
        "group 1": ["A", "B"],
        "group 2": ["A", "B"],
        "private of the operator": ["the operator"],
    }.items()
    for who in people
}

EVERYWHERE = (*TURNS, OPERATOR_IN_GROUP_1, OPERATOR_ALONE)


@pytest.mark.parametrize("one", EVERYWHERE, ids=str)
async def test_the_history_of_a_chat_is_that_of_no_other_whoever_asks(stage: Stage, one: Turn):
    messages = [
        spoken(stage, text, PLACES[place], PEOPLE[who]) for (place, who), text in SAID.items()
    ]
    rows = await stored(stage, *messages)
    asker = await begun(stage, one)
    asked = [
        {},
        {"mode": "read"},
        {"mode": "search", "query": "湖边"},
        {"mode": "search", "query": "湖边", "match": "keyword"},
        *({"mode": "read", "id": row} for row in rows),
        *({"sender": str(who)} for who in PEOPLE.values()),
    ]
    found = [await use(asker, "chat_history", **arguments) for arguments in asked]
    expected = {f"〈{place}·{who}〉" for place, who in SAID if place == one.place}
    assert marks_in("\n".join(found)) == expected


@pytest.mark.parametrize("one", TURNS, ids=str)
async def test_a_note_goes_to_the_senders_memory_of_that_chat(stage: Stage, one: Turn):
    asker = await begun(stage, one, "我不吃香菜")
    await use(asker, "remember", text="不吃香菜")
    written = await stage.rows(
        "SELECT s.kind, s.key, c.kind, c.peer_id FROM entries AS e "
        "JOIN streams AS t ON t.id = e.stream_id JOIN scopes AS s ON s.id = t.scope_id "
        "JOIN chats AS c ON c.id = t.chat_id"
    )
    chat = PLACES[one.place]
    assert written == [("member", str(PEOPLE[one.speaker]), chat.kind, chat.id)]


async def test_a_card_of_another_group_and_who_is_only_there_are_not_told(stage: Stage):
    here, there = PLACES["group 1"], PLACES["group 2"]
    await stored(
        stage,
        spoken(stage, "在", here, BEAR, sender=Sender(str(BEAR), "大熊", "这里的名片")),
        spoken(stage, "在", there, BEAR, sender=Sender(str(BEAR), "大熊", "别处的名片")),
        spoken(stage, "在", there, CAT, sender=Sender(str(CAT), "咪咪", "")),
    )
    asker = await begun(stage, Turn("group 1", "A"))
    found = await use(asker, "member_info", user_id=BEAR)
    assert "这里的名片" in found
    assert "别处的名片" not in found
    for arguments in ({"name": "别处"}, {"name": "咪咪"}, {"user_id": CAT}):
        assert await use(asker, "member_info", **arguments) == "本群没有这个成员。"


@pytest.mark.parametrize("one", TURNS, ids=str)
async def test_members_are_told_of_without_a_word_of_memory(stage: Stage, one: Turn):
    await remember_everything(stage)
    asker = await begun(stage, one)
    for who in (FISH, BEAR):
        try:
            found = await use(asker, "member_info", user_id=who)
        except ToolError as refused:
            found = str(refused)
        assert marks_in(found) == set()
        assert "note" not in json.dumps(found)


@pytest.mark.parametrize("one", TURNS, ids=str)
async def test_a_reminder_is_said_where_it_was_asked_for_and_listed_there_or_to_oneself(
    stage: Stage, one: Turn
):
    asker = await begun(stage, one)
    await use(asker, "remind", in_minutes=10, text="〈秘密〉")
    own = Turn(f"private of {one.speaker}", one.speaker)
    for other in (*TURNS, OPERATOR_IN_GROUP_1, OPERATOR_ALONE, own):
        shown = "〈秘密〉" in await answer(stage, other, "/提醒")
        assert shown == (other in (one, own)), other
    await stage.advance(600)
    sent = len(stage.sent)
    stage.spawn(send_due(stage.app))
    await stage.advance(10)
    assert [message.chat for message in stage.sent[sent:]] == [PLACES[one.place]]
