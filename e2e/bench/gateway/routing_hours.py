"""GPU-hours that least-request routing saves compared with random choice at equal attainment.

The decision runs with each utilization ceiling in turn, and each kind of routing takes the
cheapest that reaches what random choice reaches with the defaults: so it is not the ceiling that
decides, which is the same for both, but what a replica carries. Simulated, 12 replicas on average,
cold starts of 60 s, the cells' smooth workloads; the cost is learned.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from statistics import mean

from bench.figures import Figure, at_most, shown
from decision_study.cells import Cell
from headroom.scaling.values.policy import Routing
from headroom.simulator.autoscalers import catalogue
from headroom.simulator.run import simulate

PROMISED = {"single": 0.60, "heavy": 0.88}
"""Share of the GPU-hours, by plant."""
NAMES = {"single": "no batching, cv 1", "heavy": "batches of 4"}
WORKLOADS = ("worldcup", "llm-hour", "servegen", "ramp")
CEILINGS = (0.7, 0.8, 0.84, 0.86, 0.88, 0.9, 0.92, 0.94, 0.96)
USUAL = 0.8
SEEDS = (1, 2)
_RANDOM, _LEAST = Routing.RANDOM, Routing.LEAST_IN_FLIGHT


@dataclass(frozen=True, slots=True)
class Setting:
    """All parameters of a run except its seed."""

    plant: str
    workload: str
    routing: Routing
    ceiling: float


@dataclass(frozen=True, slots=True)
class Result:
    """Attainment and GPU-hours over the seeds."""

    attainment: float
    gpu_hours: float


def measure() -> Sequence[Figure]:
    """Run all; some twelve minutes on two cores."""
    settings = [
        Setting(plant, workload, routing, ceiling)
        for plant in PROMISED
        for workload in WORKLOADS
        for routing in (_RANDOM, _LEAST)
        for ceiling in CEILINGS
    ]
    workers = ProcessPoolExecutor(
        len(os.sched_getaffinity(0)), mp_context=multiprocessing.get_context("spawn")
    )
    with workers:
        found = dict(zip(settings, workers.map(run, settings), strict=True))
    figures: list[Figure] = []
    for plant, promised in PROMISED.items():
        shares = []
        for workload in WORKLOADS:
            random, least = (_of(found, plant, workload, each) for each in (_RANDOM, _LEAST))
            reached = random[USUAL].attainment
            share = cheapest(least, reached) / cheapest(random, reached)
            shares.append(share)
            figures.append(shown(f"  {NAMES[plant]}, {workload}, at {reached:.2%}", f"{share:.2f}"))
        name = f"{NAMES[plant]}: GPU-hours of least in flight over random, as many in time"
        figures.append(at_most(name, mean(shares), promised, "x", 2))
    return figures


def run(setting: Setting) -> Result:
    """Simulate one setting once per seed."""
    cell = Cell(
        workload=setting.workload,
        plant=setting.plant,
        size=12,
        cold_start_s=60.0,
        routing=setting.routing,
    )
    # As many requests for both: a cell's own rate is what its routing can carry.
    scenario = replace(cell, routing=_RANDOM).scenario()
    (workload,) = scenario.workloads
    spec = cell.spec()
    policy = replace(spec.policy, utilization_ceiling=setting.ceiling)
    scenario = replace(scenario, workloads=(replace(workload, spec=replace(spec, policy=policy)),))
    scores = [
        simulate(scenario, lambda truth: catalogue.make("headroom", truth, {}), seed)[0].score
        for seed in SEEDS
    ]
    return Result(
        attainment=mean(score.attainment for score in scores),
        gpu_hours=mean(score.gpu_hours for score in scores),
    )


def cheapest(by_ceiling: dict[float, Result], attainment: float) -> float:
    """Return the fewest GPU-hours with which at least as many were in time; inf if none were."""
    enough = [one.gpu_hours for one in by_ceiling.values() if one.attainment >= attainment]
    return min(enough, default=float("inf"))


def _of(
    found: dict[Setting, Result], plant: str, workload: str, routing: Routing
) -> dict[float, Result]:
    return {each: found[Setting(plant, workload, routing, each)] for each in CEILINGS}
