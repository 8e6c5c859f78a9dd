"""NVIDIA Dynamo's planner: a predictive throughput floor every 180 s, a latency loop every 5 s.

Source: ai-dynamo/dynamo, components/src/dynamo/planner/core/{throughput_scaling,load_scaling}.py
and config/. Throughput: the next interval's requests, by a local-linear-trend Kalman filter
(q_level 1, q_trend 0.1, r 10, the last value until 5 observations), over the engine's profiled
rate within the SLA; the result is a lower bound only. Load: one up if *every* engine's estimated
latency is above the SLA, one down only if each, with its load x N / (N - 1), stays within 0.8 of
what the SLA leaves and its work still fits. It does nothing while scaling is in progress or an
engine did not report, and a new lower bound takes effect at the next active tick of the load loop.

The profile is perfect: `capacity_rps` of the ground truth, and the server's true cost. Mapping to a
server that answers whole requests: queued prefill tokens are waiting requests, the tokens of one
iteration are one batch, KV in use is requests in flight and its capacity the places. Requests are
counted on arrival, so that back-pressure does not hide load from it.

Choice: the predictor; ARIMA is the older planner's default, and needs a separate library.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from headroom.simulator.autoscaler import ScaleRequest, View
from headroom.simulator.autoscalers.peer import Peer, of_ready, ready_pods, round_up
from headroom.simulator.compiled.plant_layout import Column

TRANSITION = np.array([[1.0, 1.0], [0.0, 1.0]])


@dataclass(kw_only=True)
class TrendFilter:
    """A Kalman filter of level and trend that predicts one step ahead."""

    q_level: float = 1.0
    q_trend: float = 0.1
    r: float = 10.0
    min_observations: int = 5
    _state: list[float] = field(default_factory=list, init=False)
    _covariance: np.ndarray[tuple[int, ...], np.dtype[np.float64]] = field(
        default_factory=lambda: 1000.0 * np.eye(2), init=False
    )
    _seen: int = field(default=0, init=False)
    _last: float = field(default=0.0, init=False)

    def observe(self, value: float) -> None:
        """Add one interval's value."""
        self._seen, self._last = self._seen + 1, value
        if not self._state:
            self._state = [value, 0.0]
            return
        state = TRANSITION @ np.array(self._state)
        spread = TRANSITION @ self._covariance @ TRANSITION.T + np.diag(
            [self.q_level, self.q_trend]
        )
        gain = spread[:, 0] / (spread[0, 0] + self.r)
        self._state = list(state + gain * (value - state[0]))
        self._covariance = spread - np.outer(gain, spread[0])

    def next(self) -> float:
        """Predict the next interval, at least 0."""
        if self._seen < self.min_observations:
            return self._last
        return max(0.0, self._state[0] + self._state[1])


@dataclass(kw_only=True)
class Dynamo(Peer):
    """max(load decision, throughput floor); one replica at a time unless the floor is higher."""

    kind: ClassVar[str] = "dynamo"

    period_s: float = 5.0
    """The load loop's interval."""
    scrape_s: float = 5.0
    throughput_interval_s: float = 180.0
    profile_ratio: float = 1.0
    """Engine rate used by the throughput loop, as a ratio of the profile's."""
    down_sensitivity: float = 0.8
    _filter: TrendFilter = field(default_factory=TrendFilter, init=False, repr=False)
    _began_s: float | None = field(default=None, init=False, repr=False)
    _counted_s: float = field(default=0.0, init=False, repr=False)
    _requests: float = field(default=0.0, init=False, repr=False)
    _floor: int = field(default=1, init=False, repr=False)

    def evaluate(self, view: View) -> ScaleRequest:
        """Return the load loop's decision above the throughput loop's floor."""
        self._throughput(view)
        ready = ready_pods(view)
        waiting = of_ready(view.metrics.instant(Column.WAITING), view)
        running = of_ready(view.metrics.instant(Column.RUNNING), view)
        if len(ready) != view.replicas:
            return ScaleRequest(replicas=view.replicas, reason="scaling_in_progress")
        if not waiting:
            return ScaleRequest(replicas=view.replicas, reason="no_fpm_data")
        if len(waiting) != len(ready):
            return ScaleRequest(replicas=view.replicas, reason="worker_count_mismatch")
        decided = self._load([(waiting[uid], running[uid]) for uid in ready])
        reason = "load" if decided >= self._floor else "throughput_lower_bound"
        return ScaleRequest(replicas=max(decided, self._floor), reason=reason)

    def estimate_s(self, queued: float) -> float:
        """Return the profile's latency of a request behind `queued` others on an idle engine."""
        server = self.truth.spec.server
        full, rest = divmod(queued + 1, self.places)
        tail = server.execution_s(max(1.0, rest / server.slots)) if rest > 0 else 0.0
        return full * server.execution_s(server.max_batch) + tail

    def _throughput(self, view: View) -> None:
        if self._began_s is None:
            self._began_s = self._counted_s = view.now_s
            return
        # The shortest window with two scrapes in it, so that the rate of a new pod is
        # not extrapolated.
        rates = view.metrics.rate(Column.ARRIVALS, view.now_s, 2 * self.scrape_s)
        self._requests += sum(rates.values()) * (view.now_s - self._counted_s)
        self._counted_s = view.now_s
        elapsed_s = view.now_s - self._began_s
        if elapsed_s < self.throughput_interval_s:
            return
        self._filter.observe(self._requests)
        demand_rps = self._filter.next() / elapsed_s
        self._began_s, self._requests = view.now_s, 0.0
        self._floor = max(1, round_up(demand_rps / (self.profile_ratio * self.truth.capacity_rps)))

    def _load(self, engines: list[tuple[float, float]]) -> int:
        count, target_s = len(engines), self.policy.latency_target_s
        if all(self.estimate_s(waiting) > target_s for waiting, _ in engines):
            return count + 1
        if count == 1:
            return 1
        more = count / (count - 1)
        return count - 1 if all(self._survives(*engine, more) for engine in engines) else count

    def _survives(self, waiting: float, running: float, more: float) -> bool:
        own_s = self.estimate_s(0.0)
        budget_s = (self.policy.latency_target_s - own_s) * self.down_sensitivity
        added_s = self.estimate_s(math.floor(waiting * more)) - own_s
        return 0 < budget_s > added_s and (waiting + running) * more < self.places
