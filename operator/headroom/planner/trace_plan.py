"""The fewest GPUs for a recorded load: replicas per window, at once, ahead of time, and static.

Windows are shorter than what matters and longer than a cold start's noise: a minute suits most.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TracePlan:
    """What a load takes, window by window."""

    window_s: float
    gpus_per_replica: int
    rates_rps: Rates
    """[windows]"""
    needed: Counts
    """Replicas that keep promise and ceiling in each window, [windows]; at least the floor."""
    held: Counts
    """The same, begun a cold start before they are needed, [windows]."""
    gpu_hours: float
    """Of `needed`: replicas that come and go at once. No autoscaler does better."""
    gpu_hours_ahead: float
    """Of `held`: all arrivals known in advance, the cold start paid."""
    gpu_hours_static: float
    """Of the peak, all the time."""

    @property
    def peak(self) -> int:
        """Most replicas at once."""
        return int(self.needed.max())

    @property
    def peak_gpus(self) -> int:
        """GPUs of the most replicas: a pool with fewer breaks the promise at the peak."""
        return self.peak * self.gpus_per_replica

    @property
    def mean(self) -> float:
        """Replicas on average, were they there at once."""
        return float(self.needed.mean())

    @property
    def saved_ratio(self) -> float:
        """Share of the static plan's GPU-hours that scaling could save, the cold start paid."""
        return 1.0 - self.gpu_hours_ahead / self.gpu_hours_static


def plan_trace(
    service: Service,
    rates_rps: Sequence[float] | Rates,
    window_s: float,
    *,
    cold_start_s: float = 0.0,
    floor: int = 0,
) -> TracePlan:
    """Size each window by itself as for a constant rate, then look a cold start ahead.

    Raises ImpossiblePlan for a trace without windows or a promise that cannot be kept.
    """
    rates = checked_rates(rates_rps, window_s)
    require(cold_start_s >= 0, "a cold start takes at least 0 s", f"{cold_start_s:g}", "try 60s")
    require(floor >= 0, "the floor is at least 0 replicas", floor, "give minReplicas")
    needed = np.maximum(needed_replicas(service, rates), floor)
    held = ahead(needed, int(np.ceil(cold_start_s / window_s - 1e-9)))
    hours = window_s / 3600.0 * service.gpus_per_replica
    return TracePlan(
        window_s=window_s,
        gpus_per_replica=service.gpus_per_replica,
        rates_rps=rates,
        needed=needed,
        held=held,
        gpu_hours=float(needed.sum()) * hours,
        gpu_hours_ahead=float(held.sum()) * hours,
        gpu_hours_static=float(needed.max() * len(needed)) * hours,
    )


def checked_rates(rates_rps: Sequence[float] | Rates, window_s: float) -> Rates:
    """Return the rates as an array, [windows]; raise ImpossiblePlan for what is no load."""
    positive("a window's length", window_s, "give seconds per window, such as 60")
    rates = np.asarray(rates_rps, dtype=np.float64)
    require(rates.size > 0, "a load has at least one window", rates.size, "give a longer trace")
    wrong = ~(np.isfinite(rates) & (rates >= 0))
    if wrong.any():
        index = int(np.argmax(wrong))
        require(False, "rates are at least 0", f"{rates[index]:g} in window {index}", "mend it")
    require(bool(rates.max() > 0), "a load has requests", "none", "choose another window")
    return rates


def needed_replicas(service: Service, rates: Rates) -> Counts:
    """Replicas per window, [windows]; 0 where nothing arrives.

    What each number of replicas carries does not fall with the number, so it is tabled once and
    windows are looked up in it.
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
    held = needed.copy()
    for shift in range(1, min(windows, len(needed) - 1) + 1):
        held[:-shift] = np.maximum(held[:-shift], needed[shift:])
    return held
