"""Arrivals that are no Poisson process: clumps, self-exciting bursts, recorded instants. Pure."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from decision_study.family.draws import Draws
from headroom.simulator.arrivals import ReplayedArrivals
from headroom.simulator.arrivals.recorded_trace import RequestTrace

Times = NDArray[np.float64]
_GENERATIONS = 60


def listed(times_s: Times, duration_s: float, stream: str) -> ReplayedArrivals:
    """Return these instants as arrivals, the same for every seed."""
    return ReplayedArrivals(
        arrivals_s=np.sort(times_s), start_s=0.0, duration_s=duration_s, scale=1.0, stream=stream
    )


def clumps(
    draws: Draws,
    duration_s: float,
    *,
    size: int,
    every_s: float,
    jitter: float = 0.0,
    background_rps: float = 0.0,
) -> Times:
    """Return `size` requests at one instant every `every_s`, and a few between."""
    count = math.ceil(duration_s / every_s) + 1
    moved = 1.0 + jitter * draws.chance.uniform(-1, 1, count)
    at_s = every_s * (np.arange(count) + 0.5 * moved)
    alone = draws.chance.uniform(0, duration_s, draws.chance.poisson(background_rps * duration_s))
    times_s = np.concatenate((np.repeat(at_s, size), alone))
    return np.sort(times_s[times_s < duration_s])


def self_exciting(
    draws: Draws, duration_s: float, *, rps: float, share: float, decay_s: float
) -> Times:
    """Return a Hawkes process: each request causes `share` more on average, `decay_s` later.

    Drawn as clusters (Hawkes and Oakes 1974): requests of their own at rate rps x (1 - share), and
    generation after generation of what they cause, after exponential times. It begins an hour
    before the run, so that clusters are under way.
    """
    before_s = min(3600.0, 20 * decay_s / (1 - share))
    whole_s = before_s + duration_s
    born = draws.chance.poisson(rps * (1 - share) * whole_s)
    generation = draws.chance.uniform(-before_s, duration_s, born)
    found = [generation]
    for _ in range(_GENERATIONS):
        children = np.repeat(generation, draws.chance.poisson(share, len(generation)))
        generation = children + draws.chance.exponential(decay_s, len(children))
        generation = generation[generation < duration_s]
        if not len(generation):
            break
        found.append(generation)
    times_s = np.concatenate(found)
    return np.sort(times_s[times_s >= 0])


def recorded(trace: RequestTrace, *, start_s: float, duration_s: float) -> Times:
    """Return the recorded instants from `start_s` on; after its end the recording begins again."""
    times_s, length_s = trace.arrivals_s, trace.duration_s
    rounds = math.ceil((start_s + duration_s) / length_s)
    whole = np.concatenate([times_s + length_s * number for number in range(rounds)])
    low, high = np.searchsorted(whole, (start_s, start_s + duration_s))
    return np.asarray(whole[low:high] - start_s)
