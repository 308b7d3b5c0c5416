"""Who has the floor: one turn at a time in each chat, and nobody who asked is forgotten."""

from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from bot.conversation.floor import (
    COOLDOWN_MS,
    DEBOUNCES,
    LONGEST_WAIT_MS,
    QUESTION_MESSAGES,
    REMEMBERED_CHATS,
    WAITING_SENDERS,
    Floor,
    Pace,
    Question,
    Rest,
)
from bot.model import Chat, Message, Scope, Segment, Sender, Shown, StoredMessage

NOW = 1_800_000_000_000
PACE = Pace(debounce_ms=1200, gap_ms=3000)
HERE = Chat("10001", "group", "20001")
THERE = Chat("10001", "group", "20002")
FISH, BEAR, CAT = "30001", "30002", "30003"


def stored(row_id: int, sender_id: str = FISH, chat: Chat = HERE) -> StoredMessage:
    """A message whose platform id is its row id."""
    message = Message(
        chat=chat,
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


def rows(question: Question | Rest | None) -> tuple[int, ...]:
    """The rows that a question asks about."""
    assert isinstance(question, Question)
    return tuple(stored.row_id for stored in question.messages)


class Table:
    """A floor, and a clock that the test sets."""

    def __init__(self) -> None:
        self.floor = Floor()
        self.now = NOW
        self.cancelled = 0

    def offer(
        self, row_id: int, sender_id: str = FISH, *, chat: Chat = HERE, addressed: bool = True
    ) -> bool:
        return self.floor.offer(stored(row_id, sender_id, chat), addressed=addressed, now=self.now)

    def step(self, chat: Chat = HERE) -> Question | Rest | None:
        return self.floor.next_step(chat, PACE, self.now)

    def begin(self, chat: Chat = HERE) -> Question:
        """Wait until there is a question, and begin to answer it."""
        step = self.step(chat)
        while isinstance(step, Rest):
            self.now = step.until
            step = self.step(chat)
        assert step is not None
        self.floor.started(step, self.cancel)
        return step

    def cancel(self) -> None:
        self.cancelled += 1

    def end(self, question: Question, *, spoke: bool = True) -> None:
        self.floor.ended(question, now=self.now, spoke=spoke)


@pytest.fixture
def table() -> Table:
    return Table()


def test_only_the_first_who_comes_has_to_run_the_chat(table: Table):
    assert [table.offer(1), table.offer(2), table.offer(3, BEAR)] == [True, False, False]
    assert table.offer(4, chat=THERE)


def test_who_leaves_an_empty_floor_lets_the_next_one_run_it(table: Table):
    table.offer(1)
    table.end(table.begin())
    assert table.step() is None
    assert table.offer(2)


def test_a_runner_that_broke_down_is_replaced_and_nobody_who_waits_is_lost(table: Table):
    table.offer(1)
    table.begin()
    table.offer(2, BEAR)
    table.floor.left(HERE)
    assert table.offer(3, CAT)
    assert rows(table.begin()) == (2,)


def test_a_question_waits_for_the_debounce_after_its_last_message(table: Table):
    table.offer(1)
    assert table.step() == Rest(NOW + 1200)
    table.now += 1000
    table.offer(2)
    assert table.step() == Rest(NOW + 2200)
    table.now = NOW + 2200
    assert rows(table.step()) == (1, 2)


def test_who_never_pauses_is_answered_after_some_debounces(table: Table):
    for number in range(10):
        table.offer(number)
        table.now += 600
    assert table.now > NOW + DEBOUNCES * 1200
    assert len(rows(table.step())) == 10


def test_other_senders_wait_for_turns_of_their_own_in_order(table: Table):
    for row_id, sender_id in ((1, FISH), (2, BEAR), (3, FISH), (4, CAT), (5, BEAR)):
        table.offer(row_id, sender_id)
    turns = []
    for _ in range(3):
        question = table.begin()
        turns.append(rows(question))
        table.end(question)
    assert turns == [(1, 3), (2, 5), (4,)]


def test_the_gap_counts_from_the_end_of_a_turn_that_spoke(table: Table):
    table.offer(1)
    question = table.begin()
    table.offer(2, BEAR)
    table.now += 5000
    table.end(question)
    assert table.step() == Rest(table.now + 3000)


def test_after_a_turn_that_said_nothing_there_is_no_gap(table: Table):
    table.offer(1)
    question = table.begin()
    table.offer(2, BEAR)
    table.now += 5000
    table.end(question, spoke=False)
    assert rows(table.step()) == (2,)


def test_a_message_that_waits_or_is_answered_already_is_not_taken_twice(table: Table):
    table.offer(1)
    table.offer(1)
    question = table.begin()
    assert rows(question) == (1,)
    table.offer(1)
    table.end(question)
    assert table.step() is None


def test_who_waited_too_long_is_not_answered_any_more(table: Table):
    table.offer(1)
    question = table.begin()
    table.offer(2, BEAR)
    table.now += LONGEST_WAIT_MS + 1
    table.end(question)
    assert table.step() is None


def test_too_many_people_do_not_wait_at_once(table: Table):
    for number in range(WAITING_SENDERS + 5):
        table.offer(number, str(number))
    table.now += 2000
    answered = 0
    while isinstance(step := table.step(), Question):
        table.floor.started(step, table.cancel)
        table.end(step, spoke=False)
        answered += 1
    assert answered == WAITING_SENDERS


def test_a_question_keeps_only_the_newest_of_many_messages(table: Table):
    for number in range(QUESTION_MESSAGES + 5):
        table.offer(number)
    assert rows(table.begin()) == tuple(range(5, QUESTION_MESSAGES + 5))


def test_with_many_chats_those_that_are_spent_are_let_go():
    floor = Floor()
    for number in range(3 * REMEMBERED_CHATS):
        chat = Chat("10001", "private", str(number))
        now = NOW + number * 1000
        floor.offer(stored(number, chat=chat), addressed=False, now=now)
        floor.left(chat)
    assert len(floor._chats) <= REMEMBERED_CHATS + 1


# What nobody addressed to the bot


def test_only_the_newest_message_is_considered_and_a_mention_goes_first(table: Table):
    table.offer(1, addressed=False)
    table.offer(2, BEAR, addressed=False)
    assert rows(table.begin()) == (2,)
    table = Table()
    table.offer(1, addressed=False)
    table.offer(2, BEAR)
    question = table.begin()
    assert (rows(question), question.addressed) == ((2,), True)
    table.end(question)
    assert table.step() is None


def test_after_a_turn_that_nobody_asked_for_nothing_is_considered_for_a_while(table: Table):
    table.offer(1, addressed=False)
    table.end(table.begin(), spoke=False)
    table.now += COOLDOWN_MS - 1
    table.offer(2, addressed=False)
    assert table.step() is None
    table.now += 1
    table.offer(3, addressed=False)
    assert rows(table.begin()) == (3,)


def test_a_turn_that_was_asked_for_brings_no_cooldown(table: Table):
    table.offer(1)
    table.end(table.begin())
    table.offer(2, addressed=False)
    assert rows(table.begin()) == (2,)


# Recalls


def test_a_recall_takes_a_waiting_message_out(table: Table):
    table.offer(1)
    table.offer(2)
    table.offer(3, BEAR)
    table.floor.withdraw(HERE, "1")
    table.floor.withdraw(HERE, "3")
    question = table.begin()
    assert rows(question) == (2,)
    table.end(question)
    assert table.step() is None
    assert table.cancelled == 0


def test_a_recall_takes_a_considered_message_out(table: Table):
    table.offer(1, addressed=False)
    table.floor.withdraw(HERE, "1")
    assert table.step() is None


def test_a_recall_stops_the_turn_and_it_may_not_commit_any_more(table: Table):
    table.offer(1)
    question = table.begin()
    table.floor.withdraw(HERE, "1")
    assert table.cancelled == 1
    assert table.floor.is_withdrawn(question)
    assert not table.floor.committed(question)
    table.end(question, spoke=False)
    assert table.step() is None


def test_what_is_left_of_a_stopped_question_goes_first_again_with_what_came_since(table: Table):
    table.offer(1)
    table.offer(2)
    question = table.begin()
    table.offer(3, BEAR)
    table.offer(4)
    table.floor.withdraw(HERE, "1")
    table.end(question, spoke=False)
    assert rows(table.begin()) == (2, 4)


def test_an_answer_that_goes_out_already_is_let_go(table: Table):
    table.offer(1)
    question = table.begin()
    assert table.floor.committed(question)
    table.floor.withdraw(HERE, "1")
    assert (table.cancelled, table.floor.is_withdrawn(question)) == (0, False)


def test_a_recall_elsewhere_or_of_something_else_stops_nothing(table: Table):
    table.offer(1)
    question = table.begin()
    table.floor.withdraw(THERE, "1")
    table.floor.withdraw(HERE, "2")
    assert table.cancelled == 0
    assert table.floor.committed(question)


def test_a_turn_that_shows_what_was_taken_back_begins_again(table: Table):
    table.offer(5)
    question = table.begin()
    table.floor.shows(question, [3, 4, 5])
    table.floor.renew(HERE, 2)
    assert table.cancelled == 0
    table.floor.renew(HERE, 3)
    assert table.cancelled == 1
    table.end(question, spoke=False)
    assert rows(table.begin()) == (5,)


def test_a_turn_that_shows_an_answer_which_lost_its_text_begins_again(table: Table):
    table.offer(5)
    question = table.begin()
    table.floor.shows(question, [3, 5])
    table.floor.renew_shown(Shown(rows=frozenset({2})))
    assert table.cancelled == 0
    table.floor.renew_shown(Shown(rows=frozenset({2, 3})))
    assert table.cancelled == 1


def test_a_turn_begins_again_when_memory_that_its_chat_showed_is_gone(table: Table):
    table.floor.renew_memory(HERE)
    table.offer(5)
    question = table.begin()
    table.floor.shows(question, [5])
    table.floor.renew_memory(HERE)
    assert table.cancelled == 1
    table.floor.renew_memory(HERE)
    assert table.cancelled == 1
    table.end(question, spoke=False)
    again = table.begin()
    assert rows(again) == (5,)
    assert table.floor.committed(again)
    table.floor.renew_memory(HERE)
    assert not table.floor.is_withdrawn(again)


def test_a_turn_begins_again_when_memory_that_it_reads_is_gone_wherever_it_is(table: Table):
    table.offer(5)
    question = table.begin()
    others = (
        Scope(HERE.bot_id, "member", "39999"),
        Scope("19999", "member", question.sender_id),
        Scope(HERE.bot_id, "group", question.sender_id),
        Scope(HERE.bot_id, "member", HERE.id),
        Scope(HERE.bot_id, "group", "29999"),
    )
    table.floor.renew_shown(Shown(frozenset(), frozenset(others)))
    assert table.cancelled == 0
    for times, scope in enumerate(
        (Scope(HERE.bot_id, "member", question.sender_id), Scope(HERE.bot_id, "group", HERE.id)), 1
    ):
        table.floor.renew_shown(Shown(scopes=frozenset({scope})))
        assert table.cancelled == times
        table.end(question, spoke=False)
        question = table.begin()
        assert rows(question) == (5,)


def test_a_turn_that_still_reads_begins_again_whatever_was_taken_back(table: Table):
    table.offer(5)
    table.begin()
    table.floor.renew(HERE, 2)
    assert table.cancelled == 1


def test_a_turn_that_nobody_asked_for_does_not_begin_again(table: Table):
    table.offer(5, addressed=False)
    question = table.begin()
    table.floor.renew(HERE, 2)
    table.end(question, spoke=False)
    assert table.step() is None


def test_silence_stops_the_turn_and_lets_nobody_wait(table: Table):
    table.offer(1)
    question = table.begin()
    table.offer(2, BEAR)
    table.floor.silence(HERE)
    assert table.cancelled == 1
    assert not table.floor.committed(question)
    table.end(question, spoke=False)
    assert table.step() is None


def test_the_turns_of_the_last_minute_are_remembered_and_no_older_ones():
    floor = Floor()
    for second in range(200):
        floor.begun(NOW + second * 1000)
        assert len(floor.begun_lately(NOW + second * 1000)) <= 60
    assert floor.begun_lately(NOW + 199_000)[0] == NOW + 140_000
    assert floor.begun_lately(NOW) == ()


@dataclass
class Expectation:
    """What the machine below knows of one chat."""

    has_runner: bool = False
    running: Question | None = None
    committed: bool = False
    stopped: bool = False
    shown: set[int] | None = None
    free_at: int = 0
    spoken: list[int] = field(default_factory=list)
    """Every message of the chat."""
    recalled: set[int] = field(default_factory=set)
    waiting: dict[int, tuple[str, int]] = field(default_factory=dict)
    """Addressed messages that nobody answered: row to sender and arrival."""

    def rows_of(self, sender_id: str) -> set[int]:
        return {row for row, (sender, _) in self.waiting.items() if sender == sender_id}

    def fresh(self, now: int) -> set[int]:
        """The rows that did not wait for too long; they may not be lost."""
        return {row for row, (_, at) in self.waiting.items() if now - at <= LONGEST_WAIT_MS}


class FloorMachine(RuleBasedStateMachine):
    """Whatever happens in whatever order, turns do not overlap and nobody is forgotten."""

    CHATS = (HERE, THERE)

    @initialize()
    def begin(self) -> None:
        self.floor = Floor()
        self.now = NOW
        self.next_row = 1
        self.chats = {chat: Expectation() for chat in self.CHATS}
        self.cancelled: list[Chat] = []

    @rule(
        chat=st.sampled_from(CHATS),
        sender_id=st.sampled_from([FISH, BEAR, CAT]),
        addressed=st.booleans(),
    )
    def somebody_speaks(self, chat: Chat, sender_id: str, addressed: bool) -> None:
        row_id, self.next_row = self.next_row, self.next_row + 1
        expected = self.chats[chat]
        must_run = self.floor.offer(
            stored(row_id, sender_id, chat), addressed=addressed, now=self.now
        )
        assert must_run is not expected.has_runner
        expected.has_runner = True
        expected.spoken.append(row_id)
        if addressed:
            expected.waiting[row_id] = (sender_id, self.now)
            for row in sorted(expected.rows_of(sender_id))[:-QUESTION_MESSAGES]:
                del expected.waiting[row]

    @rule(seconds=st.sampled_from([0.1, 1.2, 3.0, 10.0, 61.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += round(seconds * 1000)

    @rule(chat=st.sampled_from(CHATS))
    def the_runner_looks(self, chat: Chat) -> None:
        expected = self.chats[chat]
        if not expected.has_runner or expected.running is not None:
            return
        step = self.floor.next_step(chat, PACE, self.now)
        match step:
            case None:
                assert not expected.fresh(self.now)
                expected.waiting.clear()
                expected.has_runner = False
            case Rest(until):
                assert self.now < until <= self.now + PACE.gap_ms + DEBOUNCES * PACE.debounce_ms
            case Question():
                self._check(chat, expected, step)
                self.floor.started(step, lambda: self.cancelled.append(chat))
                expected.running, expected.shown = step, None
                expected.committed = expected.stopped = False

    def _check(self, chat: Chat, expected: Expectation, question: Question) -> None:
        asked = set(rows(question))
        assert question.chat == chat
        assert {s.message.sender.user_id for s in question.messages} == {question.sender_id}
        assert not asked & expected.recalled
        assert self.now >= expected.free_at + PACE.gap_ms
        quiet = question.last_at + PACE.debounce_ms
        assert self.now >= min(quiet, question.first_at + DEBOUNCES * PACE.debounce_ms)
        if not question.addressed:
            assert not expected.fresh(self.now)
            return
        mine = expected.rows_of(question.sender_id)
        assert mine & expected.fresh(self.now) <= asked <= mine
        for row in mine - asked:
            del expected.waiting[row]

    @rule(chat=st.sampled_from(CHATS), shown=st.sets(st.integers(1, 30), max_size=5))
    def the_turn_has_read(self, chat: Chat, shown: set[int]) -> None:
        expected = self.chats[chat]
        if expected.running is not None and not expected.stopped:
            expected.shown = shown | set(rows(expected.running))
            self.floor.shows(expected.running, expected.shown)

    @rule(chat=st.sampled_from(CHATS))
    def the_answer_goes_out(self, chat: Chat) -> None:
        expected = self.chats[chat]
        if expected.running is not None:
            assert self.floor.committed(expected.running) is not expected.stopped
            expected.committed = not expected.stopped

    @rule(chat=st.sampled_from(CHATS))
    def the_turn_ends(self, chat: Chat) -> None:
        expected = self.chats[chat]
        if expected.running is None:
            return
        assert self.floor.is_withdrawn(expected.running) is expected.stopped
        self.floor.ended(expected.running, now=self.now, spoke=expected.committed)
        if expected.committed:
            expected.free_at = self.now
        if not expected.stopped:
            for row in rows(expected.running):
                expected.waiting.pop(row, None)
        expected.running = None

    @rule(chat=st.sampled_from(CHATS), data=st.data())
    def somebody_takes_back(self, chat: Chat, data: st.DataObject) -> None:
        expected = self.chats[chat]
        if not expected.spoken:
            return
        row_id = data.draw(st.sampled_from(expected.spoken))
        self.floor.withdraw(chat, str(row_id))
        self.floor.renew(chat, row_id)
        expected.recalled.add(row_id)
        running = expected.running
        if running is not None and not expected.committed and not expected.stopped:
            is_asked = row_id in rows(running)
            is_shown = expected.shown is None or row_id in expected.shown
            expected.stopped = is_asked or is_shown
            assert (chat in self.cancelled) is expected.stopped
            self.cancelled.clear()
        if not (expected.committed and running and row_id in rows(running)):
            expected.waiting.pop(row_id, None)
        self.cancelled.clear()

    @rule(chat=st.sampled_from(CHATS))
    def the_bot_is_silenced(self, chat: Chat) -> None:
        expected = self.chats[chat]
        self.floor.silence(chat)
        expected.waiting.clear()
        if expected.running is not None and not expected.committed:
            expected.stopped = True
        self.cancelled.clear()

    @invariant()
    def little_is_remembered(self) -> None:
        for floor in self.floor._chats.values():
            assert len(floor.waiting) <= WAITING_SENDERS
            assert all(len(q.messages) <= QUESTION_MESSAGES for q in floor.waiting.values())

    def teardown(self) -> None:
        """Let every chat run to its end: whoever still waits has their turn."""
        for chat, expected in self.chats.items():
            self.the_turn_ends(chat)
            for _ in range(200):
                self.the_runner_looks(chat)
                self.the_turn_ends(chat)
                self.now += 1200
            assert not expected.has_runner
            assert not expected.waiting


TestFloorMachine = FloorMachine.TestCase
TestFloorMachine.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)


# A clock that is set back


@pytest.mark.parametrize("back_ms", [1, 5_000, 5 * 60_000, 365 * 24 * 3_600_000])
def test_a_clock_that_is_set_back_holds_nobody_up(table: Table, back_ms: int):
    table.offer(1)
    table.end(table.begin())
    table.offer(2)
    table.now -= back_ms
    for row_id in range(3, 12):
        asked_at = table.now
        table.offer(row_id)
        question = table.begin()
        assert row_id in rows(question)
        assert table.now - asked_at <= PACE.gap_ms + PACE.debounce_ms
        table.end(question)


def test_a_clock_that_is_set_back_lets_the_bot_consider_again_after_the_cooldown(table: Table):
    table.offer(1, addressed=False)
    table.end(table.begin())
    table.now -= 5 * 60_000
    table.offer(2, addressed=False)
    assert table.step() is None
    table.now += COOLDOWN_MS
    table.offer(3, addressed=False)
    assert rows(table.begin()) == (3,)


def test_a_clock_that_is_set_back_keeps_no_spent_chat_for_ever():
    table = Table()
    for number in range(REMEMBERED_CHATS):
        chat = Chat("10001", "group", str(number))
        table.offer(1, chat=chat)
        table.end(table.begin(chat))
        assert table.step(chat) is None
    table.now -= 365 * 24 * 3_600_000
    table.offer(1, chat=Chat("10001", "group", "one"))
    table.now += LONGEST_WAIT_MS + 1
    table.offer(1, chat=Chat("10001", "group", "another"))
    assert len(table.floor._chats) <= 2


def test_silence_tells_whether_there_was_anything_to_stop():
    floor = Floor()
    assert not floor.silence(HERE)
    floor.offer(stored(1), addressed=True, now=NOW)
    assert floor.silence(HERE)
    floor.offer(stored(2), addressed=False, now=NOW)
    assert floor.silence(HERE)
    assert not floor.silence(HERE)


def test_silence_stops_a_turn_that_thinks_and_none_that_speaks():
    floor = Floor()
    for row_id, speaks in ((1, False), (2, True)):
        now = NOW + 10_000 * row_id
        floor.offer(stored(row_id), addressed=True, now=now)
        question = floor.next_step(HERE, PACE, now + 5_000)
        assert isinstance(question, Question)
        floor.started(question, lambda: None)
        if speaks:
            floor.committed(question)
        assert floor.is_speaking(HERE) == speaks
        assert floor.silence(HERE) != speaks
        floor.ended(question, now=now + 5_000, spoke=speaks)
        assert not floor.is_speaking(HERE)
