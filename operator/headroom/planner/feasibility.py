"""The attainment that is feasible with a cold start and a minimum number of replicas.

A replica requested when load rises takes requests a cold start later. Until then, requests above
the present capacity that cannot wait within the target miss it, in whatever order they are served,
unless the rise was known in advance. First come, first served, also delays all requests behind the
backlog: misses are then at least (new rate x cold start) / all requests.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from headroom.planner.demand import Service
from headroom.planner.errors import require, share
from headroom.planner.trace_plan import Rates, checked_rates, needed_replicas
from headroom.scaling.mathematics.bisection import smallest


@dataclass(frozen=True, slots=True, kw_only=True)
class Feasibility:
    """Upper bounds of the attainment without knowledge of the future."""

    min_replicas: int
    cold_start_s: float
    requests: float
    missed_at_least: float
    """Requests above the capacity until their deadline, in any order of service."""
    missed_in_order: float
    """First come, first served: also requests that wait too long behind the backlog."""

    @property
    def attainment_at_most(self) -> float:
        """Return the largest share of requests that can meet the target, in any order."""
        return max(0.0, 1.0 - self.missed_at_least / self.requests)

    @property
    def attainment_in_order(self) -> float:
        """Return the same for requests served in the order of their arrival."""
        return max(0.0, 1.0 - self.missed_in_order / self.requests)


def feasibility(
    service: Service,
    rates_rps: Rates,
    window_s: float,
    *,
    cold_start_s: float,
    min_replicas: int,
) -> Feasibility:
    """Follow a load with a policy that knows each rate at once, and none in advance.

    It requests the replicas for the present rate and removes none; they are ready a cold start
    later, and the capacity until then is that of the replicas before. A backlog ends when the new
    replicas are ready, since a policy may add some for it. So both shares bound every policy
    without foresight.

    Worked: 90 minutes at 100/s, 20 of them at 300/s, replicas of 125/s, minReplicas 1, 180 s,
    target 1 s. Until 1 s before the others are ready 300/s x 179 s arrive, of which 125/s x 180 s
    are answered: 31 200 of 780 000 are not, at most 96.0 % are. In order about 300/s x 180 s =
    54 000 are late: at most 93.1 %.

    Raises ImpossiblePlan for invalid loads, cold starts and minimums.
    """
    rates, step_s = _resampled(checked_rates(rates_rps, window_s), window_s)
    require(
        cold_start_s >= 0, "the cold start must be at least 0 s", f"{cold_start_s:g}", "Try 60s"
    )
    require(min_replicas >= 1, "minReplicas must be at least 1", min_replicas, "Give 1 or more")
    capacity = capacity_rps(service, rates, round(cold_start_s / step_s), min_replicas)
    target_s = math.inf if service.target_s is None else service.target_s
    return Feasibility(
        min_replicas=min_replicas,
        cold_start_s=cold_start_s,
        requests=float(rates.sum()) * step_s,
        missed_at_least=_late_in_any_order(rates, capacity, target_s, step_s),
        missed_in_order=_late_in_order(rates, capacity, target_s, step_s) * step_s,
    )


def min_replicas_for(
    service: Service,
    rates_rps: Rates,
    window_s: float,
    *,
    cold_start_s: float,
    attainment: float,
) -> int:
    """Return the fewest minReplicas with which the attainment is feasible."""
    share("the attainment", attainment, "Give a share of the requests such as 0.99")

    def is_enough(replicas: int) -> bool:
        found = feasibility(
            service, rates_rps, window_s, cold_start_s=cold_start_s, min_replicas=replicas
        )
        return found.attainment_at_most >= attainment

    most = int(needed_replicas(service, checked_rates(rates_rps, window_s)).max())
    return smallest(0, most, is_enough)


def capacity_rps(service: Service, rates: Rates, lag_steps: int, min_replicas: int) -> Rates:
    """Return the full throughput of the ready replicas, [steps]."""
    needed = np.maximum(needed_replicas(service, rates), min_replicas)
    requested = np.maximum.accumulate(needed)
    ready = np.full_like(requested, max(min_replicas, int(needed[0])))
    if lag_steps < len(requested):
        late = requested[: len(requested) - lag_steps]
        ready[lag_steps:] = np.maximum(ready[lag_steps:], late)
    return ready * service.cost.full_batch_rps


def _late_in_any_order(rates: Rates, capacity: Rates, target_s: float, step_s: float) -> float:
    """Return the requests of overloads that exceed the capacity until their deadline.

    Requests whose deadline is after the overload may be answered: the capacity suffices then. The
    capacity never falls, so within the target at most the capacity at its end is answered.
    """
    if math.isinf(target_s):
        return 0.0
    ahead, missed = math.ceil(target_s / step_s - 1e-9), 0.0
    overloaded = np.concatenate(([False], rates > capacity, [False]))
    for begin, end in np.flatnonzero(np.diff(overloaded)).reshape(-1, 2).tolist():
        if end - begin > ahead:
            backlog = np.cumsum(rates[begin : end - ahead] - capacity[begin : end - ahead]) * step_s
            missed += max(0.0, float((backlog - target_s * capacity[begin + ahead : end]).max()))
    return missed


def _late_in_order(rates: Rates, capacity: Rates, target_s: float, step_s: float) -> float:
    """Return the requests per step behind a backlog longer than the target, summed over steps."""
    late, backlog, last = 0.0, 0.0, -2
    for step in np.flatnonzero(rates > capacity).tolist():
        rate, carried = float(rates[step]), float(capacity[step])
        if step != last + 1:
            backlog = 0.0
        backlog, last = backlog + (rate - carried) * step_s, step
        if backlog > target_s * carried:
            late += rate
    return late


def _resampled(rates: Rates, window_s: float) -> tuple[Rates, float]:
    """Return the load in steps of about a second, or of 1/60 window, with the step's length."""
    repeats = max(1, min(60, round(window_s)))
    return np.repeat(rates, repeats), window_s / repeats
