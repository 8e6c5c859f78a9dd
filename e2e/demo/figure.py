"""The run as a picture: load and capacity, replicas by state, waiting requests, p95, decisions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from demo.changes import changes
from demo.panels import (
    BEYOND_TARGET,
    BOUND,
    CAPACITY,
    INK,
    LOAD,
    MISSED,
    ROOM_FOR_LEGEND,
    annotate,
    finished,
    replicas,
    stacked,
)
from demo.recording import Recording, Snapshot
from headroom.scaling import DemandKnown
from load.messages import Window


def drawn(recording: Recording, *, title: str, subtitle: str) -> Figure:
    """Return the picture."""
    assert recording.started is not None
    figure, grid = stacked((3, 3, 1.6, 2.4))
    snapshots = recording.during()
    times = [recording.since_start_s(snapshot.time_s) for snapshot in snapshots]
    moved = [c for c in changes(recording.snapshots) if c.time_s >= recording.start_s]
    _load(grid[0], recording, snapshots, times)
    replicas(grid[1], snapshots, times)
    annotate(grid[1], recording, moved)
    _waiting(grid[2], snapshots, times)
    _tail(grid[3], recording, snapshots[-1].service.target_s, snapshots[-1].service.percentile)
    return finished(figure, grid, recording, moved, title, subtitle)


def _load(
    axes: Axes, recording: Recording, snapshots: Sequence[Snapshot], times: Sequence[float]
) -> None:
    cost, ceiling = snapshots[-1].service.cost, snapshots[-1].service.utilization_ceiling
    if cost is not None:
        full = [snapshot.service.ready * cost.full_batch_rps for snapshot in snapshots]
        axes.step(
            times, full, where="post", color=CAPACITY, lw=1.6, label="capacity of ready replicas"
        )
        axes.fill_between(
            times, [ceiling * each for each in full], full, step="post", color=CAPACITY, alpha=0.15,
            lw=0, label=f"above the ceiling of {ceiling:g}",
        )  # fmt: skip
    edges = [window.start_s for window in recording.windows]
    rates = [window.tally.requests / window.duration_s for window in recording.windows]
    if edges:
        end = edges[-1] + recording.windows[-1].duration_s
        axes.step(
            [*edges, end], [*rates, rates[-1]], where="post", color=LOAD, lw=2.0, label="arrivals"
        )
    axes.set_ylabel("requests / s", color=INK)
    axes.set_ylim(0.0, ROOM_FOR_LEGEND * axes.get_ylim()[1])
    _bounds(axes, snapshots, times)
    axes.legend(loc="upper right", frameon=False, fontsize=8, ncols=3)


def _bounds(axes: Axes, snapshots: Sequence[Snapshot], times: Sequence[float]) -> None:
    """Mark snapshots at which arrivals were only a bound of the demand, and the highest bound."""
    for known, marker, text in (
        (DemandKnown.AT_LEAST, "^", "demand is at least this"),
        (DemandKnown.INCLUDES_RETRIES, "v", "demand is at most this"),
    ):
        demands = [snapshot.service.demand for snapshot in snapshots]
        seen = [
            (at, demand)
            for at, demand in zip(times, demands, strict=True)
            if demand is not None and demand.known == known
        ]
        if not seen:
            continue
        rates = [demand.requests_per_second for _, demand in seen]
        most = [demand.at_most_per_second or demand.requests_per_second for _, demand in seen]
        at = [time for time, _ in seen]
        axes.vlines(at, rates, most, color=LOAD, lw=1.0, alpha=0.3)
        axes.plot(at, rates, color=LOAD, marker=marker, ms=5, mfc="none", ls="", label=text)


def _waiting(axes: Axes, snapshots: Sequence[Snapshot], times: Sequence[float]) -> None:
    known = [
        (at, snapshot)
        for at, snapshot in zip(times, snapshots, strict=True)
        if snapshot.waiting is not None
    ]
    waiting = [snapshot.waiting or 0 for _, snapshot in known]
    axes.fill_between([at for at, _ in known], waiting, color=LOAD, alpha=0.45, lw=0)
    service = snapshots[-1].service
    depth = service.queue_depth or (service.cost.max_batch if service.cost else None)
    if depth:
        allowed = [depth * snapshot.service.ready for snapshot in snapshots]
        axes.step(times, allowed, where="post", color=BOUND, lw=1.0, label=f"{depth} per replica")
        axes.legend(loc="upper right", frameon=False, fontsize=8)
    axes.set_ylabel("waiting", color=INK)
    axes.set_ylim(bottom=0.0)


def _tail(axes: Axes, recording: Recording, target_s: float, percentile: int) -> None:
    share, longest_s = percentile / 100, BEYOND_TARGET * target_s
    middles = [window.start_s + window.duration_s / 2 for window in recording.windows]
    tails = [_shown(window, share, longest_s) for window in recording.windows]
    axes.axhspan(0.0, target_s, color=CAPACITY, alpha=0.08, lw=0)
    axes.axhline(target_s, color=BOUND, lw=1.2, label=f"target {target_s:g} s")
    axes.plot(middles, tails, color=LOAD, lw=1.6, marker="o", ms=3, label="per 10 s")
    above = [(at, tail) for at, tail in zip(middles, tails, strict=True) if tail > target_s]
    if above:
        axes.plot(*zip(*above, strict=True), color=MISSED, marker="o", ms=5, ls="", label="missed")
    axes.set_ylabel(f"p{percentile}, seconds", color=INK)
    axes.set_ylim(0.0, ROOM_FOR_LEGEND * max([1.2 * target_s, *tails]))
    axes.legend(loc="upper right", frameon=False, fontsize=8, ncols=3)


def _shown(window: Window, share: float, longest_s: float) -> float:
    tail_s = window.tally.quantile_s(share)
    return math.nan if tail_s is None else min(tail_s, longest_s)
