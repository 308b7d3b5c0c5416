"""Ranking: which of the messages that were found answer a question."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.model import Chat, Message, Sender, StoredMessage
from bot.search.hybrid import BUNDLED, FOLLOW_MS, FOLLOWED, OPEN, Likeness, Query, ranked

GROUP = Chat("10001", "group", "20001")
NOON = 1_790_000_000_000
NOW = NOON + 86_400_000


def said(row: int, text: str, by: str = "30001", *, at: int | None = None, **fields: object):
    """Return a message; they follow one another by seconds."""
    moment = NOON + row * 1_000 if at is None else at
    message = Message(
        chat=GROUP,
        platform_id=str(row),
        sender=Sender(by, nickname=f"名{by}"),
        direction="inbound",
        sent_at=moment,
        received_at=moment,
        local_date="2026-09-21",
        segments=(),
        text=text,
    )
    return StoredMessage(row, replace(message, **fields))  # pyright: ignore[reportArgumentType]


def alike(
    dense: Mapping[int, float] | None = None,
    lexical: Mapping[int, float] | None = None,
    usual: float = 0.1,
) -> Likeness:
    return Likeness(dense or {}, usual, lexical or {})


def order(
    stretches: Sequence[Sequence[StoredMessage]],
    likeness: Likeness,
    *,
    question: str = "谁在湖边",
    words: tuple[str, ...] = ("湖边",),
    asker: str = "",
    **weights: float,
) -> list[int]:
    """Return rows as they are ranked."""
    given_weights = replace(BUNDLED, **weights)
    found = ranked(Query(question, words, asker), stretches, likeness, given_weights, NOW)
    return [one.stored.row_id for one in found]


def apart(*messages: StoredMessage) -> list[list[StoredMessage]]:
    return [[message] for message in messages]


def test_words_and_vectors_both_count():
    likeness = alike({1: 0.9, 2: 0.9, 3: 0.2}, {2: 5.0, 3: 5.0})
    messages = apart(said(1, "甲"), said(2, "湖边乙"), said(3, "湖边丙"))
    assert order(messages, likeness)[0] == 2


def test_more_weight_on_vectors_prefers_what_is_like():
    likeness = alike({1: 0.9, 2: 0.3}, {2: 5.0})
    messages = apart(said(1, "甲"), said(2, "湖边乙"))
    assert order(messages, likeness, dense=0.8)[0] == 1
    assert order(messages, likeness, dense=0.2)[0] == 2


def test_a_message_takes_from_the_question_that_it_answers():
    stretch = [said(1, "湖边几点集合"), said(2, "七点半"), said(3, "好")]
    elsewhere = [said(9, "周末愉快", at=NOON + 10**9)]
    likeness = alike({1: 0.8, 9: 0.3}, {1: 5.0})
    assert order([stretch, elsewhere], likeness)[:2] == [1, 2]


def test_nothing_is_taken_over_a_long_silence():
    stretch = [said(1, "湖边几点集合"), said(2, "早", at=NOON + 1_000 + FOLLOW_MS + 1)]
    assert order([stretch], alike({1: 0.8}, {1: 5.0})) == [1]


def test_nothing_is_taken_of_what_stands_in_another_stretch():
    likeness = alike({1: 0.8}, {1: 5.0})
    assert order(apart(said(1, "湖边几点集合"), said(2, "七点半")), likeness) == [1]


def test_what_asks_stands_behind_what_tells():
    likeness = alike({1: 0.8, 2: 0.8}, {1: 5.0, 2: 5.0})
    messages = apart(said(2, "湖边见？"), said(1, "湖边见"))
    assert order(messages, likeness)[0] == 1


def test_a_number_is_preferred_where_one_is_asked_for():
    likeness = alike({1: 0.8, 2: 0.8}, {1: 5.0, 2: 5.0})
    messages = apart(said(2, "湖边很远"), said(1, "湖边 8 公里"))
    assert order(messages, likeness, question="湖边多远")[0] == 1
    assert order(messages, likeness, question="谁去湖边")[0] == 2


def test_whom_the_question_names_is_preferred():
    likeness = alike({1: 0.8, 2: 0.8}, {1: 5.0, 2: 5.0})
    messages = apart(said(2, "湖边见", "30002"), said(1, "湖边见", "30001"))
    assert order(messages, likeness, question="名30001 去湖边吗")[0] == 1


def test_how_things_stand_is_told_by_the_newer_and_how_they_began_by_the_older():
    old = said(1, "湖边集合", at=NOW - 400 * 86_400_000)
    new = said(2, "湖边集合", at=NOW - 1_000)
    likeness = alike({1: 0.8, 2: 0.8}, {1: 5.0, 2: 5.0})
    assert order(apart(old, new), likeness, question="现在在哪集合")[0] == 2
    assert order(apart(old, new), likeness, question="最早在哪集合")[0] == 1


# --- oneself ----------------------------------------------------------------------------------


def crowd(count: int = 50) -> list[StoredMessage]:
    """Return what each of a group says of themself."""
    return [said(n, f"我喜欢喝茶{n}", str(30_000 + n)) for n in range(1, count + 1)]


def test_in_a_group_of_fifty_who_asks_about_themself_finds_their_own_words():
    people = crowd()
    # That of somebody else is a little more like the question.
    likeness = alike(
        {one.row_id: 0.6 + 0.001 * one.row_id for one in people},
        {one.row_id: 5.0 for one in people},
    )
    for asker in (1, 17, 50):
        found = order(
            apart(*people),
            likeness,
            question="我喜欢喝什么",
            words=("喜欢", "喝"),
            asker=str(30_000 + asker),
        )
        assert found[0] == asker


def test_a_question_about_somebody_else_is_not_bent_to_the_asker():
    people = crowd()
    likeness = alike({one.row_id: 0.6 for one in people}, {17: 9.0, 3: 5.0})
    for asker in ("30003", "30050", ""):
        found = order(
            apart(*people),
            likeness,
            question="名30017 喜欢喝什么",
            words=("喜欢", "喝"),
            asker=asker,
        )
        assert found[0] == 17


def test_an_answer_to_the_asker_stands_before_an_answer_to_others():
    asked = [said(1, "我的盒子是什么颜色", "30001"), said(2, "红的", "30009", reply_to="1")]
    other = [said(5, "我的盒子是什么颜色", "30002"), said(6, "红的", "30009", reply_to="5")]
    likeness = alike({2: 0.7, 6: 0.7, 1: 0.5, 5: 0.5})
    found = order([asked, other], likeness, question="我的盒子是什么颜色", asker="30001")
    assert found.index(2) < found.index(6)


def test_what_the_account_says_right_behind_the_asker_is_an_answer_to_them():
    asked = [said(1, "我几点走", "30001"), said(2, "九点", "10001", direction="outbound")]
    other = [said(5, "我几点走", "30002"), said(6, "九点", "10001", direction="outbound")]
    likeness = alike({2: 0.7, 6: 0.7, 1: 0.3, 5: 0.3})
    found = order([asked, other], likeness, question="我几点走来着", asker="30001")
    assert found.index(2) < found.index(6)


# --- the floor --------------------------------------------------------------------------------


def test_a_question_on_which_nothing_bears_finds_nothing():
    likeness = alike({1: 0.15, 2: 0.12})
    messages = apart(said(1, "早"), said(2, "晚安"))
    assert order(messages, likeness, words=("钢琴",)) == []


def test_a_word_alone_lifts_a_question_over_the_floor():
    likeness = alike({1: 0.15, 2: 0.1}, {1: 4.0})
    messages = apart(said(1, "回放工具做好了"), said(2, "晚安"))
    assert order(messages, likeness, words=("回放", "工具")) == [1]


def test_words_may_stand_in_what_a_message_answers():
    stretch = [said(1, "回放做好了吗"), said(2, "工具已经有了")]
    likeness = alike({1: 0.15, 2: 0.12}, {1: 2.0, 2: 2.0})
    assert set(order([stretch], likeness, words=("回放", "工具"))) == {1, 2}


def test_likeness_alone_lifts_a_question_over_the_floor():
    assert order(apart(said(1, "髌骨软化")), alike({1: 0.6}), words=("膝盖",)) == [1]


def test_words_alone_have_a_floor_of_their_own():
    messages = apart(said(1, "好的好的"))
    assert order(messages, alike(lexical={1: 1.0}), words=("钢琴考级证书", "好")) == []
    assert order(messages, alike(lexical={1: 1.0}), words=("好的",)) == [1]


def test_what_is_far_behind_the_best_is_left_out():
    messages = apart(said(1, "湖边"), said(2, "早"))
    assert order(messages, alike({1: 0.9, 2: 0.11}, {1: 5.0})) == [1]


def test_nothing_found_is_no_error():
    assert order([], alike()) == []
    assert order(apart(said(1, "早")), alike()) == []


# --- whatever comes ---------------------------------------------------------------------------

scores = st.dictionaries(st.integers(1, 12), st.floats(-1, 1), max_size=12)


@given(scores, st.dictionaries(st.integers(1, 12), st.floats(0.01, 50), max_size=12), st.text())
def test_every_message_is_ranked_once_at_most_and_the_best_comes_first(
    dense: dict[int, float], lexical: dict[int, float], question: str
):
    stretch = [said(n, f"话{n}？" if n % 3 else f"{n} 天") for n in range(1, 13)]
    # Stretches overlap, as they do where much is found in one place.
    stretches = [stretch[:8], stretch[4:]]
    for weights in (BUNDLED, OPEN):
        found = ranked(
            Query(question, (question,), "30001"), stretches, alike(dense, lexical), weights, NOW
        )
        rows = [one.stored.row_id for one in found]
        assert len(rows) == len(set(rows))
        assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
        assert all(one.score > 0 for one in found)


@pytest.mark.parametrize("back", [1, FOLLOWED, FOLLOWED + 1])
def test_a_message_takes_of_so_many_before_it_and_no_more(back: int):
    stretch = [said(1, "湖边集合"), *(said(1 + n, f"嗯{n}") for n in range(1, back + 1))]
    found = order([stretch], alike({1: 0.8}, {1: 5.0}))
    assert (1 + back in found) is (back <= FOLLOWED)
