"""Which of the messages that were found answer a question best.

Pure. See ``docs/search.md``, "Ranking".
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bot.model import StoredMessage
from bot.search.wanted import Wanted, has_number, is_asking, wanted

FOLLOWED = 4
"""So many messages back are what a message may answer to."""

FOLLOW_MS = 10 * 60_000
"""Messages further apart do not belong together."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What counts how much."""

    dense: float = 0.7
    """Of what a message itself scores; the rest is its words'."""
    before: float = 0.5
    """What a message takes of the score of the one before it."""
    fading: float = 0.7
    """What each message further back counts of that."""
    asked: float = 0.1
    """What a message loses for asking rather than telling."""
    number: float = 0.2
    named: float = 0.1
    lean: float = 0.2
    recent: float = 0.05
    own: float = 0.3
    """What a message of somebody who asks about themself gains; the answers to it, half."""
    half_life_days: float = 60
    floor_dense: float = 0.45
    """Messages less alike than this are nothing if no word fits either."""
    floor_words: float = 0.3
    """The share of the question's words that has to stand in a message or just before it."""


OPEN = Weights()
"""For any embedder."""

BUNDLED = Weights(dense=0.4)
"""The one that comes along is small: words tell more than it does."""


@dataclass(frozen=True, slots=True)
class Likeness:
    """How alike the question and messages are, by their rows."""

    dense: Mapping[int, float]
    """Cosines; rows that have no vector are absent."""
    usual: float
    """The cosine of a message that has nothing to do with the question."""
    lexical: Mapping[int, float]
    """Scores of words, greater than 0."""

    def own(self, rows: Iterable[int], weights: Weights) -> dict[int, float]:
        """Return what some messages themselves score, from 0 to 1, by row."""
        top_words = max(self.lexical.values(), default=0.0)
        span = max(self.dense.values(), default=0.0) - self.usual
        share = weights.dense if self.dense and span > 0 else 0.0
        scores: dict[int, float] = {}
        for row in rows:
            alike = self.dense.get(row, self.usual) - self.usual
            dense = max(0.0, alike / span) if share else 0.0
            words = self.lexical.get(row, 0.0) / top_words if top_words else 0.0
            scores[row] = share * dense + (1 - share) * words
        return scores

    def likeliest(self, weights: Weights, count: int) -> list[int]:
        """Return the rows of the messages that themselves score best."""
        own = self.own({*self.dense, *self.lexical}, weights)
        return sorted(own, key=lambda row: (-own[row], -row))[:count]


@dataclass(frozen=True, slots=True)
class Scored:
    """A message and how well it fits, 1 for the best before boosts."""

    stored: StoredMessage
    score: float


def ranked(
    question: str,
    asker_id: str,
    stretches: Iterable[Sequence[StoredMessage]],
    likeness: Likeness,
    weights: Weights,
    now: int,
) -> list[Scored]:
    """Return messages by how well they answer a question, best first.

    Args:
        question: as somebody put it.
        asker_id: who asks, ``""`` for nobody in particular.
        stretches: stretches of the chat, in each what was said one after the other.
        likeness: how alike the question and these messages are.
        weights: what counts how much.
        now: UTC milliseconds.
    """
    said, before = _joined(stretches)
    if not said:
        return []
    own = likeness.own(said, weights)
    told = {row: _with_before(row, said, before, own, weights) for row in said}
    best = max(told.values())
    if best <= 0:
        return []
    speakers = {(s.message.sender.user_id, s.message.sender.nickname) for s in said.values()}
    boosts = _Boosts(wanted(question, speakers), asker_id, said, before, weights, now)
    found = [
        Scored(said[row], score / best * boosts.of(row)) for row, score in told.items() if score > 0
    ]
    return sorted(found, key=lambda one: (-one.score, -one.stored.row_id))


def _joined(
    stretches: Iterable[Sequence[StoredMessage]],
) -> tuple[dict[int, StoredMessage], dict[int, int]]:
    """Return all messages by row, and behind which row each stands."""
    said: dict[int, StoredMessage] = {}
    before: dict[int, int] = {}
    for stretch in stretches:
        for number, stored in enumerate(stretch):
            said.setdefault(stored.row_id, stored)
            if number:
                before[stored.row_id] = stretch[number - 1].row_id
    return said, before


def _with_before(
    row: int,
    said: Mapping[int, StoredMessage],
    before: Mapping[int, int],
    own: Mapping[int, float],
    weights: Weights,
) -> float:
    """Return the score of a message with what those that it may answer to lend it."""
    score, lent, last = own[row], weights.before, row
    for back in range(1, FOLLOWED + 1):
        earlier = before.get(last)
        if earlier is None:
            break
        if said[row].message.sent_at - said[earlier].message.sent_at <= FOLLOW_MS * back:
            score += lent * own[earlier]
        lent *= weights.fading
        last = earlier
    return score


@dataclass(frozen=True, slots=True)
class _Boosts:
    """What speaks for a message besides what it says."""

    wanted: Wanted
    asker_id: str
    said: Mapping[int, StoredMessage]
    before: Mapping[int, int]
    weights: Weights
    now: int

    def of(self, row: int) -> float:
        """Return by what the score of a message is multiplied."""
        message, weights = self.said[row].message, self.weights
        factor = 1.0
        if is_asking(message.text):
            factor -= weights.asked
        if self.wanted.wants_number and has_number(message.text):
            factor += weights.number
        if message.sender.user_id in self.wanted.named:
            factor += weights.named
        recency = self._recency(message.sent_at)
        factor += weights.recent * recency
        if self.wanted.lean:
            factor += weights.lean * (recency if self.wanted.lean == "late" else 1 - recency)
        if self.asker_id and self.wanted.is_of_self:
            factor += self._preference(row)
        return factor

    def _recency(self, sent_at: int) -> float:
        days = max(0.0, (self.now - sent_at) / 86_400_000)
        return 0.5 ** (days / self.weights.half_life_days)

    def _preference(self, row: int) -> float:
        """Return what a message gains by being the asker's, or an answer to them."""
        message = self.said[row].message
        if message.sender.user_id == self.asker_id:
            return self.weights.own
        return self.weights.own / 2 if self._answers_asker(row) else 0.0

    def _answers_asker(self, row: int) -> bool:
        message = self.said[row].message
        earlier = self.said.get(self.before.get(row, 0))
        if message.reply_to is None:
            return (
                message.direction == "outbound"
                and earlier is not None
                and (earlier.message.sender.user_id == self.asker_id)
            )
        return any(
            one.message.platform_id == message.reply_to
            and one.message.sender.user_id == self.asker_id
            for one in self.said.values()
        )
