"""Which of the messages that were found answer a question best.

Pure. See ``docs/search.md``, "Ranking messages".
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bot.model import StoredMessage
from bot.search.grams import fold
from bot.search.wanted import Wanted, has_number, is_asking, wanted

FOLLOWED = 6
"""So many messages back are what a message may answer to."""

FOLLOW_MS = 10 * 60_000
"""Messages further apart do not belong together."""


LEAST_SPAN = 0.2
"""Where all are about as alike, the small differences between them are no measure."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What counts how much."""

    dense: float = 0.7
    """Of what a message itself scores; the rest is its words'."""
    before: float = 0.5
    """What a message takes of the score of the one before it."""
    fading: float = 0.8
    """What each message further back counts of that."""
    asked: float = 0.1
    """What a message loses for asking rather than telling."""
    number: float = 0.2
    """What it gains for a number, if one is asked for."""
    named: float = 0.1
    """What it gains if the question names who said it."""
    lean: float = 0.2
    """What the newest gains if it is asked how things stand, the oldest if it is how they began."""
    recent: float = 0.05
    """What the newest gains in any case."""
    half_life_days: float = 60
    own: float = 0.3
    """What a message of somebody who asks about themself gains; the answers to it, half."""
    floor_alike: float = 0.1
    """A question to which nothing is more alike than this, beyond what is usual …"""
    floor_words: float = 0.5
    """… and of whose words no more than this share stands in any stretch, finds nothing."""
    floor_words_alone: float = 0.2
    """The same share where there are words only."""
    floor_share: float = 0.1
    """What scores less than this share of the best is left out."""


OPEN = Weights()
"""For any embedder."""

BUNDLED = Weights(dense=0.35, floor_alike=0.22)
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
        span = max(LEAST_SPAN, max(self.dense.values(), default=0.0) - self.usual)
        share = weights.dense if self.dense else 0.0
        scores: dict[int, float] = {}
        for row in rows:
            alike = self.dense.get(row, self.usual) - self.usual
            dense = max(0.0, alike / span) if share else 0.0
            words = self.lexical.get(row, 0.0) / top_words if top_words else 0.0
            scores[row] = share * dense + (1 - share) * words
        return scores

    def likeliest(self, rows: Iterable[int], weights: Weights, count: int) -> list[int]:
        """Return those of some messages that themselves score best."""
        own = self.own(rows, weights)
        return sorted(own, key=lambda row: (-own[row], -row))[:count]


@dataclass(frozen=True, slots=True)
class Scored:
    """A message and how well it fits, 1 for the best before boosts."""

    stored: StoredMessage
    score: float


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked, and by whom."""

    text: str
    """As somebody put it."""
    words: tuple[str, ...] = ()
    """Its words, folded."""
    asker_id: str = ""
    """``""`` for nobody in particular."""


def ranked(
    query: Query,
    stretches: Iterable[Sequence[StoredMessage]],
    likeness: Likeness,
    weights: Weights,
    now: int,
) -> list[Scored]:
    """Return messages by how well they answer a question, best first; none if nothing bears on it.

    Args:
        query: what is asked.
        stretches: stretches of the chat, in each what was said one after the other.
        likeness: how alike the question and these messages are.
        weights: what counts how much.
        now: UTC milliseconds.
    """
    said, before = _joined(stretches)
    own = likeness.own(said, weights)
    told = {row: _with_before(row, said, before, own, weights) for row in said}
    best = max(told.values(), default=0.0)
    if best <= 0 or not _bears_on(query, said, before, likeness, weights):
        return []
    speakers = {(s.message.sender.user_id, s.message.sender.nickname) for s in said.values()}
    boosts = _Boosts(wanted(query.text, speakers), query.asker_id, said, before, weights, now)
    found = [
        Scored(said[row], score / best * boosts.of(row))
        for row, score in told.items()
        if score >= weights.floor_share * best
    ]
    return sorted(found, key=lambda one: (-one.score, -one.stored.row_id))


def _bears_on(
    query: Query,
    said: Mapping[int, StoredMessage],
    before: Mapping[int, int],
    likeness: Likeness,
    weights: Weights,
) -> bool:
    """Whether anything has to do with the question at all."""
    floor = weights.floor_words if likeness.dense else weights.floor_words_alone
    beyond = max(likeness.dense.values(), default=likeness.usual) - likeness.usual
    if likeness.dense and beyond >= weights.floor_alike:
        return True
    folded = {row: fold(stored.message.text) for row, stored in said.items()}
    shares = (_share_of_words(query, row, folded, before) for row in said)
    return any(share > floor for share in shares)


def _share_of_words(
    query: Query, row: int, folded: Mapping[int, str], before: Mapping[int, int]
) -> float:
    """Return which share of the words, by length, stands in a message or in those before it."""
    texts: list[str] = []
    last: int | None = row
    while last is not None and len(texts) <= FOLLOWED:
        texts.append(folded[last])
        last = before.get(last)
    whole = sum(map(len, query.words))
    there = sum(len(word) for word in query.words if any(word in text for text in texts))
    return there / whole if whole else 0.0


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
