"""Estimates the arrivals at replicas that were not scraped: missing is not zero.

A silent replica keeps its last window. A load that rises meanwhile shows at the others only, and
whatever spreads the requests spreads them over the silent ones too, so each counts with at least
what a scraped replica took. Worked: three of six replicas are silent since each of six took 43/s;
the others take 80/s now. 480/s arrive, not 370/s.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import median_low

import numpy as np

from headroom.scaling.mathematics.arrays import Vector
from headroom.scaling.mathematics.flags import any_set
from headroom.scaling.values.observation import Pod
from headroom.scaling.windows.sliding_windows import Windows


def arrivals_extrapolated(windows: Windows, window_s: float, now_s: float) -> float:
    """Return the requests of all pods in the window, assuming that silent pods keep their load.

    The window of a silent pod ends at its last scrape; if its series begins within the window, its
    rate counts for the whole window. Worked: scraped from 2 s to 8 s with 38 requests and silent
    since, for the 16 s until 18 s: 38 x 16 / 6 = 101.
    """
    return float(_extrapolated(windows, window_s, now_s).sum())


def beyond_last_windows(
    windows: Windows, ready: Sequence[Pod], window_s: float, now_s: float, stale_after_s: float
) -> float:
    """Return the requests that silent ready pods took beyond their last windows, at least.

    Each is taken for one of the ready pods that are scraped: their median, which a hot one does not
    move, since it serves. Worked: three replicas took 20/s each; ten more are ready for 12 s and
    silent, and the three take 4.6/s since. The ten took 4.6/s for 12 s, not 20/s for 30 s. 0 if
    none has been scraped throughout the window, or since the first tick: then a scrape is some
    milliseconds older than its tick, and the window may begin before it.
    """
    columns, ends_s, first_s = windows.series.columns, windows.ends_s, windows.since_s or 0.0
    throughout = windows.series.times_s[0] <= np.maximum(ends_s - window_s, first_s)
    scraped = (throughout & (ends_s >= now_s - stale_after_s)).tolist()
    known = [columns[pod.uid] for pod in ready if pod.uid in columns]
    heard = [column for column in known if scraped[column]]
    if not heard:
        return 0.0
    arrived = _extrapolated(windows, window_s, now_s)
    usual: dict[float, float] = {}
    beyond = 0.0
    for pod in ready:
        column, served_s = columns.get(pod.uid), now_s - serving_since_s(pod)
        silent_s = served_s if column is None else now_s - ends_s[column]
        if silent_s <= stale_after_s:
            continue
        span_s = _span_s(served_s, window_s)
        if span_s not in usual:
            usual[span_s] = median_low(windows.arrived(span_s)[heard].tolist())
        own = 0.0 if column is None else float(arrived[column])
        beyond += max(0.0, usual[span_s] - own)
    return beyond


def _span_s(served_s: float, window_s: float) -> float:
    """Return the time of the window that a pod has served, rounded up to one of `SPANS`."""
    return window_s * min(1.0, math.ceil(SPANS * served_s / window_s) / SPANS)


SPANS = 16
"""Different spans of a window, at most, however many pods started in it."""


def _extrapolated(windows: Windows, window_s: float, now_s: float) -> Vector:
    """Return the requests of each pod, [pods]."""
    starts_s, begun_s = windows.ends_s - window_s, windows.series.times_s[0]
    arrived = windows.arrived(window_s)
    if not any_set(begun_s > starts_s):
        return arrived
    silent_s, seen_s = now_s - windows.ends_s, windows.ends_s - begun_s
    lacking_s = np.clip(begun_s - starts_s, 0.0, np.maximum(silent_s, 0.0))
    extrapolated: Vector = arrived * (1.0 + lacking_s / np.where(seen_s > 0, seen_s, np.inf))
    return extrapolated


def has_unobserved_time(
    windows: Windows,
    pods: Iterable[Pod],
    window_s: float,
    now_s: float,
    patience_s: float,
    seen_s: float,
) -> bool:
    """Return whether a pod served for long, within the window, before its first scrape.

    What it took until then is unknown, so the total of the window is too small. A pod that has just
    become ready has `patience_s` for its first scrape. A pod without new scrapes after less than
    `seen_s` of history has no known rate.
    """
    begun_s = windows.series.times_s[0]
    if not any_set(begun_s > windows.ends_s - window_s):
        return False
    for pod in pods:
        column = windows.series.columns.get(pod.uid)
        if column is None or begun_s[column] <= serving_since_s(pod) + patience_s:
            continue
        first_s, end_s = begun_s[column], windows.ends_s[column]
        if first_s > now_s - window_s or (end_s < now_s and end_s - first_s < seen_s):
            return True
    return False


def serving_since_s(pod: Pod) -> float:
    """Return when a pod began to take requests, as far as is known."""
    return pod.created_s if pod.ready_s is None else pod.ready_s
