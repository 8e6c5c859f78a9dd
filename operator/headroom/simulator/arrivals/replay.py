"""Replays a window of a recorded trace, times a factor. Time is never stretched.

Cold starts have a fixed length, so a trace must run at its own speed. Traces of single requests are
thinned (each request stays with probability k, which pulls the index of
dispersion towards 1: IDC' = 1 + k (IDC - 1)) or overlaid with copies of
themselves that are shifted by up to a minute (which keeps the slow shape and smooths the bursts). A
trace of counts becomes a Poisson process with each bin's rate: the least bursty arrivals that fit
the counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from headroom.simulator.arrivals.poisson import PoissonArrivals
from headroom.simulator.arrivals.rates import Profile, Vector
from headroom.simulator.arrivals.recorded_trace import RateTrace, RequestTrace, Trace
from headroom.simulator.arrivals.streams import CHUNK, generator
from headroom.simulator.validation import require

LONGEST_SHIFT_S = 60.0
MAX_SCALE = 1000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedArrivals:
    """Recorded arrivals within a window, thinned or overlaid.

    With scale 1 they are the recording itself for every seed. Otherwise floor(scale) copies are
    overlaid, and one more is thinned to the rest; all but the first are shifted by a random time up
    to `LONGEST_SHIFT_S`, cyclically within the window.
    """

    arrivals_s: Vector
    """[requests] of the window, sorted, in the recording's time."""
    start_s: float
    """Start of the window in the recording."""
    duration_s: float
    scale: float
    stream: str

    def __post_init__(self) -> None:
        """Raise ValueError for an invalid scale."""
        require(0 < self.scale <= MAX_SCALE, f"scale must be > 0 and <= {MAX_SCALE:g}", self.scale)

    @property
    def mean_rps(self) -> float:
        """Arrivals to expect per second."""
        return self.scale * len(self.arrivals_s) / self.duration_s

    def chunks(self, seed: int) -> Iterator[Vector]:
        """Yield sorted arrival times in [0, duration_s)."""
        chance = generator(seed, self.stream)
        whole = math.floor(self.scale)
        share = self.scale - whole
        copies = whole + (share > 0)
        longest_s = min(LONGEST_SHIFT_S, self.duration_s)
        shifts = np.concatenate(([0.0], chance.uniform(0.0, longest_s, copies - 1)))
        kept = [1.0] * whole + [share] * (copies - whole)
        step = max(1, CHUNK // copies)
        inner = np.clip(self.arrivals_s[step::step] - self.start_s, 0.0, self.duration_s)
        cuts = np.concatenate(([0.0], inner, [self.duration_s]))
        for begin_s, end_s in pairwise(cuts):
            parts = [
                self._copy(chance, float(begin_s), float(end_s), float(shift), keep)
                for shift, keep in zip(shifts, kept, strict=True)
            ]
            times = parts[0] if copies == 1 else np.sort(np.concatenate(parts), kind="stable")
            if times.size:
                yield times

    def _copy(
        self, chance: np.random.Generator, begin_s: float, end_s: float, shift_s: float, keep: float
    ) -> Vector:
        """Return the arrivals of a copy shifted by `shift_s` in [begin_s, end_s)."""
        if begin_s >= shift_s:
            times = self._moved(begin_s, end_s, shift_s)
        else:
            turned = self._moved(begin_s, min(end_s, shift_s), shift_s - self.duration_s)
            times = np.concatenate((turned, self._moved(shift_s, end_s, shift_s)))
        return times if keep == 1 else times[chance.random(times.size) < keep]

    def _moved(self, begin_s: float, end_s: float, by_s: float) -> Vector:
        if begin_s >= end_s:
            return np.empty(0)
        by_s -= self.start_s
        low, high = np.searchsorted(self.arrivals_s, (begin_s - by_s, end_s - by_s))
        # Adding may round onto the end, which belongs to the next chunk.
        return np.clip(self.arrivals_s[low:high] + by_s, begin_s, np.nextafter(end_s, begin_s))


def replay(
    trace: Trace,
    *,
    stream: str,
    start_s: float = 0.0,
    duration_s: float | None = None,
    scale: float | None = None,
    mean_rps: float | None = None,
) -> ReplayedArrivals | PoissonArrivals:
    """Return a window of a trace as arrivals, times `scale` or scaled to `mean_rps`.

    Args:
        trace: the recorded trace.
        stream: name of the random stream, the service's name; each name has its own.
        start_s: start of the window in the recording.
        duration_s: length of the window; None means to the end of the recording.
        scale: arrivals per recorded request; None means 1.
        mean_rps: mean over the window, instead of a scale.

    Raises:
        ValueError: the window lies outside the trace or is empty, or a factor is out of range.
    """
    require(scale is None or mean_rps is None, "scale and mean_rps must not both be given", "both")
    require(
        0 <= start_s < trace.duration_s,
        f"start must be >= 0 s and < {trace.duration_s:g} s",
        start_s,
    )
    duration_s = trace.duration_s - start_s if duration_s is None else duration_s
    require(duration_s > 0, "duration must be > 0 s", duration_s)
    end_s = start_s + duration_s
    rule = f"start + duration must lie within the {trace.duration_s:g} s of {trace.name}"
    require(end_s <= trace.duration_s + 1e-9, rule, f"{start_s:g} + {duration_s:g} s")
    expected = _recorded(trace, start_s, end_s)
    require(expected > 0, f"the window of {trace.name} must have requests", 0)
    if mean_rps is not None:
        require(0 < mean_rps < math.inf, "mean_rps must be finite and > 0", mean_rps)
        scale = mean_rps * duration_s / expected
    scale = 1.0 if scale is None else scale
    require(0 < scale < math.inf, "scale must be finite and > 0", scale)
    if math.isclose(scale, round(scale), rel_tol=1e-9):
        scale = float(round(scale))
    if isinstance(trace, RateTrace):
        return PoissonArrivals(profile=rate_of(trace, start_s, end_s).scaled(scale), stream=stream)
    low, high = np.searchsorted(trace.arrivals_s, (start_s, end_s))
    return ReplayedArrivals(
        arrivals_s=trace.arrivals_s[low:high],
        start_s=start_s,
        duration_s=duration_s,
        scale=scale,
        stream=stream,
    )


def rate_of(trace: RateTrace, start_s: float, end_s: float) -> Profile:
    """Return the bins of a window as a rate, constant within each bin."""
    first = math.floor(start_s / trace.bin_s + 1e-9)
    last = min(math.ceil(end_s / trace.bin_s - 1e-9), len(trace.requests))
    edges = np.clip(trace.bin_s * np.arange(first, last + 1), start_s, end_s) - start_s
    rates = trace.requests[first:last] / trace.bin_s
    return Profile(edges_s=edges, start_rps=rates, end_rps=rates)


def _recorded(trace: RequestTrace | RateTrace, start_s: float, end_s: float) -> float:
    if isinstance(trace, RateTrace):
        return rate_of(trace, start_s, end_s).requests
    low, high = np.searchsorted(trace.arrivals_s, (start_s, end_s))
    return float(high - low)
