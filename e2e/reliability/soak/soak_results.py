"""Counts of the soak, and whether they grew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """Objects and memory at one moment, after garbage collection."""

    hour: float
    rss_mb: float
    objects: int
    tasks: int


@dataclass(slots=True, kw_only=True)
class SoakResults:
    """The results of a soak."""

    seed: int
    hours: float
    services: int
    counts: list[Count] = field(default_factory=list)
    calls: dict[str, int] = field(default_factory=dict)
    ticks: int = 0
    kills: int = 0
    troubles: int = 0
    wrongs: list[str] = field(default_factory=list)

    @property
    def calls_per_service_hour(self) -> float:
        """Requests to the API."""
        return sum(self.calls.values()) / self.services / self.hours

    def grown(self, what: str) -> float:
        """Return how much more the last quarter holds than the second, in medians, as a share.

        The first quarter fills what is bounded; the second has the same chaos as the last.
        """
        return growth([getattr(one, what) for one in self.counts])

    def as_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def growth(values: Sequence[float]) -> float:
    """Return the median of the last quarter over that of the second, less one.

    Worked: 10, 20, 20, 20, 20, 21, 22, 22 gives 22 / 20 - 1 = 0.1.
    """
    quarter = max(1, len(values) // 4)
    second, last = values[quarter : 2 * quarter], values[-quarter:]
    return median(last) / median(second or values) - 1.0


def read(text: dict[str, Any]) -> SoakResults:
    """Read what `as_json` gave."""
    counts = [Count(**one) for one in text.pop("counts")]
    return SoakResults(counts=counts, **text)
