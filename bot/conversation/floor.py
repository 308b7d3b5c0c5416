"""Who has the floor: one turn at a time per chat, quick messages of one sender as one turn.

A state machine without await: every method takes the time it needs as an argument, and the
caller that ``offer`` tells to run a chat asks ``next_step`` until it says ``None``. See
``docs/architecture.md``, "Replies".
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from bot.conversation.pacing import MINUTE_MS
from bot.model import Chat, Message, Scope, Shown, StoredMessage

WAITING_SENDERS = 20
"""More people than this do not wait for an answer in one chat at once."""

QUESTION_MESSAGES = 20
"""A turn answers at most this many messages; the older ones it shows as context."""

LONGEST_WAIT_MS = 60_000
"""Who has waited longer is not answered any more."""

DEBOUNCES = 4
"""A sender who never pauses is answered after this many times the debounce."""

REMEMBERED_CHATS = 1_000
"""With more chats than this, those in which nothing goes on are let go."""

COOLDOWN_MS = 30_000
"""After a turn that nobody asked for, the bot does not consider another for so long."""


@dataclass(frozen=True, slots=True)
class Pace:
    """The settings that say when a turn may start."""

    debounce_ms: int
    gap_ms: int


@dataclass(frozen=True, slots=True)
class Question:
    """Messages of one sender that one turn answers, in order of arrival."""

    chat: Chat
    sender_id: str
    messages: tuple[StoredMessage, ...]
    addressed: bool
    first_at: int
    """When the first of them arrived here, UTC milliseconds."""
    last_at: int

    def until(self, now: int) -> "Question":
        """Return the question with no moment of it after ``now``."""
        if max(self.first_at, self.last_at) <= now:
            return self
        return replace(self, first_at=min(self.first_at, now), last_at=min(self.last_at, now))


@dataclass(frozen=True, slots=True)
class Rest:
    """Nothing to do before ``until`` (UTC milliseconds)."""

    until: int


@dataclass(slots=True)
class _Running:
    question: Question
    cancel: Callable[[], object]
    shown: frozenset[int] | None = None
    """The rows that its prompt shows; ``None`` while they are still being read."""
    committed: bool = False
    withdrawn: bool = False

    def stop(self, left: tuple[StoredMessage, ...]) -> None:
        """Stop it; ``left`` is what remains to be answered."""
        self.question = replace(self.question, messages=left)
        self.withdrawn = True
        self.cancel()


@dataclass(slots=True)
class _ChatFloor:
    waiting: dict[str, Question] = field(default_factory=dict)
    considered: Question | None = None
    running: _Running | None = None
    has_runner: bool = False
    free_at: int = 0
    consider_from: int = 0

    def knows(self, row_id: int) -> bool:
        """Whether a message waits here already, or is being answered."""
        questions = [*self.waiting.values(), self.considered]
        questions.append(self.running.question if self.running else None)
        return any(s.row_id == row_id for q in questions if q for s in q.messages)

    def settle(self, now: int) -> None:
        """Let nothing that happened here lie after ``now``: the clock may have been set back."""
        self.free_at = min(self.free_at, now)
        self.consider_from = min(self.consider_from, now + COOLDOWN_MS)
        for sender_id, question in self.waiting.items():
            self.waiting[sender_id] = question.until(now)
        if self.considered is not None:
            self.considered = self.considered.until(now)

    def is_spent(self, now: int) -> bool:
        """Whether nothing here matters any more."""
        ended_at = max(self.free_at, self.consider_from)
        return not self.has_runner and now - ended_at > LONGEST_WAIT_MS


class Floor:
    """The floors of all chats of this process."""

    def __init__(self) -> None:
        self._chats: dict[Chat, _ChatFloor] = {}
        self._begun: deque[int] = deque()

    def offer(self, stored: StoredMessage, *, addressed: bool, now: int) -> bool:
        """Let a message wait for a turn.

        Returns:
            whether nobody runs this chat yet: the caller then has to.
        """
        chat = stored.message.chat
        if chat not in self._chats:
            self._prune(now)
        floor = self._chats.setdefault(chat, _ChatFloor())
        floor.settle(now)
        sender_id = stored.message.sender.user_id
        if floor.knows(stored.row_id):
            pass
        elif addressed:
            self._wait(floor, sender_id, stored, now)
        elif now >= floor.consider_from:
            floor.considered = Question(chat, sender_id, (stored,), False, now, now)
        is_free, floor.has_runner = not floor.has_runner, True
        return is_free

    def join(self, stored: StoredMessage, pace: Pace, *, now: int) -> bool:
        """Let a message that does not address the bot go with one of its sender that does.

        It does if that one still waits and came within the debounce: `@bot`, and then the
        question in a message of its own.
        """
        floor = self._chats.get(stored.message.chat)
        if floor is not None:
            floor.settle(now)
        if floor is None or not self.would_join(stored.message, pace, now=now):
            return False
        if not floor.knows(stored.row_id):
            self._wait(floor, stored.message.sender.user_id, stored, now)
        return True

    def would_join(self, message: Message, pace: Pace, *, now: int) -> bool:
        """Whether ``join`` would let a message go with one that waits."""
        floor = self._chats.get(message.chat)
        waiting = floor.waiting.get(message.sender.user_id) if floor else None
        return waiting is not None and now - waiting.last_at <= pace.debounce_ms

    def _prune(self, now: int) -> None:
        if len(self._chats) >= REMEMBERED_CHATS:
            for floor in self._chats.values():
                floor.settle(now)
            self._chats = {c: f for c, f in self._chats.items() if not f.is_spent(now)}

    def _wait(self, floor: _ChatFloor, sender_id: str, stored: StoredMessage, now: int) -> None:
        earlier = floor.waiting.get(sender_id)
        if earlier is not None:
            messages = (*earlier.messages, stored)[-QUESTION_MESSAGES:]
            floor.waiting[sender_id] = replace(earlier, messages=messages, last_at=now)
        elif len(floor.waiting) < WAITING_SENDERS:
            chat = stored.message.chat
            floor.waiting[sender_id] = Question(chat, sender_id, (stored,), True, now, now)

    def next_step(self, chat: Chat, pace: Pace, now: int) -> Question | Rest | None:
        """Return the question to answer now, how long to rest, or ``None`` to leave the chat.

        The caller answers a question between ``started`` and ``ended``.
        """
        floor = self._chats[chat]
        floor.settle(now)
        self._drop_stale(floor, now)
        question = next(iter(floor.waiting.values()), None) or floor.considered
        if question is None:
            floor.has_runner = False
            return None
        ready_at = max(_ready_at(question, pace), floor.free_at + pace.gap_ms)
        if now < ready_at:
            return Rest(ready_at)
        if question.addressed:
            del floor.waiting[question.sender_id]
        floor.considered = None
        return question

    def _drop_stale(self, floor: _ChatFloor, now: int) -> None:
        for sender_id, question in list(floor.waiting.items()):
            if now - question.last_at > LONGEST_WAIT_MS:
                del floor.waiting[sender_id]
        if floor.considered and now - floor.considered.last_at > LONGEST_WAIT_MS:
            floor.considered = None

    def left(self, chat: Chat) -> None:
        """Note that the caller runs a chat no more, whatever made it stop."""
        floor = self._chats[chat]
        floor.has_runner = False
        floor.running = None

    def started(self, question: Question, cancel: Callable[[], object]) -> None:
        """Note that a question is being answered and how to stop that."""
        self._chats[question.chat].running = _Running(question, cancel)

    def begun(self, now: int) -> None:
        """Count a turn, of whatever chat, that passed every limit and begins to think."""
        self._begun.append(now)

    def begun_lately(self, now: int) -> tuple[int, ...]:
        """Return when the turns of the last minute began, in whatever chat, oldest first."""
        while self._begun and not now - MINUTE_MS < self._begun[0] <= now:
            self._begun.popleft()
        return tuple(self._begun)

    def shows(self, question: Question, row_ids: Iterable[int]) -> None:
        """Note which messages the prompt of a turn shows, now that they are read."""
        running = self._chats[question.chat].running
        if running is not None:
            running.shown = frozenset(row_ids)

    def committed(self, question: Question) -> bool:
        """Note that the answer goes out now; false if the question was withdrawn before."""
        running = self._chats[question.chat].running
        if running is None or running.withdrawn:
            return False
        running.committed = True
        return True

    def ended(self, question: Question, *, now: int, spoke: bool) -> None:
        """Note that a turn is over and whether anything was sent."""
        floor = self._chats[question.chat]
        running, floor.running = floor.running, None
        if spoke:
            floor.free_at = now
        if not question.addressed:
            floor.consider_from = now + COOLDOWN_MS
        if running is not None and running.withdrawn and running.question.messages:
            self._put_back(floor, running.question)

    def _put_back(self, floor: _ChatFloor, question: Question) -> None:
        # What is left of a question goes first again, together with what came since.
        later = floor.waiting.pop(question.sender_id, None)
        merged = question
        if later is not None:
            messages = (*question.messages, *later.messages)[-QUESTION_MESSAGES:]
            merged = replace(question, messages=messages, last_at=later.last_at)
        floor.waiting = {merged.sender_id: merged, **floor.waiting}

    def withdraw(self, chat: Chat, platform_id: str) -> None:
        """Take a recalled message out of what waits, and stop the turn that answers it.

        An answer that has begun to go out is let go.
        """
        floor = self._chats.get(chat)
        if floor is None:
            return
        for sender_id, question in list(floor.waiting.items()):
            if rest := _without(question, platform_id):
                floor.waiting[sender_id] = rest
            else:
                del floor.waiting[sender_id]
        if floor.considered is not None:
            floor.considered = _without(floor.considered, platform_id)
        if floor.running is not None:
            self._withdraw_running(floor.running, platform_id)

    def _withdraw_running(self, running: _Running, platform_id: str) -> None:
        rest = _without(running.question, platform_id)
        if rest is running.question or running.committed:
            return
        running.stop(rest.messages if rest and rest.addressed else ())

    def renew(self, chat: Chat, row_id: int) -> None:
        """Begin a turn again whose prompt shows a message that is no longer to be seen.

        To be called once the store hides the message; an answer that has begun to go out is
        let go.
        """
        self._renew_showing(chat, frozenset([row_id]))

    def _renew_showing(self, chat: Chat, row_ids: frozenset[int]) -> None:
        running = self._chats[chat].running if chat in self._chats else None
        if running is None or running.committed or running.withdrawn:
            return
        if running.shown is None or not running.shown.isdisjoint(row_ids):
            running.stop(running.question.messages if running.question.addressed else ())

    def renew_memory(self, chat: Chat) -> None:
        """Begin a turn again whose prompt may show memory that is no longer to be seen.

        To be called once the store has marked the chat's snapshot as stale; an answer that has
        begun to go out is let go.
        """
        running = self._chats[chat].running if chat in self._chats else None
        if running is not None and not running.committed and not running.withdrawn:
            running.stop(running.question.messages if running.question.addressed else ())

    def renew_shown(self, shown: Shown) -> None:
        """Do the work of ``renew_memory`` wherever something may have been shown.

        Those are also the turns that read the memory of its scopes in a chat that has no snapshot
        of them: one that still reads, or whose snapshot could not be kept.
        """
        running = [floor.running.question for floor in self._chats.values() if floor.running]
        reading = {q.chat for q in running if any(_reads(q, scope) for scope in shown.scopes)}
        for chat in shown.chats | reading:
            self.renew_memory(chat)
        for chat in [question.chat for question in running if shown.rows]:
            self._renew_showing(chat, shown.rows)

    def is_withdrawn(self, question: Question) -> bool:
        """Whether the question that is being answered was withdrawn."""
        running = self._chats[question.chat].running
        return running is not None and running.withdrawn

    def silence(self, chat: Chat) -> bool:
        """Let nobody wait in a chat any more and stop its turn, as when the bot is muted there.

        An answer that has begun to go out is let go.

        Returns:
            whether anybody waited, or a turn was stopped.
        """
        floor = self._chats.get(chat)
        if floor is None:
            return False
        had_waiting = bool(floor.waiting) or floor.considered is not None
        floor.waiting.clear()
        floor.considered = None
        if floor.running is None or floor.running.committed:
            return had_waiting
        floor.running.stop(())
        return True

    def is_speaking(self, chat: Chat) -> bool:
        """Whether an answer goes out in a chat now, which nothing stops any more."""
        running = self._chats[chat].running if chat in self._chats else None
        return running is not None and running.committed


def _ready_at(question: Question, pace: Pace) -> int:
    latest = question.first_at + DEBOUNCES * pace.debounce_ms
    return min(question.last_at + pace.debounce_ms, latest)


def _reads(question: Question, scope: Scope) -> bool:
    """Whether the turn of a question may read the memory of a scope."""
    whose = question.chat.id if scope.kind == "group" else question.sender_id
    is_near = scope.kind == "member" or question.chat.is_group
    return is_near and (question.chat.bot_id, whose) == (scope.bot_id, scope.id)


def _without(question: Question, platform_id: str) -> Question | None:
    left = tuple(s for s in question.messages if s.message.platform_id != platform_id)
    if len(left) == len(question.messages):
        return question
    return replace(question, messages=left) if left else None
