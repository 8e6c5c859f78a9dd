"""Finds ready replicas with far fewer requests than even routing can give them. Pure.

A difference alone is no contradiction. Where connections stay with their replicas, shares differ:
only a replica counts that has had its share, as a new one has no connection, and only in the stable
window, as clients that reopen connections use few of them within seconds. While their number is not
measured, the replica must have hardly any request, and with few connections a removal waits for a
quarter of an hour anyway (`limits/scale_down.py`). Routing that sees load gives fewer requests to a
replica that is busier, so there it must also be less busy.

A share that few connections explain only keeps the replicas: no removal, but the replica is not
accused. It is where the windows prove so many connections that chance does not explain it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headroom.scaling.mathematics.arrays import Vector, median
from headroom.scaling.mathematics.chance import DOUBTED
from headroom.scaling.mathematics.flags import any_set
from headroom.scaling.values.observation import Pod
from headroom.scaling.values.policy import Policy, Routing
from headroom.scaling.windows.counter_series import BATCH_SECONDS
from headroom.scaling.windows.plausibility.evenness import (
    FEW,
    FEWEST,
    Evenness,
    evenness_of,
    too_few,
)
from headroom.scaling.windows.sliding_windows import Windows

LESS_BUSY = 0.75
"""Share of the others' time in execution, below which a replica is less busy."""
SETTLED_S = 30.0
"""A replica that has just become ready does not have its share yet."""


def is_measured(policy: Policy, connections: int | None) -> bool:
    """Return whether connections stay with their replicas and are known to be many."""
    return policy.routing is Routing.STICKY and connections is not None


def with_share(windows: Windows, window_s: float) -> frozenset[str]:
    """Return the replicas with an even share of the requests in this window."""
    starts_s, counts = windows.ends_s - window_s, windows.arrived(window_s)
    usual = max(median(counts), 0.5 * counts.mean())  # most of them may be new and idle
    even = (counts >= FEW * usual) & (windows.series.times_s[0] <= starts_s)
    return frozenset(
        uid for uid, is_even in zip(windows.series.columns, even, strict=True) if is_even
    )


class Shares(NamedTuple):
    """Findings from the shares of the replicas."""

    idle: Mapping[str, str]
    """The replicas with too few requests for an even routing, and what they count."""
    proven: frozenset[str]
    """Replicas whose share no possible number of connections explains."""
    understated: float
    """Most requests that may have arrived over those counted; 1 without doubt."""


def read_shares(
    policy: Policy,
    windows: Windows,
    ready: Sequence[Pod],
    connections: int | None,
    proven: int,
    now_s: float,
) -> Shares:
    """Compare the requests of the ready replicas in several windows.

    `connections` are those that are likely, None until they are measured; at least `proven` exist.
    """
    even = evenness_of(policy.routing, connections)
    if even is None or len(ready) < 2 or len(windows.series.columns) < 2:
        return _NOTHING
    doubted = Evenness(even.connections if is_measured(policy, connections) else math.inf, DOUBTED)
    surely = evenness_of(policy.routing, min(proven, connections or 0))
    found, accused, understated = dict[str, str](), set[str](), 1.0
    watched_s = windows.watched_s(now_s, policy.stable_window_s)
    bursts_s = policy.burst_windows_s  # a rate is known after the longest, and so is a share
    shorter_s = () if policy.routing is Routing.STICKY else (*bursts_s[:1], *bursts_s[-1:])
    known_s = {*shorter_s, policy.stable_window_s}
    windows_s, since_s = known_s | {watched_s}, now_s - windows.gap_s[1]
    if since_s < policy.stable_window_s:  # before it, replicas had the mean of a gap
        windows_s = {window_s for window_s in windows_s if window_s <= since_s}
    for window_s in windows_s:
        every = windows.arrived(window_s)
        counts = every.tolist()
        most = max(counts)
        if most < FEWEST or min(counts) >= FEW * most:
            continue
        compared = partial(_read_window, policy, windows, ready, window_s=window_s, every=every)
        if window_s == watched_s:
            understated = _understated(compared(even=doubted), every.sum())
        if window_s in known_s and any_set(
            too_few(every, np.full(len(every), most), len(ready), even)
        ):
            idle = _idle(compared(even=even), window_s)
            found |= idle
            if idle and surely is not None:
                accused |= _idle(compared(even=surely), window_s).keys()
    if not found and understated == 1.0:
        return _NOTHING
    return Shares(found, frozenset(accused), understated)


_NOTHING = Shares({}, frozenset(), 1.0)


class _Window(NamedTuple):
    """The settled replicas of one window, their requests, and which have too few."""

    known: list[Pod]
    counts: Vector
    usual: Vector
    few: NDArray[np.bool_]


def _read_window(
    policy: Policy,
    windows: Windows,
    ready: Sequence[Pod],
    even: Evenness,
    window_s: float,
    every: Vector,
) -> _Window | None:
    """Compare the replicas of one window, which had `every` requests; None below two."""
    known, places = _settled(windows, ready, window_s)
    if len(known) < 2:
        return None
    counts = every[places]
    usual = _of_others(counts)
    few = too_few(counts, usual, len(ready), even)
    if policy.routing.sees_load and few.any():
        few = few & _less_busy(windows, places, window_s)
    return _Window(known, counts, usual, few)


def _idle(window: _Window | None, window_s: float) -> dict[str, str]:
    """Return the replicas with too few requests, and their counts as text."""
    if window is None:
        return {}
    return {
        window.known[place].uid: f"counts {window.counts[place]:.4g} requests in {window_s:g}s, "
        f"the others {window.usual[place]:.4g} each"
        for place in np.flatnonzero(window.few)
    }


def _understated(window: _Window | None, total: float) -> float:
    """Return how many times these requests may have arrived; 1 without doubt.

    One replica may count fewer than it gets, by too little to be held out. Removals assume that it
    gets as many as the others, where its share is hardly chance. Worked: 45, 90 and 90 requests are
    270 then: 1.2.
    """
    if window is None or not any_set(window.few):
        return 1.0
    return 1.0 + float((window.usual - window.counts)[window.few].max() / total)


def _settled(
    windows: Windows, ready: Sequence[Pod], window_s: float
) -> tuple[list[Pod], NDArray[np.intp]]:
    """Return the replicas that had their share throughout the window, and their columns."""
    columns, begun_s = windows.series.columns, windows.series.times_s[0]
    starts_s = windows.ends_s - window_s
    known = [
        pod
        for pod in ready
        if pod.uid in columns
        and max(begun_s[columns[pod.uid]], _serving_since_s(pod) + SETTLED_S)
        <= starts_s[columns[pod.uid]]
    ]
    return known, np.array([columns[pod.uid] for pod in known], dtype=np.intp)


def _less_busy(windows: Windows, places: NDArray[np.intp], window_s: float) -> NDArray[np.bool_]:
    """Return which of these executed for far less time than the others."""
    busy_s = windows.counted_by(window_s, BATCH_SECONDS)[places]
    less: NDArray[np.bool_] = busy_s < LESS_BUSY * _of_others(busy_s)
    return less


def _of_others(counts: Vector) -> Vector:
    """Return for each replica the median of all; of two, the other's count."""
    if len(counts) == 2:
        return counts[::-1]
    return np.full(len(counts), median(counts))


def _serving_since_s(pod: Pod) -> float:
    return pod.created_s if pod.ready_s is None else pod.ready_s
