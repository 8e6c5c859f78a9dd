"""The capacity of each routing, against an independent simulation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from headroom.scaling.values.policy import Routing
from headroom.simulator.plant import Server
from simulator.fakes_plant import ALONE, Plant, poisson, service

HEAVY = Server(fixed_s=0.150, per_item_s=0.060, max_batch=4)


@dataclass(frozen=True)
class Cell:
    """Highest utilization at which at most 5 % of the requests miss, for 4 and 12 replicas."""

    routing: Routing
    four: float
    twelve: float


BATCHES = [
    Cell(Routing.RANDOM, 0.87, 0.87),
    Cell(Routing.ROUND_ROBIN, 0.96, 0.98),
    Cell(Routing.POWER_OF_TWO, 0.96, 0.98),
    Cell(Routing.LEAST_IN_FLIGHT, 0.96, 0.98),
    Cell(Routing.CENTRAL, 0.96, 0.98),
]
NO_BATCHES = [
    Cell(Routing.RANDOM, 0.53, 0.53),
    Cell(Routing.ROUND_ROBIN, 0.66, 0.71),
    Cell(Routing.POWER_OF_TWO, 0.81, 0.88),
    Cell(Routing.LEAST_IN_FLIGHT, 0.84, 0.94),
    Cell(Routing.CENTRAL, 0.86, 0.95),
]


@pytest.mark.parametrize("replicas", [4, 12])
@pytest.mark.parametrize("cell", [*BATCHES, *NO_BATCHES], ids=lambda cell: cell.routing.value)
def test_capacity_of_each_routing_matches_independent_simulation(cell: Cell, replicas: int) -> None:
    """At 0.02 less it keeps 95 % within 1.5 s (batches) or 2 s (none), at 0.025 more it does not.

    Where the step up would reach overload, the utilization is 0.999.
    """
    server, target_s = (HEAVY, 1.5) if cell in BATCHES else (ALONE, 2.0)
    limit = cell.four if replicas == 4 else cell.twelve
    kept = []
    for utilization in (limit - 0.02, min(0.999, limit + 0.025)):
        plant = Plant(service(server, routing=cell.routing, target_s=target_s), replicas)
        plant.run(poisson(utilization * replicas * server.full_rps, 80_000))
        kept.append(plant.attainment >= 0.95)
    assert kept == [True, False]


def test_sticky_connections_have_the_lowest_capacity() -> None:
    """Four replicas at 0.67: 95 % on average over the chances of 64 bindings."""
    one = service(HEAVY, routing=Routing.STICKY, target_s=1.5)
    kept = [
        Plant(one, 4, seed=77 * seed).run(poisson(0.67 * 4 * HEAVY.full_rps, 20_000, seed))
        for seed in range(1, 25)
    ]
    assert np.mean([plant.attainment for plant in kept]) == pytest.approx(0.95, abs=0.04)
