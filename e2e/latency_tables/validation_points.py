"""Random points of the operating range: `python -m latency_tables.validation_points FILE`.

They validate the tail-latency model. Each row is one simulated cell: percentiles of latency
over the time of a full batch, and the half-widths of their 95 % confidence, from five independent
runs. Most lie above a utilization of 0.2; the last are of hardly loaded replicas whose batches cost
little more than one request, as fast models have. Takes four minutes on one core.
"""

from __future__ import annotations

import argparse
import csv
import math
from pathlib import Path

import numpy as np
from rich.progress import track

from headroom.scaling.values.policy import Routing
from latency_tables.fleet_runs import Cell, percentiles
from latency_tables.surface import requests_for

MANY = (Routing.RANDOM, Routing.LEAST_IN_FLIGHT)
FEW = (Routing.POWER_OF_TWO, Routing.ROUND_ROBIN, Routing.CENTRAL)
ROUTINGS = (*3 * MANY, *FEW)
"""In turn: two thirds of the points are of the first two, a third of the others."""
POINTS, LOW_POINTS = 810, 180
SEED = 21
BATCHES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
LOW_BATCHES = (4, 6, 8, 12, 16, 24, 32, 64)
LOW_REQUESTS = (0.1, 3.0)
"""Requests that arrive at a replica in the time of one."""
LOW_GROWTH = (1.01, 2.0)
"""Time of a full batch over that of one request."""
LOW_CV = 0.3
MOST_REPLICAS = 32
PERCENTILES = (0.9, 0.95, 0.99)
RUNS = 5
T_QUANTILE = 2.776
"""Student's t at 97.5 % with RUNS - 1 degrees of freedom."""
RELAXATIONS = 3000
SHORTEST, LONGEST = 1_000_000, 15_000_000
HEADER = ("routing", "replicas", "per_item_over_fixed", "batch", "cv", "utilization", "seed")


def draw(chance: np.random.Generator, seed: int) -> tuple[Cell, float]:
    """Return a cell and its a / t0; in a third of the cells executions do not vary."""
    ratio = round(chance.uniform(0, 1), 3)
    batch = int(chance.choice(BATCHES))
    cv = round(chance.uniform(0, 1), 3)
    cell = Cell(
        routing=ROUTINGS[seed % len(ROUTINGS)],
        replicas=int(math.exp(chance.uniform(0, math.log(MOST_REPLICAS + 1)))),
        fixed_share=1 / (1 + batch * ratio) if batch > 1 else 1.0,
        max_batch=batch,
        cv=0.0 if chance.random() < 1 / 3 else cv,
        utilization=round(chance.uniform(0.2, 0.95), 3),
    )
    return cell, ratio


def draw_low(chance: np.random.Generator, seed: int) -> tuple[Cell, float]:
    """Return a hardly loaded cell and its a / t0; in half of the cells executions do not vary."""
    batch = int(chance.choice(LOW_BATCHES))
    growth = math.exp(chance.uniform(*np.log(LOW_GROWTH)))
    ratio = round((growth - 1) / (batch - growth), 5)
    requests = math.exp(chance.uniform(*np.log(LOW_REQUESTS)))
    cv = round(chance.uniform(0, LOW_CV), 3)
    cell = Cell(
        routing=ROUTINGS[seed % len(ROUTINGS)],
        replicas=int(math.exp(chance.uniform(0, math.log(MOST_REPLICAS + 1)))),
        fixed_share=1 / (1 + batch * ratio),
        max_batch=batch,
        cv=0.0 if chance.random() < 1 / 2 else cv,
        utilization=round(min(0.95, requests * growth / batch), 4),
    )
    return cell, ratio


def measured(cell: Cell, seed: int) -> tuple[list[float], list[float]]:
    """Return the percentiles and the half-widths of their confidence, relative to them."""
    needed = requests_for(cell.max_batch, cell.cv, cell.utilization, RELAXATIONS)
    each = min(LONGEST, max(SHORTEST, needed)) // RUNS
    runs = np.stack(
        [percentiles(cell, each, seed * RUNS + run, PERCENTILES) for run in range(RUNS)]
    )
    means = runs.mean(axis=0)
    widths = T_QUANTILE * runs.std(axis=0, ddof=1) / math.sqrt(RUNS) / means
    return means.tolist(), widths.tolist()


def main() -> None:
    """Simulate the points and write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    path: Path = parser.parse_args().file
    chance = np.random.default_rng(SEED)
    names = [f"p{100 * wanted:g}" for wanted in PERCENTILES]
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow([*HEADER, *names, *(f"{name}_half_width" for name in names)])
        for seed in track(range(POINTS + LOW_POINTS), description="points"):
            cell, ratio = (draw if seed < POINTS else draw_low)(chance, seed)
            means, widths = measured(cell, seed)
            out.writerow(
                [cell.routing.value, cell.replicas, ratio, cell.max_batch, cell.cv]
                + [cell.utilization, seed]
                + [f"{mean:.4g}" for mean in means]
                + [f"{width:.4f}" for width in widths]
            )


if __name__ == "__main__":
    main()
