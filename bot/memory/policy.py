"""Policies: how long notes stay in a tier, when they rise, and what weighs when memory is searched.

See ``docs/memory.md``, "Tiers". A chat's policy is named by its setting ``memoryPolicy``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from bot.errors import MemoryPolicyError
from bot.model import Tier

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


@dataclass(frozen=True, slots=True)
class Weights:
    """What counts how much when memory is ranked; only their proportion matters."""

    recency: float = 0.2
    keyword: float = 0.3
    vector: float = 0.5


@dataclass(frozen=True, slots=True)
class Promotion:
    """When an entry of a tier rises to the next one."""

    after_ms: int
    """So long in its tier."""
    uses: int
    """On so many days it was packed."""
    to: Tier


@dataclass(frozen=True, slots=True)
class MemoryPolicy:
    """How long notes live, when they rise, and how entries are ranked.

    Only notes expire: what a reflection wrote has no end in its tier, and neither has ``profile``.

    Raises:
        MemoryPolicyError: a note would expire before it can rise, or a number makes no sense.
    """

    name: str = "default"
    working_ttl_hours: float = 24
    working_promotion_hours: float = 1
    working_promotion_uses: int = 0
    episodic_ttl_days: float | None = 30
    """``None``: they do not expire."""
    episodic_promotion_days: float = 7
    episodic_promotion_uses: int = 2
    half_life_days: float = 7
    """An entry that is so much older counts half as recent."""
    weights: Weights = Weights()

    def __post_init__(self) -> None:
        self._check_positive()
        for tier in ("working", "episodic"):
            ttl, promotion = self.ttl_ms(tier), self.promotion(tier)
            if ttl is not None and promotion is not None and ttl <= promotion.after_ms:
                raise MemoryPolicyError(
                    self.name,
                    f"the TTL of {tier} notes must be longer than the delay of their promotion,"
                    " or they expire before they can rise",
                )

    def _check_positive(self) -> None:
        times = (
            self.working_ttl_hours,
            self.working_promotion_hours,
            self.episodic_promotion_days,
            self.half_life_days,
        )
        weights = (self.weights.recency, self.weights.keyword, self.weights.vector)
        uses = (self.working_promotion_uses, self.episodic_promotion_uses)
        # Written so that what is not a number is refused as well.
        if not all(time > 0 for time in times):
            raise MemoryPolicyError(self.name, "times must be positive")
        if not all(weight >= 0 for weight in weights) or not sum(weights) > 0:
            raise MemoryPolicyError(self.name, "weights must not be negative, nor all be 0")
        if not all(count >= 0 for count in uses):
            raise MemoryPolicyError(self.name, "uses must not be negative")

    def ttl_ms(self, tier: Tier) -> int | None:
        """Return how long a note may stay in a tier, ``None`` for as long as it is not changed."""
        match tier:
            case "working":
                return round(self.working_ttl_hours * HOUR_MS)
            case "episodic":
                days = self.episodic_ttl_days
                return None if days is None else round(days * DAY_MS)
            case "profile":
                return None

    def promotion(self, tier: Tier) -> Promotion | None:
        """Return when a note rises from a tier, ``None`` from the highest."""
        match tier:
            case "working":
                delay = round(self.working_promotion_hours * HOUR_MS)
                return Promotion(delay, self.working_promotion_uses, "episodic")
            case "episodic":
                delay = round(self.episodic_promotion_days * DAY_MS)
                return Promotion(delay, self.episodic_promotion_uses, "profile")
            case "profile":
                return None


_PRESETS = (
    MemoryPolicy(),
    # Banter: what nobody comes back to within half a day is gone, and what is new weighs more.
    MemoryPolicy(
        name="chat",
        working_ttl_hours=12,
        working_promotion_uses=1,
        episodic_ttl_days=14,
        episodic_promotion_uses=3,
        half_life_days=3,
        weights=Weights(recency=0.4, keyword=0.2, vector=0.4),
    ),
    # A diary: nothing expires once it rose, and what is old counts almost as much as what is new.
    MemoryPolicy(
        name="journal",
        working_ttl_hours=72,
        episodic_ttl_days=None,
        episodic_promotion_days=3,
        episodic_promotion_uses=1,
        half_life_days=60,
        weights=Weights(recency=0.1, keyword=0.4, vector=0.5),
    ),
)

PRESETS: Mapping[str, MemoryPolicy] = MappingProxyType({one.name: one for one in _PRESETS})
"""By the values of ``memoryPolicy``."""


def policy(name: str) -> MemoryPolicy:
    """Return the policy that ``memoryPolicy`` names.

    Raises:
        MemoryPolicyError: there is none of this name.
    """
    try:
        return PRESETS[name]
    except KeyError:
        raise MemoryPolicyError(name, f"there are only {', '.join(PRESETS)}") from None
