"""Fixed numbers of replicas, sized for the busiest window or for the mean, as in a manual setup.

`static-peak` takes the busiest aligned minute of the run, `static-mean` the mean of the whole run,
each under the service's utilization ceiling and its latency capacity, times a margin. Both know
the run's arrivals in advance, as a capacity plan assumes to.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from headroom.simulator.autoscaler import ScaleRequest, View
from headroom.simulator.autoscalers.peer import Peer, limit_rps, needed, window_rates


@dataclass(kw_only=True)
class Static(Peer):
    """A constant number of replicas."""

    period_s: float = 60.0
    scrape_s: float = math.inf
    margin: float = 1.0
    """Planned rate over the known rate."""

    def evaluate(self, view: View) -> ScaleRequest:
        """Return the planned number."""
        rates = np.array([self.margin * self._rate_rps(self.truth.arrivals_per_s)])
        limit = limit_rps(self.truth, self.policy.utilization_ceiling)
        return ScaleRequest(replicas=max(1, int(needed(rates, limit)[0])), reason="Static")

    @abstractmethod
    def _rate_rps(self, arrivals_per_s: NDArray[np.float64]) -> float:
        """Return the rate to plan for."""


@dataclass(kw_only=True)
class StaticPeak(Static):
    """Sized for the busiest window."""

    kind: ClassVar[str] = "static-peak"

    window_s: int = 60

    def _rate_rps(self, arrivals_per_s: NDArray[np.float64]) -> float:
        return float(window_rates(arrivals_per_s, self.window_s).max(initial=0.0))


@dataclass(kw_only=True)
class StaticMean(Static):
    """Sized for the mean of the run."""

    kind: ClassVar[str] = "static-mean"

    def _rate_rps(self, arrivals_per_s: NDArray[np.float64]) -> float:
        return float(arrivals_per_s.mean()) if len(arrivals_per_s) else 0.0
