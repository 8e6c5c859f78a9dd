"""Arrivals of a constant rate, and recordings of requests, for tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from headroom.simulator.arrivals import (
    CountedArrivals,
    OnOffArrivals,
    PoissonArrivals,
    Profile,
    RateTrace,
    RequestTrace,
    replay,
    shapes,
)
from headroom.simulator.scenario import Arrivals

HOUR = 3600.0


def poisson(profile: Profile, stream: str = "a") -> PoissonArrivals:
    return PoissonArrivals(profile=profile, stream=stream)


def times_of(arrivals: Arrivals, seed: int = 1) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.concatenate([np.empty(0), *arrivals.chunks(seed)])


def recording(seconds: float = HOUR, rps: float = 5.0) -> RequestTrace:
    """A bursty hour: ten requests at a time, at random instants."""
    chance = np.random.default_rng(3)
    bursts = np.sort(chance.uniform(0, seconds - 1, int(seconds * rps / 10)))
    return RequestTrace(name="bursts", arrivals_s=np.repeat(bursts, 10))


RATES = RateTrace(name="bins", bin_s=60.0, requests=np.array([60.0, 0.0, 600.0, 120.0] * 15))

STREAMS: dict[str, Arrivals] = {
    "constant": poisson(shapes.constant(duration_s=HOUR, rps=90)),
    "step": poisson(shapes.step(duration_s=HOUR, before_rps=20, after_rps=100, at_s=1200)),
    "ramp": poisson(shapes.ramp(duration_s=HOUR, from_rps=0, to_rps=100, start_s=600, end_s=3000)),
    "falling ramp": poisson(shapes.ramp(duration_s=HOUR, from_rps=100, to_rps=0)),
    "stages": poisson(
        shapes.stages(
            [
                shapes.Stage(duration_s=600, rps=10),
                shapes.Stage(duration_s=600, rps=10, to_rps=70),
                shapes.Stage(duration_s=600, rps=0),
            ]
        )
    ),
    "spikes": poisson(
        shapes.spikes(duration_s=HOUR, base_rps=10, peak_rps=100, every_s=900, lasting_s=120)
    ),
    "diurnal": poisson(shapes.diurnal(duration_s=2 * HOUR, low_rps=5, high_rps=45, period_s=HOUR)),
    "on and off": OnOffArrivals(
        duration_s=4 * HOUR, on_rps=40, off_rps=4, mean_on_s=5, mean_off_s=15, stream="a"
    ),
    "counts per minute": replay(RATES, stream="a"),
    "counts, part of a bin at either end": replay(RATES, stream="a", start_s=30, duration_s=200),
    "recording": replay(recording(), stream="a"),
    "recording thinned": replay(recording(), stream="a", scale=0.3),
    "recording overlaid": replay(recording(), stream="a", scale=3.6),
    "recording, a window to a mean": replay(
        recording(), stream="a", start_s=600, duration_s=1200, mean_rps=21
    ),
    "ticks": CountedArrivals(
        edges_s=np.arange(0, 601, 2.0), counts=np.arange(300), scale=1.0, stream="a"
    ),
    "ticks scaled": CountedArrivals(
        edges_s=np.arange(0, 601, 2.0), counts=np.arange(300), scale=2.5, stream="a"
    ),
}


def minutes_of(times: Any, minutes: int = 60) -> Any:
    return np.histogram(times, bins=minutes, range=(0, 60.0 * minutes))[0] / 60
