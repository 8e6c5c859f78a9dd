"""Measures arrivals, answers and saturation of the ready replicas over a few seconds.

All rates are of the same short window, so that arrivals and answers can be compared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headroom.scaling.serving_model import ReplicaCost
from headroom.scaling.values.policy import Policy
from headroom.scaling.values.signals import Signals
from headroom.scaling.windows.sliding_windows import Windows

FULL, ALL = 0.9, 0.98
"""Replicas that answer the first share of their throughput with full batches are saturated, and no
more than the second can be expected of any."""
NEAR_FULL_DEVIATIONS = 2.0
"""Standard deviations of the answers, at least, where the ceiling leaves less than `FULL` does."""


def works_near_full(policy: Policy) -> bool:
    """Return whether the ceiling leaves so little that replicas are often full and queues stay."""
    return policy.utilization_ceiling > 2.0 * FULL - 1.0 + _ROUNDING


_ROUNDING = 1e-9


def saturated_answers(policy: Policy, cost: ReplicaCost, ready: int, window_s: float) -> float:
    """Return the answers in a window from which on replicas are saturated; infinity: it is short.

    They are more than half of what the ceiling leaves, and more than chance. A false alarm adds
    half of the ready replicas, so the more they are, the rarer it may be: sqrt(2 ln ready)
    deviations, which chance exceeds about once in `ready` windows. Worked: 24 replicas of 1/s at a
    ceiling of 0.8 answer 154 in 8 s, give or take 12, and 0.9 of what they can, 173, every few
    minutes. They are saturated from 186 on; three replicas of 6/s from 131 on, 0.91 of 144. Where
    windows are stretched to a request, few end, and only a queue shows it.
    """
    if policy.pace > 1.0:
        return math.inf
    most = cost.full_batch_rps * ready * window_s
    usual = policy.utilization_ceiling * most
    full = max(FULL * most, (usual + most) / 2.0)
    deviations = math.sqrt(2.0 * math.log(max(1, ready)))
    if works_near_full(policy):
        deviations = max(NEAR_FULL_DEVIATIONS, deviations)
    least = max(full, usual + deviations * math.sqrt(usual))
    return least if least <= max(full, ALL * most) else math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """Requests of one short window."""

    window_s: float
    arrived: float
    answered: float
    missed: float
    in_flight: int
    """Now."""
    ready: int
    full_rps: float
    """Throughput of one replica with full batches."""
    standing_queue: float
    queue_bound: float
    """Bound on the queue of all ready replicas together."""
    busy: bool
    """Whether the ready replicas answer nearly all that they can at the present cost."""

    @property
    def arrival_rps(self) -> float:
        """Requests that arrived, per second."""
        return self.arrived / self.window_s

    @property
    def answered_rps(self) -> float:
        """Requests that were answered, per second."""
        return self.answered / self.window_s

    @property
    def busy_replicas(self) -> float:
        """Number of replicas with full batches that answer as much; NaN where not known."""
        known = 0.0 < self.full_rps < math.inf
        return self.answered_rps / self.full_rps if known else math.nan

    @property
    def saturated(self) -> bool:
        """Whether the ready replicas work at their limit: full batches, or a standing queue."""
        return self.ready > 0 and (self.busy or self.standing_queue > self.queue_bound)

    @property
    def noise(self) -> float:
        """Standard deviation of the requests that arrive in the window, at least 1 (Poisson)."""
        return max(1.0, math.sqrt(self.arrived))


def measure_throughput(
    policy: Policy, windows: Windows, signals: Signals, cost: ReplicaCost, ready: int, now_s: float
) -> Throughput | None:
    """Return the throughput of twice the shortest burst window; None until it is covered."""
    window_s = 2 * policy.shortest_window_s
    in_flight, queue = signals.in_flight, signals.standing_queue
    if windows.watched_s(now_s, window_s) < window_s or not in_flight.fresh:
        return None
    total = windows.flow(window_s)
    depth = max(cost.max_batch, policy.queue_depth or 0)  # fewer wait while a batch executes
    standing, bound = queue.value or 0.0, float(depth * ready)
    if standing > bound:
        standing = min(standing, _waited_for(windows, window_s))
    return Throughput(
        window_s=window_s,
        arrived=total.arrivals,
        answered=total.ended - total.missed,
        missed=total.missed,
        in_flight=int(in_flight.value or 0.0),
        ready=ready,
        full_rps=cost.full_batch_rps,
        standing_queue=standing,
        queue_bound=bound,
        busy=works_at_limit(policy, windows, cost, ready, window_s, now_s),
    )


def works_at_limit(
    policy: Policy,
    windows: Windows,
    cost: ReplicaCost,
    ready: int,
    window_s: float,
    now_s: float,
    *,
    without: Sequence[int] = (),
) -> bool:
    """Return whether replicas are saturated by their answers in the shortest window that shows it.

    Answers of the columns `without` are left out: `ready` replicas gave the others.
    """
    while (least := saturated_answers(policy, cost, ready, window_s)) == math.inf:
        window_s *= 2.0
        if window_s > policy.stable_window_s or windows.watched_s(now_s, window_s) < window_s:
            return False
    total = windows.flow(window_s)
    answered = total.ended - total.missed
    if without:
        answered -= float(windows.ended(window_s)[without].sum())
    return answered >= least


def _waited_for(windows: Windows, window_s: float) -> float:
    """Return the mean number of requests in the system, by latencies of answers (Little's law).

    A gauge may count requests that have ended. Worked: 250/s are answered after 0.1 s on average,
    so 25 are there, not 90. No bound without answers, or if some took longer than the last bound.
    """
    latency = windows.total(window_s).latency
    if not len(latency) or latency[-1] <= 0.0:
        return math.inf
    added = np.diff(latency, prepend=0.0)
    taken_s = sum(n * upper_s for n, upper_s in zip(added, windows.bounds_s, strict=True) if n > 0)
    return float(taken_s) / window_s
