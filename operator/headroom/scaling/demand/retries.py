"""Bounds the arrival rate while many requests miss: retries are not demand.

A client that gives up and tries again is counted once per try. With a patience of 2 s and 8 tries,
40 requests per second become 374. Further tries that say so are subtracted. For others: they come
only after misses, so the rate at the time when misses begin is the rate of first tries. It is the
bound while misses last, and doubles with each cold start that passes without an end, so real growth
is followed, only later. Twice what the ready replicas answer is never refused: each cold start may
double the replicas.
"""

from __future__ import annotations

from dataclasses import dataclass

from headroom.scaling.frozen import replace

MANY, FEW = 0.2, 0.05
"""Misses are many from this share of the ended requests on, until they are fewer than this."""
ONSET_S = 4.0
"""Arrivals of the first seconds with misses are first tries, because clients wait before others."""
GROWTH_PER_START = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """The bound on the arrival rate, and since when many requests miss."""

    since_s: float | None = None
    """None while few requests miss."""
    first_rps: float = 0.0
    """The highest rate before misses began and in the first seconds with them."""
    doublings: int = 0
    checked_s: float = 0.0
    answered_rps: float = 0.0

    def observe(
        self,
        now_s: float,
        rate_rps: float,
        missed_share: float | None,
        *,
        answered_rps: float = 0.0,
        cold_start_s: float,
        warming: bool,
    ) -> Retries:
        """Return the bound after this tick; `rate_rps` is the highest of the short windows."""
        if missed_share is None:
            return self
        if self.since_s is None and missed_share < MANY:
            return Retries(first_rps=max(rate_rps, 0.0))
        known = replace(self, answered_rps=answered_rps)
        if known.since_s is None:
            return replace(
                known, since_s=now_s, first_rps=max(rate_rps, self.first_rps), checked_s=now_s
            )
        if missed_share < FEW:
            return Retries(first_rps=rate_rps)
        if now_s - known.since_s <= ONSET_S:
            return replace(known, first_rps=max(rate_rps, self.first_rps))
        if warming:
            return replace(known, checked_s=now_s)
        if now_s - self.checked_s < cold_start_s:
            return known
        return replace(known, doublings=self.doublings + 1, checked_s=now_s)

    @property
    def at_most_rps(self) -> float | None:
        """The bound on the rate; None while few requests miss."""
        if self.since_s is None:
            return None
        grown_rps = self.first_rps * GROWTH_PER_START**self.doublings
        return max(grown_rps, GROWTH_PER_START * self.answered_rps)
