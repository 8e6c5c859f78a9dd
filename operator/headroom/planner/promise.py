"""Which promise is feasible for a measured cold start and a given floor of replicas.

A replica asked for at a rise is useful a cold start later. What comes meanwhile above what stands,
and cannot wait within the target, is not answered in time by anyone who did not know of the rise
before, in whatever order requests are served. First come, first served, also makes everyone late
who waits behind the backlog: misses are then at least (new rate x cold start) / all requests.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from headroom.planner.demand import Service
from headroom.planner.errors import require, share
from headroom.planner.trace_plan import Rates, checked_rates, needed_replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class FeasiblePromise:
    """The best that can be promised without knowing the future."""

    floor: int
    cold_start_s: float
    requests: float
    missed_at_least: float
    """Requests above what stands until their deadline: no order of service can save them."""
    missed_in_order: float
    """First come, first served: also those who wait longer than the target behind the backlog."""

    @property
    def attainment_at_most(self) -> float:
        """Share of the requests that can be in time at all."""
        return max(0.0, 1.0 - self.missed_at_least / self.requests)

    @property
    def attainment_in_order(self) -> float:
        """The same where requests are served in the order of their arrival."""
        return max(0.0, 1.0 - self.missed_in_order / self.requests)


def feasible_promise(
    service: Service,
    rates_rps: Rates,
    window_s: float,
    *,
    cold_start_s: float,
    floor: int,
) -> FeasiblePromise:
    """Follow a load with a policy that knows each rate at once, and none before it comes.

    It asks for what the present rate needs and removes nothing; that stands a cold start later, and
    carries at most its full throughput until then. A backlog is gone once enough stand, for a
    policy may buy for it. So both shares are bounds for every policy without foresight.

    Worked: 90 minutes at 100/s, 20 of them at 300/s, replicas of 125/s, one stands, 180 s, target
    1 s. Until 1 s before the others stand come 300/s x 179 s, of which 125/s x 180 s are answered:
    31 200 of 780 000 are not, at most 96.0 % are. In order about 300/s x 180 s = 54 000 are late:
    at most 93.1 %.

    Raises ImpossiblePlan for loads, cold starts and floors that cannot be.
    """
    rates, step_s = _resampled(checked_rates(rates_rps, window_s), window_s)
    require(cold_start_s >= 0, "a cold start takes at least 0 s", f"{cold_start_s:g}", "try 60s")
    require(floor >= 1, "a floor of at least 1 replica stands", floor, "give minReplicas")
    standing = standing_rps(service, rates, round(cold_start_s / step_s), floor)
    target_s = math.inf if service.target_s is None else service.target_s
    return FeasiblePromise(
        floor=floor,
        cold_start_s=cold_start_s,
        requests=float(rates.sum()) * step_s,
        missed_at_least=_late_in_any_order(rates, standing, target_s, step_s),
        missed_in_order=_late_in_order(rates, standing, target_s, step_s) * step_s,
    )


def floor_for(
    service: Service,
    rates_rps: Rates,
    window_s: float,
    *,
    cold_start_s: float,
    attainment: float,
) -> int:
    """Return the fewest standing replicas with which the attainment is not out of reach."""
    share("the attainment", attainment, "give a share of the requests such as 0.99")
    low, high = 0, int(needed_replicas(service, checked_rates(rates_rps, window_s)).max())
    while high - low > 1:
        middle = (low + high) // 2
        found = feasible_promise(
            service, rates_rps, window_s, cold_start_s=cold_start_s, floor=middle
        )
        low, high = (low, middle) if found.attainment_at_most >= attainment else (middle, high)
    return high


def standing_rps(service: Service, rates: Rates, lag_steps: int, floor: int) -> Rates:
    """Full throughput of the replicas that stand, [steps]."""
    needed = np.maximum(needed_replicas(service, rates), floor)
    asked = np.maximum.accumulate(needed)
    stands = np.full_like(asked, max(floor, int(needed[0])))
    if lag_steps < len(asked):
        late = asked[: len(asked) - lag_steps]
        stands[lag_steps:] = np.maximum(stands[lag_steps:], late)
    return stands * service.cost.full_batch_rps


def _late_in_any_order(rates: Rates, standing: Rates, target_s: float, step_s: float) -> float:
    """Requests that come in an overload and that all that stands until their deadline leaves over.

    Those whose deadline is after the overload may be saved: enough stands then. What stands never
    falls, so that within the target it answers at most what stands at its end.
    """
    if math.isinf(target_s):
        return 0.0
    ahead, missed = math.ceil(target_s / step_s - 1e-9), 0.0
    overloaded = np.concatenate(([False], rates > standing, [False]))
    for begin, end in np.flatnonzero(np.diff(overloaded)).reshape(-1, 2).tolist():
        if end - begin > ahead:
            backlog = np.cumsum(rates[begin : end - ahead] - standing[begin : end - ahead]) * step_s
            missed += max(0.0, float((backlog - target_s * standing[begin + ahead : end]).max()))
    return missed


def _late_in_order(rates: Rates, standing: Rates, target_s: float, step_s: float) -> float:
    """Requests per step that come behind a backlog of more than the target, summed over steps."""
    late, backlog, last = 0.0, 0.0, -2
    for step in np.flatnonzero(rates > standing).tolist():
        rate, carried = float(rates[step]), float(standing[step])
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
