"""Makes the tables of the tail-latency model: `python -m headroom.simulator.surface`.

Two tables, both over the time of a full batch. `BASE`: percentiles of one replica whose batches
take exactly what they cost, from the exact chain. `RATIO`: what variation and routing over N
replicas make of it, simulated, as a factor on BASE. A ratio is smooth where latency itself is not,
so its grid can be coarse. Takes half an hour on one core.
"""

from __future__ import annotations

import base64
import itertools
import lzma
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

from headroom.scaling import surface_axes as axes
from headroom.scaling.values import Routing
from headroom.simulator import batch_chain
from headroom.simulator.steady_state import Cell, percentiles

Floats = NDArray[np.float64]

TARGET = Path(axes.__file__).with_name("surface_table.py")
RELAXATIONS = 1000.0
"""Length of a run: the queue forgets within (1 + B cv^2) / (1 - rho)^2 requests."""
SHORTEST, LONGEST = 300_000, 3_000_000
COLUMN_COUNT = 96
TITLE = "Tables of the tail-latency model. Generated: `python -m headroom.simulator.surface`."


def requests_for(max_batch: int, cv: float, utilization: float, relaxations: float) -> int:
    """Return how many requests a run needs for its percentiles to be stable."""
    forgets = (1 + max_batch * cv * cv) / (1 - utilization) ** 2
    batches = 8_000 * max_batch
    return int(min(LONGEST, max(SHORTEST, batches, relaxations * forgets)))


def base_table() -> Floats:
    """Return ln latency, [shares, batches, base utilizations, percentiles]."""
    shape = (len(axes.BASE_SHARES), len(axes.BASE_BATCHES), len(axes.BASE_LOADS))
    table = np.zeros((*shape, len(axes.PERCENTILES)))
    cells = list(itertools.product(*map(range, shape)))
    for i, j, k in track(cells, description="exact chain"):
        share = axes.BASE_SHARES[i] if axes.BASE_BATCHES[j] > 1 else 1.0
        table[i, j, k] = np.log(
            batch_chain.percentiles(
                share, axes.BASE_BATCHES[j], axes.BASE_LOADS[k], axes.PERCENTILES
            )
        )
    return table


def ratio_table() -> Floats:
    """Return ln ratio, [routings, fleets, shares, batches, cvs, utilizations, percentiles]."""
    fleets = range(len(axes.FLEETS))
    grid = (range(len(axes.SHARES)), range(len(axes.BATCHES)), range(len(axes.CVS)))
    shape = (len(axes.ROUTINGS), len(fleets), *map(len, grid), len(axes.LOADS))
    table = np.full((*shape, len(axes.PERCENTILES)), np.nan)
    for i, j, m in track(list(itertools.product(*grid)), description="simulation"):
        batch, cv = axes.BATCHES[j], axes.CVS[m]
        if batch == 1 and i > 0:  # without batching there is no fixed share
            table[:, :, i, j, m] = table[:, :, 0, j, m]
            continue
        if batch > 1 and cv > 1:  # batches vary less; what lies beyond is extrapolated below
            continue
        for k, load in enumerate(axes.LOADS):
            simulate_cell(table[:, :, i, j, m, k], axes.SHARES[i], batch, cv, load)
    still, _, half, one = (np.exp(table[:, :, :, 1:, place]) for place in range(4))
    beyond = 3 * still - 8 * half + 6 * one  # the parabola through 0, 0.5 and 1 at 2
    table[:, :, :, 1:, -1] = np.log(np.maximum(beyond, one))
    return table


def simulate_cell(table: Floats, share: float, batch: int, cv: float, load: float) -> None:
    """Simulate one cell for every routing and fleet, [routings, fleets, percentiles]."""
    share = share if batch > 1 else 1.0
    exact = batch_chain.percentiles(share, batch, load, axes.PERCENTILES)
    requests = requests_for(batch, cv, load, RELAXATIONS)
    for (r, routing), (n, fleet) in itertools.product(
        enumerate(axes.ROUTINGS), enumerate(axes.FLEETS)
    ):
        if fleet == 1:
            table[r, n] = table[0, n] if r else 0.0
            if r or cv == 0:
                continue
        if fleet == 2 and routing is Routing.POWER_OF_TWO:
            table[r, n] = table[axes.ROUTINGS.index(Routing.LEAST_IN_FLIGHT), n]
            continue
        cell = Cell(
            routing=routing,
            replicas=fleet,
            fixed_share=share,
            max_batch=batch,
            cv=cv,
            utilization=load,
        )
        seed = zlib.crc32(repr((r, fleet, batch, share, cv, load)).encode())
        simulated = percentiles(cell, requests, seed, axes.PERCENTILES)
        table[r, n] = np.log(simulated / exact)


def literal(name: str, table: Floats) -> str:
    """Return a table as lines of Python: int16 steps of axes.STEP, low bytes first, compressed."""
    steps = np.rint(table / axes.STEP).astype("<i2")
    planes = np.ascontiguousarray(steps.reshape(-1, 1).view(np.uint8).T)
    text = base64.b64encode(lzma.compress(planes.tobytes())).decode()
    lines = [text[start : start + COLUMN_COUNT] for start in range(0, len(text), COLUMN_COUNT)]
    body = "\n".join(lines)
    return f'{name}_SHAPE = {steps.shape}\n{name} = """\n{body}\n"""\n'


def main() -> None:
    """Write the tables next to the model."""
    TARGET.write_text(
        f'"""{TITLE}"""\n\n' + literal("BASE", base_table()) + literal("RATIO", ratio_table()),
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
