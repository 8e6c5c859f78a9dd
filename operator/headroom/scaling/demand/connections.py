"""Learns how unevenly the replicas are loaded, as a number of equally busy connections.

kube-proxy balances connections of a ClusterIP, not requests. C connections that are bound to N
replicas at random give each C / N on average, with a variance of C / N (1 - 1/N). If each carries
the same share of the requests, the requests of the replicas in a window have the variance
mean + mean^2 N / C (N - 1 in the denominator); the first part is chance (Poisson). So

    1 / C = (variance - mean) / (mean^2 N)

Requests that are balanced one by one look like very many connections. So a service starts with that
assumption, and a few windows of evidence replace it.
Replicas that became ready later have none of the connections that are kept, until another replica
ends: then its connections are spread over all. So each replica has an expected share of them, and
the variance is that around it. Where new replicas get requests nevertheless, clients open new
connections by themselves: then all shares are even again.
Worked: 4 replicas with 400, 250, 300, 250 of 1200 requests: mean 300, variance 5000, 1 / C =
4700 / 360 000: some 77 connections.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from headroom.scaling.frozen import replace

EVERY_S = 30.0
"""Connections stay where they are, so windows that overlap would count one placement twice."""
HALF_LIFE_S = 900.0
_PRIOR_WEIGHT = 2.0
MOST = 1000
_SUSPECTED = 30.0
"""Connections assumed first where a replica would be suspected of counting too few requests."""
FEW = 100
"""Fewer equally busy connections than this make the load of the replicas visibly uneven."""
_FOLLOWED, _KEPT = 0.5, 0.25
"""Shares of the requests that new replicas lack if all connections are kept: above the first the
load has followed them, below the second it has not."""
_LACKING = 0.1
"""Share of an even load: a replica that is expected to have less is new."""
_FEWEST_LACKING = 20.0
"""Least requests that new replicas lack if all connections are kept: fewer are chance."""
_STEP = math.log(1.1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Connections:
    """The weighted mean of 1 / C over windows; 0 before the first."""

    weight: float = _PRIOR_WEIGHT
    inverse_sum: float = 0.0
    last_s: float | None = None
    expected: Mapping[str, float] = field(default_factory=dict)
    """Share of the connections that each ready replica has on average, if all are kept."""
    follow: bool = False
    """Whether new replicas have last got requests although no replica had ended."""

    @property
    def pinned(self) -> bool:
        """Whether an added replica stays idle: few connections, which stay where they are."""
        return self.number < FEW and not self.follow

    @property
    def number(self) -> int:
        """The connections, in steps of 10 %; `MOST` means that requests are balanced one by one."""
        inverse = self.inverse_sum / self.weight
        if inverse * MOST <= 1.0:
            return MOST
        return max(1, round(math.exp(_STEP * round(-math.log(inverse) / _STEP))))

    @property
    def proven(self) -> int:
        """The connections that the windows prove: the number if `_SUSPECTED` were assumed first.

        The prior of `number` is the safe side for sizes, and a single even window bears it out.
        """
        inverse = (max(0.0, self.inverse_sum) + _PRIOR_WEIGHT / _SUSPECTED) / self.weight
        return max(1, math.floor(1.0 / inverse))

    def due(self, now_s: float) -> bool:
        """Return whether a window has passed since the last one that counts."""
        return self.last_s is None or now_s - self.last_s >= EVERY_S

    def watching(self, ready: Collection[str]) -> Connections:
        """Return the record with the replicas that are ready now.

        Those of a replica that ends are spread evenly over the others; a new one has none.
        """
        if len(ready) == len(self.expected) and all(uid in self.expected for uid in ready):
            return self
        known = {uid: self.expected.get(uid, 0.0) for uid in ready}
        lost = (1.0 - sum(known.values())) / max(1, len(known))
        return replace(self, expected={uid: share + lost for uid, share in known.items()})

    def observe(
        self,
        now_s: float,
        arrived: NDArray[np.float64],
        shares: NDArray[np.float64] | None = None,
        *,
        spread: bool = True,
    ) -> Connections:
        """Return the record with the requests of each replica in the last window, [replicas].

        `shares` are those expected of kept connections. Where these are `spread` by evictions, what
        explains the requests better counts, they or even shares; else even shares. Those that new
        replicas lack, which the load has not followed, are no sign of few connections.
        """
        replicas = len(arrived)
        mean = float(arrived.mean()) if replicas else 0.0
        fade = 1.0 if self.last_s is None else 0.5 ** ((now_s - self.last_s) / HALF_LIFE_S)
        if replicas < 2 or mean <= 0.0:
            return replace(self, last_s=now_s)
        inverse = (float(arrived.var(ddof=1)) - mean) / (mean * mean * replicas)
        record = self if shares is None else self._after_window(_followed(arrived, shares))
        if shares is not None and spread:
            kept = _inverse(arrived, shares)
            lacking = bool((shares < _LACKING * shares.mean()).any())
            inverse = kept if lacking and not record.follow else min(inverse, kept)
            if not math.isfinite(inverse):  # a single replica had any choice: that says nothing
                return replace(record, last_s=now_s)
        known = mean / (mean + replicas)
        weight = (replicas - 1) * known * known
        return replace(
            record,
            weight=fade * self.weight + weight,
            inverse_sum=fade * self.inverse_sum + weight * min(1.0, inverse),
            last_s=now_s,
        )

    def _after_window(self, followed: float | None) -> Connections:
        """Return the record after a window that shows whether the load follows new replicas."""
        if followed is None or _KEPT <= followed <= _FOLLOWED:
            return self
        if followed < _KEPT:
            return replace(self, follow=False)
        even = {uid: 1.0 / len(self.expected) for uid in self.expected}
        return replace(self, follow=True, expected=even)


def _followed(arrived: NDArray[np.float64], shares: NDArray[np.float64]) -> float | None:
    """Return the share of their lacking requests that replicas got; None: too few lack to tell.

    Worked: the second of two replicas is new, so of 100 requests it lacks 50; it got 40, so 0.8.
    """
    total, known = float(arrived.sum()), float(shares.sum())
    if known <= 0.0:
        return None
    kept = total * shares / known
    lacking = total / len(shares) - kept
    few = lacking > 0.0
    lacked = float(lacking[few].sum())
    return float((arrived - kept)[few].sum()) / lacked if lacked >= _FEWEST_LACKING else None


def _inverse(arrived: NDArray[np.float64], shares: NDArray[np.float64]) -> float:
    """Return 1 / C where each connection is at each replica with the probability of its share.

    Of a known total its requests have the variance (1 - share) (mean + mean^2 / (share C)). Minus
    infinity if all connections must be where the requests are.
    """
    total, known = float(arrived.sum()), float(shares.sum())
    if known <= 0.0:
        return math.inf
    means = total * shares / known
    elsewhere = 1.0 - shares / known
    squares = float(((arrived - means) ** 2 - means * elsewhere).sum())
    spread = float((total * means * elsewhere).sum())
    if spread <= 0.0:
        return -math.inf if squares <= 0.0 else math.inf
    return squares / spread
