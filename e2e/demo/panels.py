"""The panels that every demo's picture has: replicas by state, causes of changes, the style."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from rich.console import Console

from demo.changes import Change
from demo.recording import Run, Snapshot

INK, SOFT, GRID = "#22303c", "#6b7a88", "#e3e8ec"
LOAD, CAPACITY, READY, WARMING, BOUND, MISSED = (
    "#2563a8",
    "#2f9e63",
    "#2f9e63",
    "#f0b429",
    "#c0392b",
    "#c0392b",
)
ROOM_FOR_LEGEND = 1.18
BEYOND_TARGET = 3.0
"""Number of targets at which larger values are drawn."""


def stacked(heights: Sequence[float]) -> tuple[Figure, Sequence[Axes]]:
    """Return an empty picture of panels on one axis of time."""
    figure = Figure(figsize=(11, 10), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(
        len(heights), 1, sharex=True, gridspec_kw={"height_ratios": list(heights)}
    )
    return figure, list(grid)


def finished(
    figure: Figure, grid: Sequence[Axes], run: Run, moved: Sequence[Change], title: str, text: str
) -> Figure:
    """Style all panels, mark what changed replicas, and write the titles."""
    for axes in grid:
        style(axes)
        for change in moved:
            axes.axvline(run.since_start_s(change.time_s), color=SOFT, lw=0.7, ls=":")
    grid[-1].set_xlabel("seconds of the load", color=INK)
    grid[-1].set_xlim(0.0, run.duration_s)
    figure.suptitle(title, x=0.01, ha="left", color=INK, fontsize=14, fontweight="bold")
    grid[0].set_title(text, loc="left", color=SOFT, fontsize=9)
    return figure


def save(figure: Figure, path: Path, console: Console) -> None:
    """Write the picture as PNG, and say where it is."""
    figure.savefig(path)
    console.print(f"\nPicture of the run: {path.resolve()}", soft_wrap=True)


def replicas(axes: Axes, snapshots: Sequence[Snapshot], times: Sequence[float]) -> None:
    """Draw the replicas by state."""
    ready = [snapshot.service.ready for snapshot in snapshots]
    on_the_way = [snapshot.service.ready + snapshot.service.warming for snapshot in snapshots]
    axes.fill_between(times, ready, step="post", color=READY, alpha=0.75, lw=0, label="ready")
    axes.fill_between(
        times, ready, on_the_way, step="post", color=WARMING, alpha=0.9, lw=0, label="warming"
    )
    held = [snapshot.gpus_held for snapshot in snapshots]
    axes.step(times, held, where="post", color=SOFT, lw=1.0, label="GPUs held")
    wanted = [snapshot.workload.replicas for snapshot in snapshots]
    axes.step(times, wanted, where="post", color=INK, lw=1.6, ls="--", label="desired")
    axes.set_ylabel("replicas", color=INK)
    axes.set_ylim(0, max([*wanted, *on_the_way, *held]) + 1.6)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(loc="upper right", frameon=False, fontsize=8, ncols=4)


def annotate(axes: Axes, run: Run, moved: Sequence[Change]) -> None:
    """Say at each change of replicas why."""
    for change in moved:
        reason = change.decision.reason if change.decision else "without a decision"
        axes.annotate(
            f"{change.before}→{change.after} {reason}",
            (run.since_start_s(change.time_s), max(change.before, change.after)),
            xytext=(2, 4),
            textcoords="offset points",
            fontsize=7.5,
            color=INK,
            bbox={"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.8},
        )


def style(axes: Axes) -> None:
    """Quiet grid, ticks and frame."""
    axes.grid(axis="y", color=GRID, lw=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=SOFT, labelsize=8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(GRID)
