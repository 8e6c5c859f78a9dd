"""Arrivals, outcomes and batches of single replicas, or of the gateways, within a window."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import compress

from headroom.scaling.mathematics.arrays import Vector
from headroom.scaling.mathematics.flags import any_set
from headroom.scaling.windows.counter_series import BATCH_SECONDS, BATCHES, LATENCY, MISSED
from headroom.scaling.windows.histogram import at_least_late
from headroom.scaling.windows.sample_intake import REJECTED
from headroom.scaling.windows.sliding_windows import Windows
from headroom.scaling.windows.window_totals import BatchStats


def arrivals_of(windows: Windows, replicas: Iterable[str], window_s: float) -> Vector:
    """Return the requests that each of these replicas took in the window, [known replicas]."""
    arrived: Vector = windows.arrived(window_s)[windows.columns_of(replicas)]
    return arrived


def executed_s_of(windows: Windows, replicas: Iterable[str], window_s: float) -> Vector:
    """Return the execution time of each in the window, summed over slots, [known replicas]."""
    executed: Vector = windows.counted_by(window_s, BATCH_SECONDS)[windows.columns_of(replicas)]
    return executed


def outcomes_of(
    windows: Windows, replicas: Iterable[str], window_s: float, target_s: float
) -> tuple[Vector, Vector]:
    """Return how many requests of each replica ended in the window, and were late."""
    counted = windows.counted(window_s)[windows.columns_of(replicas)]
    ended: Vector = counted[:, -1] + counted[:, MISSED]
    late = at_least_late(windows.bounds_s, counted[:, LATENCY:], target_s) + counted[:, MISSED]
    return ended, late.clip(0.0, ended)


def sampled_throughout(
    windows: Windows, window_s: float, now_s: float, patience_s: float
) -> frozenset[str]:
    """Return the replicas whose series covers the window that ends now, or `patience_s` ago."""
    sampled = (windows.series.times_s[0] <= windows.ends_s - window_s) & (
        windows.ends_s >= now_s - patience_s
    )
    return frozenset(uid for uid, column in windows.series.columns.items() if sampled[column])


def executed_batches(windows: Windows) -> list[BatchStats]:
    """Return the batches of each replica in the interval that ended at this tick."""
    done = windows.series.added[:, BATCHES] >= 1.0
    if not any_set(done):
        return []
    batches, items, seconds = windows.series.added[done, BATCHES : BATCH_SECONDS + 1].T
    return [
        *map(
            BatchStats,
            compress(windows.series.columns, done.tolist()),
            batches.tolist(),
            (items / batches).tolist(),
            (seconds / batches).tolist(),
        )
    ]


def rejected_at_gateways(windows: Windows, window_s: float) -> tuple[float, float]:
    """Return the requests that gateways rejected: in the window, and since the last tick."""
    column = windows.series.columns.get(REJECTED)
    if column is None:
        return 0.0, 0.0
    inside = float(windows.counted_by(window_s, MISSED)[column]) if window_s > 0.0 else 0.0
    return inside, float(windows.series.added[column, MISSED])
