"""Finds the window of a rate-only trace in which the load rises most steeply.

The rise at an instant is the mean rate of the `over_s` after it less that of the `over_s` before,
in requests per second: as a share of the window's mean, the steepest would be a burst of minutes in
a quiet night. The rise is placed at a third of the window, so that the window shows the time before
and after it. An empty bin within traffic is lost telemetry, and the bin after it is not a rise:
windows with an empty bin are skipped, unless all have one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from headroom.simulator.arrivals.recorded_trace import RateTrace
from headroom.simulator.validation import require

RISE_S = 600.0
"""A rise is the difference of the requests of two such times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SteepWindow:
    """A window of a trace and its steepness."""

    start_s: float
    duration_s: float
    mean_rps: float


def steepest_rise(trace: RateTrace, *, window_s: float = 10_800.0) -> SteepWindow:
    """Return the window of whole bins with the steepest rise; the earliest of equals.

    Raises:
        ValueError: a window is not longer than two rises, or the trace is shorter than a window.
    """
    over = max(1, round(RISE_S / trace.bin_s))
    bins = math.ceil(window_s / trace.bin_s - 1e-9)
    known = len(trace.requests)
    require(bins > 2 * over, f"a window must be longer than 2 x {over * trace.bin_s:g} s", window_s)
    require(bins <= known, f"the trace must have a window's {bins} bins", known)
    before = np.concatenate(([0.0], np.cumsum(trace.requests)))
    empty = np.concatenate(([0], np.cumsum(trace.requests == 0)))
    at = np.arange(over, known - over + 1)
    start = np.clip(at - bins // 3, 0, known - bins)
    requests = before[start + bins] - before[start]
    rise = (before[at + over] - 2 * before[at] + before[at - over]) / (over * trace.bin_s)
    inside = (at - over >= start) & (at + over <= start + bins) & (requests > 0)
    require(bool(inside.any()), "the trace must have requests", 0)
    whole = inside & (empty[start + bins] == empty[start])
    best = int(np.argmax(np.where(whole if whole.any() else inside, rise, -np.inf)))
    return SteepWindow(
        start_s=float(start[best] * trace.bin_s),
        duration_s=bins * trace.bin_s,
        mean_rps=float(requests[best] / (bins * trace.bin_s)),
    )
