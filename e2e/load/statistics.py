"""Latency histogram, percentiles with misses as +Inf, attainment, windows of arrivals.

The grid's factor is 1.02, so a percentile is at most 2 % above the truth and never below it.
Whether a request was within the target is counted exactly, when it ends.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from load.outcomes import Outcome, Result

FIRST_BOUND_S = 0.001
FACTOR = 1.02
_LOG_FACTOR = math.log(FACTOR)


def bucket_of(latency_s: float) -> int:
    """Index of the smallest bound that is at least the latency."""
    if latency_s <= FIRST_BOUND_S:
        return 0
    return math.ceil(math.log(latency_s / FIRST_BOUND_S) / _LOG_FACTOR - 1e-9)


def bound_s(bucket: int) -> float:
    """Upper bound of a bucket, in seconds."""
    return FIRST_BOUND_S * FACTOR**bucket


@dataclass(slots=True)
class Tally:
    """Counts of requests: by outcome, within the target, and by latency of right answers."""

    outcomes: Counter[Outcome] = field(default_factory=Counter)
    within: int = 0
    buckets: Counter[int] = field(default_factory=Counter)

    @property
    def requests(self) -> int:
        """All requests that have ended."""
        return self.outcomes.total()

    @property
    def missed(self) -> int:
        """Requests without a right answer."""
        return self.requests - self.outcomes[Outcome.OK]

    def add(self, result: Result, target_s: float) -> None:
        """Count one request's end."""
        self.outcomes[result.outcome] += 1
        if result.outcome is Outcome.OK:
            self.buckets[bucket_of(result.latency_s)] += 1
            self.within += result.latency_s <= target_s

    def quantile_s(self, share: float) -> float | None:
        """Latency that this share of all requests stayed within; +Inf where misses reach into it.

        None without requests: nothing is known, which is not zero.
        """
        rank = math.ceil(share * self.requests - 1e-9)
        if self.requests == 0:
            return None
        seen = 0
        for bucket in sorted(self.buckets):
            seen += self.buckets[bucket]
            if seen >= rank:
                return bound_s(bucket)
        return math.inf

    @property
    def attainment(self) -> float | None:
        """Share of all requests that were answered within the target; None without requests."""
        return self.within / self.requests if self.requests else None

    def holds(self, share: float) -> bool:
        """Return whether at most `1 - share` of the requests missed; True without requests."""
        return self.requests - self.within <= (1.0 - share) * self.requests + 1e-9

    def to_json(self) -> dict[str, object]:
        """Return a JSON object; outcomes that did not occur are left out."""
        return {
            "outcomes": {outcome.value: count for outcome, count in sorted(self.outcomes.items())},
            "within": self.within,
            "buckets": {str(bucket): count for bucket, count in sorted(self.buckets.items())},
        }

    @classmethod
    def from_json(cls, body: Mapping[str, object]) -> Tally:
        """Inverse of `to_json`.

        Raises:
            ValueError: something is missing, or is not a count.
        """
        match body:
            case {"outcomes": dict(outcomes), "within": int(within), "buckets": dict(buckets)}:
                return cls(
                    outcomes=Counter({Outcome(name): int(n) for name, n in outcomes.items()}),
                    within=within,
                    buckets=Counter({int(index): int(n) for index, n in buckets.items()}),
                )
        raise ValueError(f"a tally must have outcomes, within and buckets; got {sorted(body)}")


def merged(tallies: Iterable[Tally]) -> Tally:
    """Return the sum of all tallies."""
    total = Tally()
    for tally in tallies:
        total.outcomes.update(tally.outcomes)
        total.buckets.update(tally.buckets)
        total.within += tally.within
    return total


@dataclass(slots=True)
class Windows:
    """Tallies by the window in which the trace wanted the request sent."""

    window_s: float
    tallies: dict[int, Tally] = field(default_factory=dict)

    def add(self, result: Result, target_s: float) -> None:
        """Count one request's end in its window."""
        index = int(result.due_s / self.window_s)
        self.tallies.setdefault(index, Tally()).add(result, target_s)

    def items(self) -> list[tuple[float, Tally]]:
        """Start of each window that had requests, in seconds, with its tally, in order."""
        return [(index * self.window_s, tally) for index, tally in sorted(self.tallies.items())]
