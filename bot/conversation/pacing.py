"""How fast the bot speaks: what may be sent, what may be answered, when to fall silent.

All times are UTC milliseconds and arguments. The rules and numbers are those of
``docs/architecture.md``, "Pace".
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

MINUTE_MS = 60_000

LONGEST_WAIT_MS = 60_000
"""What would wait longer in the outgoing queue is dropped, unless it is urgent."""

LONGEST_BACK_OFF_SECONDS = 64
"""Repeated failures never stretch the gap beyond this (unless the gap itself is longer)."""

SHORTEST_BACK_OFF_SECONDS = 1
"""What is doubled where the operator set no gap at all."""

QUICK_ANSWER_MS = 5_000
"""Whoever answers the bot within this time may be a bot."""

LOOP_SILENCE_MS = 120_000
"""How long the bot is silent after it seems to have talked with another bot."""


@dataclass(frozen=True, slots=True)
class Go:
    """Now."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Not before ``until``; ask again then."""

    until: int
    """UTC milliseconds."""


DropReason = Literal["waited-too-long"]


@dataclass(frozen=True, slots=True)
class Drop:
    """Never."""

    reason: DropReason


RefusalReason = Literal["member-minute", "member-day"]


@dataclass(frozen=True, slots=True)
class Refused:
    """No turn for this message; it stays in the record like any other."""

    reason: RefusalReason


# Out: one queue per account.


@dataclass(frozen=True, slots=True)
class SendLimits:
    """The run-time settings of the outgoing queue; counts are ≥ 1."""

    gap_seconds: float
    per_chat_per_minute: int
    per_account_per_minute: int


@dataclass(frozen=True, slots=True)
class SendAttempt:
    """One message that was given to the platform, whatever came of it."""

    at: int
    chat_key: str


@dataclass(frozen=True, slots=True)
class SendHistory:
    """What one account has sent of late; a value, replaced after each attempt."""

    attempts: tuple[SendAttempt, ...] = ()
    """Those of the minute before ``last_at``, oldest first."""
    last_at: int | None = None
    failures: int = 0
    """Failed attempts since the last success."""

    def after_send(self, at: int, chat_key: str, *, ok: bool) -> "SendHistory":
        """Return the history with one more attempt, without what no limit asks for any more."""
        return SendHistory(
            attempts=(*self.recent(at), SendAttempt(at, chat_key)),
            last_at=at,
            failures=0 if ok else self.failures + 1,
        )

    def recent(self, now: int) -> tuple[SendAttempt, ...]:
        """Return the attempts of the minute before ``now``; none that a set-back clock left."""
        return tuple(attempt for attempt in self.attempts if now - MINUTE_MS < attempt.at <= now)


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One message in the queue."""

    chat_key: str
    queued_at: int
    urgent: bool = False
    """A reminder: it waits for as long as it takes."""


def send_gap_ms(limits: SendLimits, failures: int) -> int:
    """Return the least time between two attempts after ``failures`` failures in a row."""
    if not failures:
        return math.ceil(limits.gap_seconds * 1000)
    doubled = max(limits.gap_seconds, SHORTEST_BACK_OFF_SECONDS) * 2 ** min(failures, 30)
    return math.ceil(max(limits.gap_seconds, min(doubled, LONGEST_BACK_OFF_SECONDS)) * 1000)


def earliest_send(history: SendHistory, limits: SendLimits, chat_key: str, now: int) -> int:
    """Return when the account may send to ``chat_key``: ``now`` or later."""
    recent = history.recent(now)
    in_chat = [attempt.at for attempt in recent if attempt.chat_key == chat_key]
    return max(
        now,
        _after_gap(history.last_at, send_gap_ms(limits, history.failures), now),
        _below_cap(in_chat, limits.per_chat_per_minute, now),
        _below_cap([attempt.at for attempt in recent], limits.per_account_per_minute, now),
    )


def send_decision(
    history: SendHistory, limits: SendLimits, message: Outgoing, now: int
) -> Go | Wait | Drop:
    """Return whether ``message`` is sent now, later or never."""
    at = earliest_send(history, limits, message.chat_key, now)
    if at - message.queued_at > LONGEST_WAIT_MS and not message.urgent:
        return Drop("waited-too-long")
    return Go() if at <= now else Wait(at)


def _after_gap(last_at: int | None, gap_ms: int, now: int) -> int:
    """Return the end of the gap; a last time after ``now`` is a set-back clock's and counts not."""
    return now if last_at is None or last_at > now else last_at + gap_ms


