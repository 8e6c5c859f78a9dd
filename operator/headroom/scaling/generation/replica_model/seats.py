"""Wait of a request for a seat, where the engine runs at most S sequences at once.

Up to S the occupancy is that of `occupancy`; beyond, requests wait and seats become free at the
constant rate mu = S / ((O / A) tau(S)). So P(wait > t) = P(n >= S) exp(-(mu - lambda) t), as in
M/M/c.
"""

from __future__ import annotations

import math

import numpy as np

from headroom.scaling.generation.replica_model.occupancy import Occupancy

FAR = 6.0
"""Deviations above the mean, and as many seats: never taken."""


def seat_wait_s(occupancy: Occupancy, seats: int, percentile: float) -> float:
    """Return the percentile of the wait for a seat in seconds; inf where all are always taken."""
    work, arrival_rps = occupancy.work, occupancy.arrival_rps
    if seats >= occupancy.mean + FAR * math.sqrt(occupancy.variance) + FAR:
        return 0.0
    free_rps = seats / (work.steps * occupancy.iteration_s(seats))
    if free_rps <= arrival_rps:
        return math.inf
    all_taken = _all_taken(occupancy, seats, arrival_rps / free_rps)
    late = 1.0 - percentile
    if all_taken <= late:
        return 0.0
    return math.log(all_taken / late) / (free_rps - arrival_rps)


def _all_taken(occupancy: Occupancy, seats: int, load: float) -> float:
    """Return P(n >= S) of the station that forms a queue beyond S, with `load` per step there."""
    if occupancy.mean <= 0.0:
        return 0.0
    numbers = np.arange(1, seats + 1)
    slope_s = occupancy.work.slope_s
    per_s = occupancy.mean * (1.0 - occupancy.growth) / (occupancy.fixed_s + slope_s)
    steps_s = occupancy.fixed_s + slope_s * numbers
    logarithms = np.cumsum(np.log(per_s * steps_s / numbers))
    highest = max(0.0, float(logarithms.max()))
    below = float(np.exp(logarithms[:-1] - highest).sum()) + math.exp(-highest)
    at_all = float(np.exp(logarithms[-1] - highest)) / (1.0 - load)
    return at_all / (below + at_all)
