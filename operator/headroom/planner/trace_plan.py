"""The fewest GPUs for a recorded load: replicas per window, at once, ahead of time, and static.

A window of a minute suits most loads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headroom.planner.demand import Service
from headroom.planner.errors import positive, require
from headroom.planner.replicas import carried_rps, needs

Rates = NDArray[np.float64]
Counts = NDArray[np.int64]
MOST_RPS = 1e8
"""Every number of replicas up to the need at the peak is computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TracePlan:
    """Replicas and GPU-hours of a load, window by window."""

    window_s: float
    gpus_per_replica: int
    rates_rps: Rates
    """[windows]"""
    needed: Counts
    """Replicas that meet target and ceiling in each window, [windows]; at least minReplicas."""
    needed_ahead: Counts
    """The same, started a cold start before they are needed, [windows]."""
    gpu_hours: float
    """GPU-hours of `needed`: replicas that start and stop at once. No autoscaler can use fewer."""
    gpu_hours_ahead: float
    """GPU-hours of `needed_ahead`: all arrivals known in advance, cold starts included."""
    gpu_hours_static: float
    """GPU-hours of the peak replicas, all the time."""

    @property
    def peak(self) -> int:
        """Return the most replicas at once."""
        return int(self.needed.max())

    @property
    def peak_gpus(self) -> int:
        """Return the GPUs at the peak: with fewer the target is missed there."""
        return self.peak * self.gpus_per_replica

    @property
    def mean(self) -> float:
        """Return the mean number of replicas, if they started at once."""
        return float(self.needed.mean())

    @property
    def saved_ratio(self) -> float:
        """Return the share of the static plan's GPU-hours that scaling can save."""
        return 1.0 - self.gpu_hours_ahead / self.gpu_hours_static


def plan_trace(
    service: Service,
    rates_rps: Sequence[float] | Rates,
    window_s: float,
    *,
    cold_start_s: float = 0.0,
    min_replicas: int = 0,
) -> TracePlan:
    """Size each window as for a constant rate, then look a cold start ahead.

    Raises ImpossiblePlan for a trace without windows or a target that cannot be met.
    """
    rates = checked_rates(rates_rps, window_s)
    require(
        cold_start_s >= 0, "the cold start must be at least 0 s", f"{cold_start_s:g}", "Try 60s"
    )
    require(min_replicas >= 0, "minReplicas must be at least 0", min_replicas, "Give 0 or more")
    needed = np.maximum(needed_replicas(service, rates), min_replicas)
    needed_ahead = ahead(needed, int(np.ceil(cold_start_s / window_s - 1e-9)))
    hours = window_s / 3600.0 * service.gpus_per_replica
    return TracePlan(
        window_s=window_s,
        gpus_per_replica=service.gpus_per_replica,
        rates_rps=rates,
        needed=needed,
        needed_ahead=needed_ahead,
        gpu_hours=float(needed.sum()) * hours,
        gpu_hours_ahead=float(needed_ahead.sum()) * hours,
        gpu_hours_static=float(needed.max() * len(needed)) * hours,
    )


def checked_rates(rates_rps: Sequence[float] | Rates, window_s: float) -> Rates:
    """Return the rates as an array, [windows]; raise ImpossiblePlan for an invalid load."""
    positive("the window", window_s, "Give seconds per window, such as 60")
    rates = np.asarray(rates_rps, dtype=np.float64)
    require(
        rates.size > 0, "a load must have at least one window", rates.size, "Give a longer trace"
    )
    wrong = ~(np.isfinite(rates) & (rates >= 0))
    if wrong.any():
        index = int(np.argmax(wrong))
        require(
            False,
            "rates must be at least 0",
            f"{rates[index]:g} in window {index}",
            "Correct the trace",
        )
    most_rps = float(rates.max())
    require(most_rps > 0, "a load must have requests", "none", "Choose another window")
    require(
        most_rps <= MOST_RPS,
        f"a load must have at most {MOST_RPS:.0e} req/s",
        f"{most_rps:g}",
        "Correct the trace or its scale",
    )
    return rates


def needed_replicas(service: Service, rates: Rates) -> Counts:
    """Replicas per window, [windows]; 0 where nothing arrives.

    Capacity does not fall with the number of replicas, so it is tabulated once and windows are
    looked up in the table.
    """
    by_latency, by_utilization = needs(service, float(rates.max()))
    most = max(by_latency or 1, by_utilization)
    carried = np.array([0.0] + [carried_rps(service, n) for n in range(1, most + 1)])
    carried[-1] = np.inf  # `most` is what the highest rate needs, also after rounding
    wanted = rates * (1.0 + service.headroom) * (1.0 - 1e-9)
    return np.searchsorted(np.maximum.accumulate(carried), wanted, side="left").astype(np.int64)


def ahead(needed: Counts, windows: int) -> Counts:
    """Return the largest need from each window to `windows` later, [windows].

    Worked: needs 1 1 1 3 1 with a cold start of two windows: 1 3 3 3 1.
    """
    needed_ahead = needed.copy()
    for shift in range(1, min(windows, len(needed) - 1) + 1):
        needed_ahead[:-shift] = np.maximum(needed_ahead[:-shift], needed[shift:])
    return needed_ahead
