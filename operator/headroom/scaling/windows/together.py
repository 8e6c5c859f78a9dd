"""Counts requests up to the instant for which the counters of all replicas are known.

A Prometheus scrapes replicas at different times, so the windows of two replicas may end half a
minute apart. While replicas become ready, requests move to them, and count twice: in the earlier
window of a replica that they left and in the later one of the replica that they moved to.
"""

from __future__ import annotations

import numpy as np

from headroom.scaling.windows.interpolation import arrivals_at, place_of
from headroom.scaling.windows.sliding_windows import Windows

APART_S = 4.0
"""Windows that end within so long are of the same time."""


def arrivals_together(
    windows: Windows, window_s: float, age_s: float, now_s: float
) -> float | None:
    """Sum over all pods the requests of a window that ended `age_s` ago for all of them.

    None unless `moves_apart`. Worked: one replica took 8/s until 100 s, then its successor;
    they were scraped at 99 and 115 s. The 30 s until 99 s have 240 requests, the last of each 360.
    """
    if not moves_apart(windows, window_s, age_s, now_s):
        return None
    ends_s = np.full_like(windows.ends_s, now_s - age_s)
    until = arrivals_at(windows.series, place_of(windows.series, ends_s))
    before = arrivals_at(windows.series, place_of(windows.series, ends_s - window_s))
    return float((until - before).sum())


def moves_apart(windows: Windows, window_s: float, age_s: float, now_s: float) -> bool:
    """Return whether windows end apart and a pod began meanwhile, which is known from zero.

    The oldest of the last samples is `age_s` old: there the common window ends.
    """
    if age_s <= APART_S:
        return False
    end_s, first_s = now_s - age_s, windows.since_s
    start_s = end_s - window_s
    if first_s is None or first_s > start_s:
        return False
    begins = float(windows.series.times_s[0].max(initial=-np.inf)) > start_s
    return begins and float(windows.ends_s.max()) - end_s > APART_S
