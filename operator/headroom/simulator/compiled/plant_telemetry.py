"""Compiled: sums what a replica's telemetry shows, and the ground truth's histogram."""

from __future__ import annotations

import math

from headroom.simulator.compiled.compiling import compiled
from headroom.simulator.compiled.plant_layout import (
    FINE_BUCKETS,
    FINE_LOG,
    FINE_START_S,
    Column,
    Floats,
    Quantity,
)
from headroom.simulator.compiled.plant_state import PlantState


@compiled
def touch(p: PlantState, row: int, now_s: float) -> None:
    """Sum the integrals of a row up to now."""
    seconds = now_s - p.touched_s[row]
    if seconds > 0.0:
        counters = p.counters[row]
        counters[Column.WAITING_S] += p.waiting[row] * seconds
        counters[Column.IN_FLIGHT_S] += p.in_flight[row] * seconds
        if p.busy_slots[row] > 0:
            counters[Column.BUSY_S] += seconds
            counters[Column.SLOTS_BUSY_S] += p.busy_slots[row] * seconds
        p.quantities[Quantity.IN_SYSTEM_S] += p.in_flight[row] * seconds
        p.touched_s[row] = now_s


@compiled
def count_latency(p: PlantState, latency_s: float) -> None:
    """Add an answer to the ground truth's histograms."""
    fine = int(math.log(max(latency_s, FINE_START_S) / FINE_START_S) / FINE_LOG)
    fine = min(fine, FINE_BUCKETS - 1)
    p.latency[fine] += 1
    p.recent[fine] += 1


_GRID_LOG = math.log(1.15)


@compiled
def bucket_of(bounds_s: Floats, latency_s: float) -> int:
    """Return the first bucket whose bound is not below; the grid is 0.001 x 1.15**k, rounded."""
    last = len(bounds_s) - 1
    index = math.ceil(math.log(max(latency_s, 1e-9) / 0.001) / _GRID_LOG)
    index = min(max(index, 0), last)
    while index > 0 and bounds_s[index - 1] >= latency_s:
        index -= 1
    while index < last and bounds_s[index] < latency_s:
        index += 1
    return index
