"""The run as a picture: load and capacity, replicas, both tails, tokens per second, memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

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
    WARMING,
    annotate,
    finished,
    replicas,
    stacked,
    style,
)
from demo.recording import Snapshot
from demo_generation.plan import STEPS, WINDOW_S
from demo_generation.recording import TokenRecording, Window, bindings, capacity_rps, windows
from headroom.scaling.values.tokens import Target
from load.token_messages import Answer, first_token_s, output_token_s

Tail = Callable[[Sequence[Answer], float], float | None]


def drawn(run: TokenRecording, name: str) -> Figure:
    """Return the picture. Needs at least one snapshot during the load."""
    figure, grid = stacked((2.6, 2.6, 2.0, 2.0, 2.2))
    snapshots, seen = run.during(), list(windows(run, WINDOW_S))
    times = [run.since_start_s(snapshot.time_s) for snapshot in snapshots]
    moved = [change for change in changes(run.snapshots) if change.time_s >= run.start_s]
    tokens = snapshots[-1].service.tokens
    _load(grid[0], run, snapshots, times, seen)
    replicas(grid[1], snapshots, times)
    annotate(grid[1], run, moved)
    _tail(grid[2], seen, tokens.first_token, first_token_s, "first token, s")
    _tail(grid[3], seen, tokens.output_token, output_token_s, "per token, s")
    _tokens(grid[4], snapshots, times)
    title = f"{name}: promises on tokens with the fewest GPUs"
    text = f"Poisson arrivals in steps, seconds x requests/s: {STEPS}; prompts 800, answers 100"
    return finished(figure, grid, run, moved, title, text)


def _load(
    axes: Axes,
    run: TokenRecording,
    snapshots: Sequence[Snapshot],
    times: Sequence[float],
    seen: Sequence[Window],
) -> None:
    capacity = [capacity_rps(snapshot) for snapshot in snapshots]
    known = [math.nan if each is None else each for each in capacity]
    label = "capacity of ready replicas within all bounds"
    axes.step(times, known, where="post", color=CAPACITY, lw=1.6, label=label)
    rates = [len(window.answers) / WINDOW_S for window in seen]
    edges = [*(window.start_s for window in seen), run.duration_s]
    axes.step(edges, [*rates, rates[-1]], where="post", color=LOAD, lw=2.0, label="arrivals")
    axes.set_ylabel("requests / s", color=INK)
    axes.set_ylim(0.0, ROOM_FOR_LEGEND * axes.get_ylim()[1])
    for index, (at_s, binding) in enumerate(bindings(snapshots)):
        axes.annotate(
            f"{binding} binds",
            (run.since_start_s(at_s), 0.0),
            xytext=(2, 3 + 10 * (index % 3)),  # what changes often is not written over
            textcoords="offset points",
            fontsize=7.5,
            color=INK,
        )
    axes.legend(loc="upper right", frameon=False, fontsize=8, ncols=2)


def _tail(
    axes: Axes, seen: Sequence[Window], target: Target | None, measure: Tail, label: str
) -> None:
    assert target is not None, "the sample has both promises"
    found = [
        (window.start_s + WINDOW_S / 2, measure(window.answers, target.percentile))
        for window in seen
    ]
    known = [
        (at, min(tail, BEYOND_TARGET * target.seconds)) for at, tail in found if tail is not None
    ]
    axes.axhspan(0.0, target.seconds, color=CAPACITY, alpha=0.08, lw=0)
    axes.axhline(target.seconds, color=BOUND, lw=1.2, label=f"target {target.seconds:g} s")
    axes.plot(*_columns(known), color=LOAD, lw=1.6, marker="o", ms=3, label="per 10 s")
    above = [(at, tail) for at, tail in known if tail > target.seconds]
    if above:
        axes.plot(*_columns(above), color=MISSED, marker="o", ms=5, ls="", label="missed")
    axes.set_ylabel(f"p{100 * target.percentile:.0f} {label}", color=INK)
    highest = max([1.2 * target.seconds, *(tail for _, tail in known)])
    axes.set_ylim(0.0, ROOM_FOR_LEGEND * highest)
    axes.legend(loc="upper right", frameon=False, fontsize=8, ncols=3)


def _tokens(axes: Axes, snapshots: Sequence[Snapshot], times: Sequence[float]) -> None:
    generated, memory = [], []
    for snapshot in snapshots:
        generation = snapshot.service.generation
        tokens = generation.generated_tokens_per_second if generation else None
        share = generation.memory_share if generation else None
        generated.append(math.nan if tokens is None else tokens)
        memory.append(math.nan if share is None else 100.0 * share)
    (line,) = axes.step(times, generated, where="post", color=LOAD, lw=1.6)
    axes.set_ylabel("tokens / s", color=INK)
    axes.set_ylim(bottom=0.0)
    right = axes.twinx()
    style(right)
    (other,) = right.step(times, memory, where="post", color=WARMING, lw=1.6)
    right.set_ylim(0.0, 100.0)
    right.set_ylabel("KV memory, %", color=INK)
    axes.legend(
        [line, other],
        ["generated tokens per second", "KV memory of the fullest replica"],
        loc="upper left",
        frameon=False,
        fontsize=8,
        ncols=2,
    )


def _columns(
    points: Sequence[tuple[float, float]],
) -> tuple[list[float], list[float]]:
    return [at for at, _ in points], [value for _, value in points]
