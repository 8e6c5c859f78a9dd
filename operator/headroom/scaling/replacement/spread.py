"""Judges how connections are spread over the ready replicas, and whether evictions would help."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headroom.scaling.mathematics.chance import CERTAIN, IDLE_SHARE, e_folds
from headroom.scaling.replacement.late_load import Shares, late_load, late_load_after

LATE_DEVIATIONS = 3.0
LEAST_GAIN, GAIN_SHARE = 0.1, 0.25
"""Each eviction must free this share of all requests, all of them this part of the late load."""
LESS = 0.95
"""Factor on the share of a replica whose requests are late: it is not carried."""
MOST_MORE, MORE_SHARE = 2, 0.25
"""Idle replicas to start before an eviction: this many, or this share of the ready ones."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Load:
    """Load of each ready replica since one of them last ended, [replicas]."""

    replicas: tuple[str, ...]
    settled: NDArray[np.bool_]
    """Replicas that have been ready for long enough to have requests."""
    arrived: Shares
    ended: Shares
    late: Shares
    weights: Shares
    """In proportion to the connections: arrivals, or requests in flight of clients that wait."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spread:
    """Connections that are spread unevenly, while requests are late."""

    order: NDArray[np.intp]
    """Places of the replicas in the load, the most loaded first."""
    shares: Shares
    """In that order."""
    connections: int
    carried: float
    """Share of the load that one replica answers in time."""

    @classmethod
    def of(cls, load: Load, connections: int, carried: float, allowed: float) -> Spread | None:
        """Return an unevenness beyond chance that makes requests late; None without one.

        `allowed` is the share of requests that may be late. A replica whose requests are late has
        more than it carries, whatever the model says.
        """
        total = float(load.weights.sum())
        if total <= 0.0 or not load.settled.any() or not is_uneven(load.arrived[load.settled]):
            return None
        if load.late.sum() <= _allowed(allowed, load.ended.sum()):
            return None
        late = load.late > _allowed(allowed, load.ended)
        order = np.argsort(-load.weights, kind="stable")
        if not late[order[0]]:
            return None
        shares: Shares = load.weights[order] / total
        carried = min(carried, LESS * float(shares[late[order]].min()))
        return cls(order=order, shares=shares, connections=connections, carried=carried)

    def evictions(self, most: int, more: int = 0) -> int:
        """Return the best number of evictions, with `more` idle replicas; 0 if none is worth it."""
        most = min(most, len(self.shares) - 1)
        if most < 1:
            return 0
        shares = np.append(self.shares, np.zeros(more)) if more else self.shares
        before = late_load(shares, self.carried)
        gains = [
            before - late_load_after(shares, count, self.connections, self.carried)
            for count in range(1, most + 1)
        ]
        best = int(np.argmax([gain - LEAST_GAIN * count for count, gain in enumerate(gains, 1)]))
        enough = gains[best] >= max(LEAST_GAIN * (best + 1), GAIN_SHARE * before)
        return best + 1 if enough else 0

    def more(self, most: int, enough: int) -> int:
        """Return how many idle replicas make evictions worth it; 0 if too many would be needed.

        At most `most` replicas are evicted, and `enough` must remain.
        """
        ready = len(self.shares)
        for more in range(1, max(MOST_MORE, int(MORE_SHARE * ready)) + 1):
            if self.evictions(min(most, ready + more - enough), more):
                return more
        return 0

    @property
    def detail(self) -> str:
        """Unevenness as text: has 61% of the load and 2 of 5 have hardly any."""
        replicas = len(self.shares)
        few = int((self.shares < IDLE_SHARE / replicas).sum())
        text = f"has {100 * self.shares[0]:.0f}% of the load"
        return f"{text} and {few} of {replicas} have hardly any" if few else text


def is_uneven(arrived: Shares) -> bool:
    """Return whether chance does not explain the requests of some replica (Chernoff, Poisson).

    Worked: of five replicas with 40 requests on average, 82 or 9 are no chance, 75 and 15 are.
    """
    even = float(arrived.mean())
    if even <= 0.0:
        return False
    return bool(e_folds(arrived, even).max() >= CERTAIN + math.log(len(arrived)))


def _allowed(share: float, ended: Shares | float) -> Shares:
    """Return how many late requests chance explains."""
    expected: Shares = share * np.asarray(ended)
    return expected + LATE_DEVIATIONS * np.sqrt(np.maximum(1.0, expected))
