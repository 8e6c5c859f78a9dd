"""Divides late requests by cause: replicas that were not ready yet, and too few replicas.

The work that arrives is compared with what the ready replicas take, each at the share of the
cheapest clairvoyant that keeps the promises. What they do not take waits; requests that arrive
before it has been worked off are late because of a start, all others because of the sizing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

from generation_study.cells import Cell, begun, requests_of
from generation_study.records import Record
from generation_study.running import SEED
from generation_study.settings import HEADROOM, Setting
from headroom.simulator.generation.autoscalers.bounds import BIN_S, work_shares
from headroom.simulator.generation.autoscalers.catalogue import autoscaler
from headroom.simulator.generation.outcome import Floats, TokenOutcome, TokenScore
from headroom.simulator.generation.plant import TokenService
from headroom.simulator.generation.run import LOOK_S, simulate_tokens

READY = 2
"""Column of the looks with the ready replicas."""


@dataclass(frozen=True, kw_only=True)
class Causes:
    """Late requests of one run in shares of all."""

    cell: Cell
    score: TokenScore
    by_start: float
    by_sizing: float
    first: float
    """The share of both in the first ten minutes."""
    worst_need: float
    """Highest work over what the ready replicas took at that time."""


def of_run(cell: Cell, share: float) -> Causes:
    """Run Headroom in a cell; `share` is that of the clairvoyant."""
    service, requests = begun(cell), requests_of(cell)
    outcome = simulate_tokens(service, requests, autoscaler(HEADROOM.kind), SEED)
    bounded = requests.bounded(service.engine.context_tokens)
    output = service.targets.output_token
    assert output is not None
    work = work_shares(service.engine, bounded, output.seconds)
    bins = (bounded.arrival_s // BIN_S).astype(np.int64)
    rates = np.bincount(bins, weights=work) / BIN_S / share
    ready = _ready(outcome, len(rates))
    short = waiting(rates, ready) > 0.0
    late = _late(outcome, service)
    started = short[bins] & late
    early = late & (bounded.arrival_s < _FIRST_S)
    return Causes(
        cell=cell,
        score=outcome.score,
        by_start=float(started.mean()),
        by_sizing=float((late & ~started).mean()),
        first=float(early.mean()),
        worst_need=float((smooth(rates) / np.maximum(1.0, ready)).max()),
    )


_FIRST_S = 600.0
_SMOOTH = 6


def smooth(rates: Floats) -> Floats:
    """Return the mean over half a minute."""
    found: Floats = np.convolve(rates, np.ones(_SMOOTH) / _SMOOTH, mode="same")
    return found


def waiting(rates: Floats, ready: Floats) -> Floats:
    """Return what waits at the end of each bin, in replica seconds."""
    found, queue = np.zeros(len(rates)), 0.0
    for index, (rate, count) in enumerate(zip(smooth(rates), ready, strict=True)):
        queue = max(0.0, queue + (rate - count) * BIN_S)
        found[index] = queue
    return found


def _ready(outcome: TokenOutcome, bins: int) -> Floats:
    rows = np.minimum((np.arange(bins) * BIN_S / LOOK_S).astype(int), len(outcome.timeline) - 1)
    found: Floats = outcome.timeline[rows, READY]
    return found


def _late(
    outcome: TokenOutcome, service: TokenService
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    first, output = service.targets.first_token, service.targets.output_token
    late = np.zeros(len(outcome.arrival_s), dtype=bool)
    if first is not None:
        late |= ~(outcome.first_token_s <= first.seconds)
    if output is not None:
        late |= ~(outcome.output_token_s <= output.seconds)
    return late


def table(
    cells: Sequence[Cell],
    known: Mapping[tuple[Cell, Setting], Record],
    workers: int,
    console: Console,
) -> Table:
    """Return the causes in all cells that a clairvoyant keeps; bounds must have been run."""
    found = Table(
        "cell",
        "kept",
        "late: start",
        "late: sizing",
        "first 10 min",
        "need",
        "x",
        "full",
        "reactive",
    )
    shares, reactive = _bounds(known, "clairvoyant"), _bounds(known, "ideal-reactive")
    with ProcessPoolExecutor(max_workers=workers) as pool:
        chosen = [cell for cell in cells if cell in shares]
        for cause in pool.map(of_run, chosen, [shares[cell][0] for cell in chosen]):
            best_h, score = shares[cause.cell][1], cause.score
            ideal = reactive.get(cause.cell)
            found.add_row(
                cause.cell.name,
                "yes" if score.kept else "NO",
                f"{100 * cause.by_start:.1f} %",
                f"{100 * cause.by_sizing:.1f} %",
                f"{100 * cause.first:.1f} %",
                f"{cause.worst_need:.1f}",
                f"{score.gpu_hours / best_h:.2f}",
                f"{100 * score.full_share:.1f} %",
                "none" if ideal is None else f"{ideal[1] / best_h:.2f}",
            )
    return found


def _bounds(
    known: Mapping[tuple[Cell, Setting], Record], kind: str
) -> dict[Cell, tuple[float, float]]:
    """Return share and GPU-hours of the cheapest bound that keeps the promises, by cell."""
    found: dict[Cell, tuple[float, float]] = {}
    for (cell, setting), record in known.items():
        if setting.kind != kind or not record.score.kept:
            continue
        one = float(dict(setting.knobs)["share"]), record.score.gpu_hours
        if cell not in found or one[1] < found[cell][1]:
            found[cell] = one
    return found