def _below_cap(times: Sequence[int], cap: int, now: int) -> int:
    """Return when fewer than ``cap`` of ``times`` (of the last minute, sorted) are recent."""
    return now if len(times) < cap else times[-cap] + MINUTE_MS


# In: whether a message may start a turn.


@dataclass(frozen=True, slots=True)
class ReplyLimits:
    """The run-time settings of answering; counts are ≥ 1."""

    per_member_per_minute: int
    per_member_per_day: int
    global_per_minute: int


@dataclass(frozen=True, slots=True)
class TurnLoad:
    """What the limits need to know about earlier turns."""

    member_last_minute: int = 0
    """How many turns of the member began within the last minute, in whatever chat."""
    member_today: int = 0
    """How many turns of the member began on this local day, in whatever chat."""
    last_minute: tuple[int, ...] = ()
    """When the turns of the last minute began, oldest first."""


def turn_decision(load: TurnLoad, limits: ReplyLimits, now: int) -> Go | Wait | Refused:
    """Return whether a turn may start now, later or not at all.

    A member over a limit of their own is refused; the limit of all is nobody's fault and only
    makes wait. The gap within a chat is the floor's (``bot/conversation/floor.py``).
    """
    if load.member_today >= limits.per_member_per_day:
        return Refused("member-day")
    if load.member_last_minute >= limits.per_member_per_minute:
        return Refused("member-minute")
    at = _below_cap(load.last_minute, limits.global_per_minute, now)
    return Go() if at <= now else Wait(at)


# Loops: two bots that answer each other for ever.


@dataclass(frozen=True, slots=True)
class TurnTrace:
    """One answered turn of a group."""

    sender_id: str
    asked_at: int
    answered_at: int
    third_party: bool
    """Whether someone else spoke between the answer before and this question."""


def loop_silence_until(
    turns: Sequence[TurnTrace], now: int, max_consecutive_turns: int
) -> int | None:
    """Return until when a group's turns are refused because they look like a loop of bots.

    Args:
        turns: the group's answered turns, oldest first; the last ``max_consecutive_turns + 1``
            are enough.
        now: UTC milliseconds.
        max_consecutive_turns: after so many quick answers running, by one sender and with no
            third party, the bot is silent for two minutes.

    Returns:
        UTC milliseconds after ``now``, or None. The same turns give the same answer, so a
        restart changes nothing, and no turn is added while the bot is silent.
    """
    if not turns or _quick_answers_running(turns) < max_consecutive_turns:
        return None
    # A last answer after ``now`` is a set-back clock's: it would silence until the clock is there.
    until = turns[-1].answered_at + LOOP_SILENCE_MS
    return until if now < until <= now + LOOP_SILENCE_MS else None


def _quick_answers_running(turns: Sequence[TurnTrace]) -> int:
    running = 0
    for turn, before in zip(reversed(turns), reversed(turns[:-1]), strict=False):
        if not _is_quick_answer(turn, before):
            break
        running += 1
    return running


def _is_quick_answer(turn: TurnTrace, before: TurnTrace) -> bool:
    return (
        not turn.third_party
        and turn.sender_id == before.sender_id
        and turn.asked_at - before.answered_at <= QUICK_ANSWER_MS
    )
