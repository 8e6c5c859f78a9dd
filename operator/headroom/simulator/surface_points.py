"""Random points off the grid of the tables: `python -m headroom.simulator.surface_points FILE`.

What the model is held against: each row is one simulated cell, with its seed and length.
"""

from __future__ import annotations

import argparse
import csv
import math
from pathlib import Path

import numpy as np
from rich.progress import track

from headroom.scaling import surface_axes as axes
from headroom.scaling.values import Routing
from headroom.simulator.steady_state import Cell, percentiles
from headroom.simulator.surface import RELAXATIONS, requests_for

POINTS = 720
SEED = 20
SHORTEST = 1_000_000
BATCHES = (1, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
ROUTINGS = (Routing.RANDOM, *axes.ROUTINGS)
HEADER = ("routing", "replicas", "share", "batch", "cv", "utilization", "requests", "seed")


def draw(chance: np.random.Generator, routing: Routing) -> Cell:
    """Return a cell with 2 to 40 replicas; half of the cells are without variation."""
    batch = int(chance.choice(BATCHES))
    varied = chance.random() < 0.5
    return Cell(
        routing=routing,
        replicas=round(math.exp(chance.uniform(math.log(2), math.log(40)))),
        fixed_share=round(chance.uniform(0.05, 0.95), 3) if batch > 1 else 1.0,
        max_batch=batch,
        cv=round(chance.uniform(0.05, 1.5 if batch == 1 else 0.8), 3) if varied else 0.0,
        utilization=round(chance.uniform(0.05, 0.95), 3),
    )


def main() -> None:
    """Simulate the points and write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    path: Path = parser.parse_args().file
    chance = np.random.default_rng(SEED)
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow([*HEADER, *(f"p{100 * wanted:g}" for wanted in axes.PERCENTILES)])
        for seed in track(range(POINTS), description="points"):
            cell = draw(chance, ROUTINGS[seed % len(ROUTINGS)])
            needed = requests_for(cell.max_batch, cell.cv, cell.utilization, RELAXATIONS)
            requests = max(SHORTEST, needed)
            latencies = percentiles(cell, requests, seed, axes.PERCENTILES)
            out.writerow(
                [cell.routing.value, cell.replicas, cell.fixed_share, cell.max_batch, cell.cv]
                + [cell.utilization, requests, seed]
                + [f"{latency:.4g}" for latency in latencies]
            )


if __name__ == "__main__":
    main()
