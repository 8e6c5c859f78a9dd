"""The tail latency of a fleet with slow replicas behind routing that does not see load.

Each replica gets the same share of the requests, so the share of late requests is the mean of the
replicas' shares. One more replica takes load off the slow ones and makes them a smaller part of the
fleet: there are enough when all together miss no more than the target percentile allows. Worked: 5
% may be late, one of ten replicas is slow and the others are never late: half of the requests of
the slow one may be late. In a fleet of twenty all of them may be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from headroom.scaling.frozen import cached_property
from headroom.scaling.latency import sticky_connections
from headroom.scaling.latency.load_curve import LoadCurve, execution_percentile
from headroom.scaling.latency.tail_latency import LARGEST_CV, TailLatency
from headroom.scaling.mathematics.bisection import smallest
from headroom.scaling.values.observation import CostModel
from headroom.scaling.values.policy import Routing

_LEVELS = (0.9, 0.95, 0.99)
"""Percentiles in the tables."""
_QUICKEST = 0.05
"""Quantile of the executions: no request is assumed to be answered sooner."""
_HALVINGS = 18
_SHORTEST, _LONGEST = 0.01, 1000.0
"""In full batches: longer latencies count as infinite."""
_DILUTED = 2.0
"""Upper bound of replicas: as many as make the slow ones half of what may be late."""


@dataclass(frozen=True, kw_only=True)
class MixedFleet(TailLatency):
    """The tail latency of replicas of which some are slow; `cost` is that of the mean replica."""

    usual: CostModel
    """Cost of the replicas that are not slow."""
    slow: tuple[tuple[float, int], ...]
    """(times as long as the usual one, replicas), slowest first."""

    def latency_s(self, arrival_rps: float, replicas: int) -> float:
        """Return the percentile in seconds when `replicas` share these arrivals; inf if too few."""
        full_s = self._fast.full_s
        low, high = _SHORTEST * full_s, _LONGEST * full_s
        if not self._carries(arrival_rps, high, replicas):
            return math.inf
        for _ in range(_HALVINGS):
            middle_s = math.sqrt(low * high)
            if self._carries(arrival_rps, middle_s, replicas):
                high = middle_s
            else:
                low = middle_s
        return high

    @property
    def idle_s(self) -> float:
        """The percentile of one request at an idle replica that is not slow."""
        return self._fast.idle_s

    def capacity_rps(self, target_s: float, replicas: int) -> float:
        """Return the highest rate of each of `replicas` at which few enough requests are late."""
        low, high = 0.0, self.usual.full_batch_rps
        for _ in range(_HALVINGS):
            middle_rps = (low + high) / 2
            if self._carries(replicas * middle_rps, target_s, replicas):
                low = middle_rps
            else:
                high = middle_rps
        return low

    def replicas_for(self, arrival_rps: float, target_s: float, margin: float) -> int | None:
        """Return the fewest replicas that carry arrivals x margin; None if usual ones never do.

        At least as many as if none was slow.
        """
        wanted_rps = arrival_rps * margin
        fewest = self._fast.replicas_for(arrival_rps, target_s, margin)
        if not fewest or self._carries(wanted_rps, target_s, fewest):
            return fewest
        among = sum(counted for _, counted in self.slow)
        low, high = fewest, max(fewest, math.ceil(_DILUTED * among / (1.0 - self.percentile)))
        return smallest(low, high, lambda replicas: self._carries(wanted_rps, target_s, replicas))

    def late(self, arrival_rps: float, replicas: int, target_s: float) -> float:
        """Return the share of the requests that take longer than this."""
        share_rps = arrival_rps / replicas
        others, late = replicas, 0.0
        for factor, counted in (*self.slow, (1.0, replicas)):
            among = min(counted, others)
            others -= among
            if among:
                late += among * self._late_at(factor, share_rps, replicas, target_s)
        return late / replicas

    def _late_at(self, factor: float, share_rps: float, replicas: int, target_s: float) -> float:
        """Return the share of late requests at a replica of this speed.

        Between the percentiles of the tables it falls exponentially, below the first one linearly,
        from all requests at the quickest execution. Beyond the last it continues to fall at the
        same rate, so that more load never makes fewer requests late.
        """
        utilization = factor * share_rps / self.usual.full_batch_rps
        if self.routing is Routing.STICKY:
            utilization *= sticky_connections.imbalance(replicas, self.connections, self.unlucky)
        reach = target_s / (factor * self._fast.full_s)
        if utilization >= 1.0 or reach <= self._quickest:
            return 1.0
        latency, late = self._quickest, 1.0
        for level, curve in self._curves(replicas):
            above = curve.latency(utilization)
            if reach < above:
                part = (reach - latency) / (above - latency)
                return 1.0 - level * part if late == 1.0 else late * ((1.0 - level) / late) ** part
            latency, late = above, 1.0 - level
        beyond = (reach - self._quickest) / max(latency - self._quickest, _SHORTEST)
        return math.pow(late, beyond)

    def _curves(self, replicas: int) -> tuple[tuple[float, LoadCurve], ...]:
        known = self._known.get(replicas)
        if known is None:
            known = tuple((level, self._fast.curve(replicas, level)) for level in _LEVELS)
            self._known[replicas] = known
        return known

    @cached_property
    def _known(self) -> dict[int, tuple[tuple[float, LoadCurve], ...]]:
        return {}

    @cached_property
    def _quickest(self) -> float:
        """Over the time of a full batch."""
        cv = min(LARGEST_CV, self.usual.cv)
        return self.usual.batch_s(1) * execution_percentile(cv, _QUICKEST) / self._fast.full_s

    @cached_property
    def _fast(self) -> TailLatency:
        return TailLatency(
            cost=self.usual,
            percentile=self.percentile,
            routing=self.routing,
            connections=self.connections,
        )

    def _carries(self, wanted_rps: float, target_s: float, replicas: int) -> bool:
        return self.late(wanted_rps, replicas, target_s) <= 1.0 - self.percentile + _ROUNDING


_ROUNDING = 1e-9
