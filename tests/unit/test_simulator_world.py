from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.model import Chat
from bot.simulate import Person, Unknown, World, positive_ids, reused_ids, segments, signed_ids

AT = 1_795_980_073_000


@pytest.fixture
def world() -> World:
    world = World(Person(3001, "小忆"))
    world.add_group(2001, "测试群", Person(1001, "Alice"), Person(1002, "Bob", role="owner"))
    world.befriend(Person(1003, "Carol"))
    return world


@given(st.integers(1, 2**40))
def test_positive_ids_fit_31_bits_and_do_not_repeat_soon(start: int):
    ids = list(islice(positive_ids(start), 200))
    assert all(0 <= each < 2**31 for each in ids)
    assert len(set(ids)) == 200


def test_signed_ids_fit_32_bits_and_some_are_negative():
    ids = list(islice(signed_ids(), 200))
    assert all(-(2**31) <= each < 2**31 for each in ids)
    assert len(set(ids)) == 200
    assert min(ids) < 0 < max(ids)


def test_reused_ids_come_again():
    assert list(islice(reused_ids(3), 5)) == [1, 2, 3, 1, 2]


def test_sequences_count_up_within_each_chat_and_are_written_as_strings(world: World):
    first = world.say(2001, 1001, "一", at=AT)
    elsewhere = world.whisper(1003, "二", at=AT)
    second = world.say(2001, 1002, "三", at=AT)
    assert (first.real_seq, elsewhere.real_seq, second.real_seq) == ("1", "1", "2")


def test_a_string_is_plain_text_and_never_a_code(world: World):
    spoken = world.say(2001, 1001, "[CQ:at,qq=all]", segments.face(1), at=AT)
    assert spoken.segments == (segments.text("[CQ:at,qq=all]"), segments.face(1))


def test_history_is_kept_per_chat_oldest_first(world: World):
    spoken = [world.say(2001, 1001, text, at=AT) for text in ("一", "二")]
    own = world.speak(world.group_chat(2001), "三", at=AT)
    world.whisper(1003, "别处", at=AT)
    assert world.history(Chat("3001", "group", "2001")) == (*spoken, own)


def test_only_the_last_messages_are_remembered():
    world = World(Person(3001), remembered_messages=3)
    world.add_group(2001, "测试群", Person(1001))
    spoken = [world.say(2001, 1001, str(number), at=AT) for number in range(5)]
    assert world.history(world.group_chat(2001)) == tuple(spoken[2:])
    with pytest.raises(Unknown):
        world.find(spoken[0].message_id)


def test_a_reused_id_means_the_newest_message():
    world = World(Person(3001), ids=reused_ids(2))
    world.add_group(2001, "测试群", Person(1001))
    old, _, new = (world.say(2001, 1001, text, at=AT) for text in "一二三")
    assert old.message_id == new.message_id
    assert world.find(old.message_id) == new
    world.recall(new.message_id)
    assert old in world.history(world.group_chat(2001))


def test_a_recalled_message_is_found_no_more(world: World):
    spoken = world.say(2001, 1001, "说错了", at=AT)
    assert world.recall(spoken.message_id).recalled
    assert world.history(world.group_chat(2001)) == ()
    with pytest.raises(Unknown):
        world.recall(spoken.message_id)


def test_a_new_nickname_is_known_everywhere_and_leaves_old_messages_alone(world: World):
    world.befriend(Person(1001, "Alice"))
    spoken = world.say(2001, 1001, "早", at=AT)
    world.rename(1001, "Alicia")
    assert world.member(2001, 1001).nickname == world.friends[1001].nickname == "Alicia"
    assert spoken.sender.nickname == "Alice"


def test_a_card_belongs_to_one_group(world: World):
    world.add_group(2002, "别的群", Person(1001, "Alice"))
    assert world.change_card(2001, 1001, "小A") == ""
    assert (world.member(2001, 1001).card, world.member(2002, 1001).card) == ("小A", "")


def test_who_left_may_not_speak(world: World):
    world.leave(2001, 1001)
    with pytest.raises(Unknown):
        world.say(2001, 1001, "还在吗", at=AT)


def test_who_joins_may_speak(world: World):
    world.join(2001, Person(1009, "Ian"))
    assert world.say(2001, 1009, "大家好", at=AT).sender.nickname == "Ian"


def test_a_group_is_gone_when_the_bot_account_leaves_it(world: World):
    world.leave(2001, 3001)
    with pytest.raises(Unknown):
        world.group(2001)


def test_muting_the_whole_group_leaves_admins_their_voice(world: World):
    world.mute(2001, 0)
    assert not world.may_speak(2001)
    world.change_role(2001, 3001, "admin")
    assert world.may_speak(2001)
    world.mute(2001, 3001)
    assert not world.may_speak(2001)
    world.lift(2001, 3001)
    world.lift(2001, 0)
    assert world.may_speak(2001)


def test_a_stranger_talks_in_private_only_through_a_group(world: World):
    with pytest.raises(Unknown):
        world.whisper(1001, "在吗", at=AT)
    world.open_temporary_session(2001, 1001)
    assert world.whisper(1001, "在吗", at=AT).temporary_group == 2001
    assert world.whisper(1003, "在吗", at=AT).temporary_group is None


def test_someone_who_is_no_member_can_speak_when_given_as_a_person(world: World):
    anonymous = Person(80000000, "大力鬼王")
    assert world.say(2001, anonymous, "猜猜我是谁", at=AT).sender == anonymous
