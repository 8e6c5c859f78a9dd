"""Bounds that no real autoscaler can reach, because they read the arrivals instead of metrics.

- `oracle`: the instantaneous oracle, N(t) = ceil(rate(t) / capacity). It requests the need of each
  moment: its cost is the integral of the desired replicas, and only a plant without cold starts
  shows its attainment. Source: llm-d-autoscaling issue 1499.
- `clairvoyant`: knows all arrivals, and pays for cold starts.
- `ideal-reactive`: knows the true rate of the last seconds without delay, but not the future.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from headroom.simulator.autoscaler import ScaleRequest, View
from headroom.simulator.autoscalers.peer import Peer, limit_rps, needed, window_rates
from headroom.simulator.cold_start import ColdStart

NORMAL_P99 = 2.3263


def late_start_s(cold_start: ColdStart) -> float:
    """Return a duration that at least 99 % of cold starts do not exceed.

    The sum of the phases' p99 (lognormal: median x spread^2.33) bounds the p99 of their sum.
    Worked: one phase of 60 s with spread 1.2: 60 x 1.2^2.3263 = 91.7 s; without spread 60 s.
    """
    return float(sum(phase.median_s * phase.spread**NORMAL_P99 for phase in cold_start.phases))


@dataclass(kw_only=True)
class Oracle(Peer):
    """ceil(rate / capacity) of the window that starts now."""

    kind: ClassVar[str] = "oracle"

    period_s: float = 1.0
    scrape_s: float = math.inf
    window_s: int = 10
    _plan: NDArray[np.int64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Raise ValueError for a knob that is out of its range."""
        super().__post_init__()
        rates = window_rates(self.truth.arrivals_per_s, self.window_s)
        self._plan = needed(rates, self.truth.capacity_rps)

    def evaluate(self, view: View) -> ScaleRequest:
        """Return the need of this moment; at the end of the run that of the last window."""
        return ScaleRequest(replicas=_at(self._plan, view.now_s / self.window_s), reason="Oracle")


@dataclass(kw_only=True)
class Clairvoyant(Peer):
    """The largest need within one cold start from now, all arrivals known.

    A replica is created one late cold start before the first window that needs it and removed
    after the last: desired = max need(s) over s in [t, t + L]. The same rule covers gaps. Between
    two peaks at distance g, a replica costs g if kept, and L if removed and created again (it is
    charged from its creation). For g < L the next peak is in sight when the first ends, so the
    replica is kept; for g >= L it is removed and returns in time. need() is `needed` of `peer.py`
    with the service's own utilization ceiling; `extra_lead_s` is the time that provisioning a node
    adds to a cold start.
    """

    kind: ClassVar[str] = "clairvoyant"
    may_be_zero: ClassVar[frozenset[str]] = frozenset({"extra_lead_s"})

    period_s: float = 5.0
    scrape_s: float = math.inf
    window_s: int = 20
    extra_lead_s: float = 0.0
    _needs: NDArray[np.int64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Raise ValueError for a knob that is out of its range."""
        super().__post_init__()
        rates = window_rates(self.truth.arrivals_per_s, self.window_s)
        self._needs = needed(rates, limit_rps(self.truth, self.policy.utilization_ceiling))

    def evaluate(self, view: View) -> ScaleRequest:
        """Return the largest need from now until a replica requested at the next tick is ready."""
        if not len(self._needs):
            return ScaleRequest(replicas=0, reason="Clairvoyant")
        lead_s = late_start_s(self.truth.spec.cold_start) + self.extra_lead_s + self.period_s
        first = min(int(view.now_s / self.window_s), len(self._needs) - 1)
        last = math.ceil((view.now_s + lead_s) / self.window_s)
        ahead = self._needs[first : max(last, first + 1)]
        return ScaleRequest(replicas=int(ahead.max()), reason="Clairvoyant")


@dataclass(kw_only=True)
class IdealReactive(Peer):
    """The true trailing rate under a ceiling; scale-down to the largest need of the hold."""

    kind: ClassVar[str] = "ideal-reactive"
    may_be_zero: ClassVar[frozenset[str]] = frozenset({"hold_s"})

    period_s: float = 2.0
    scrape_s: float = math.inf
    trailing_s: float = 10.0
    ceiling: float = 0.7
    hold_s: float = 300.0
    _arrived: NDArray[np.float64] = field(init=False, repr=False)
    _held: list[tuple[float, int]] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        """Raise ValueError for a knob that is out of its range."""
        super().__post_init__()
        self._arrived = np.concatenate(([0.0], np.cumsum(self.truth.arrivals_per_s)))

    def evaluate(self, view: View) -> ScaleRequest:
        """Return the need of the last seconds, or the largest need within the hold."""
        since_s = max(0.0, view.now_s - self.trailing_s)
        if view.now_s <= since_s:
            return ScaleRequest(replicas=view.replicas, reason="Beginning")
        rate = (self._until(view.now_s) - self._until(since_s)) / (view.now_s - since_s)
        wanted = int(needed(np.array([rate]), limit_rps(self.truth, self.ceiling))[0])
        # Descending numbers only: an older one exceeded by a later one can never be the largest.
        kept = [
            (at, count)
            for at, count in self._held
            if at > view.now_s - self.hold_s and count > wanted
        ]
        self._held = [*kept, (view.now_s, wanted)]
        return ScaleRequest(replicas=self._held[0][1], reason="IdealReactive")

    def _until(self, time_s: float) -> float:
        return float(self._arrived[min(int(time_s), len(self._arrived) - 1)])


def _at(plan: NDArray[np.int64], position: float) -> int:
    return int(plan[min(int(position), len(plan) - 1)]) if len(plan) else 0
