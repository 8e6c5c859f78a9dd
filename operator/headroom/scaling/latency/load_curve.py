"""A percentile of latency against utilization, in both directions: points, and a line beyond them.

Between the points and above the last, latency is linear in 1 / (1 - utilization), as it is for
every queue under heavy traffic.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from statistics import NormalDist


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadCurve:
    """Latency at each of `stretches`, neither ever falling; the first stretch is 1 (idle)."""

    stretches: tuple[float, ...]
    """1 / (1 - utilization)."""
    latencies: tuple[float, ...]
    slope: float
    """Latency per stretch above the last."""

    def latency(self, utilization: float) -> float:
        """Return the latency at this utilization; inf from 1 on."""
        if utilization >= 1.0:
            return math.inf
        stretch = 1.0 / (1.0 - utilization)
        above = bisect_right(self.stretches, stretch)
        if above == len(self.stretches):
            return self.latencies[-1] + self.slope * (stretch - self.stretches[-1])
        low, high = self.stretches[above - 1], self.stretches[above]
        part = (stretch - low) / (high - low)
        return self.latencies[above - 1] + part * (
            self.latencies[above] - self.latencies[above - 1]
        )

    def utilization(self, latency: float) -> float:
        """Return the highest utilization with at most this latency; 0 if an idle one exceeds it."""
        if latency < self.latencies[0]:
            return 0.0
        above = bisect_right(self.latencies, latency)
        if above == len(self.latencies):
            if self.slope <= 0.0:
                return 1.0
            stretch = self.stretches[-1] + (latency - self.latencies[-1]) / self.slope
        else:
            low, high = self.latencies[above - 1], self.latencies[above]
            part = (latency - low) / (high - low)
            stretch = self.stretches[above - 1] + part * (
                self.stretches[above] - self.stretches[above - 1]
            )
        return 1.0 - 1.0 / stretch


def execution_percentile(cv: float, percentile: float) -> float:
    """Return the percentile of a lognormal time of mean 1 and this coefficient of variation.

    Worked: cv 1, 95 %: sigma = sqrt(ln 2) = 0.833, exp(1.645 x 0.833 - 0.347) = 2.78.
    """
    variance = math.log(1.0 + cv * cv)
    deviations = NormalDist().inv_cdf(percentile)
    return math.exp(deviations * math.sqrt(variance) - variance / 2)
