"""Compares a replica's capacity as learned in a quarter of an hour with the plant's own.

Five replicas, fixed in number, of five engines and two mixes of lengths: under a load that varies
between 0.3 and 0.9 of the capacity, and under a steady one of 0.6 of it. The capacity is that of
the decision, within all bounds: from what it has learned of cost and lengths, and from the plant's
coefficients and all drawn lengths. Both with the learned factors of the tails, which are measured
ratios and no part of the plant. Three seeds each, and their mean: that of some thousand lengths
differs by chance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np
from rich.console import Console
from rich.table import Table

from generation_study.cells import FIRST_S, OUTPUT_S
from headroom.scaling.generation.fleet.learned_fleet import fleet_of
from headroom.scaling.generation.learning.model_inputs import Inputs
from headroom.scaling.generation.replica_model.replica import TailFactors
from headroom.scaling.values.policy import Routing
from headroom.scaling.values.tokens import Binding, TokenTargets
from headroom.simulator.generation.autoscalers.headroom import TokenHeadroom
from headroom.simulator.generation.models import ENGINES, targets
from headroom.simulator.generation.plant import Engine, TokenService
from headroom.simulator.generation.requests import Requests
from headroom.simulator.generation.run import Truth, simulate_tokens
from headroom.simulator.generation.workloads import lognormal_lengths, poisson

REPLICAS = 5
LEARNING_S, BIN_S, PERIOD_S = 900.0, 10.0, 300.0
MIXES = ((1500.0, 250.0, 0.6), (4000.0, 400.0, 1.0))
"""Mean prompt and answer, and the coefficient of variation of both."""
VARIED, STEADY = (0.3, 0.9), (0.6, 0.6)
"""Lowest and highest load, in shares of the capacity."""
PROMISED = {VARIED: 0.03, STEADY: 0.06}
SEEDS = (1, 2, 3)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One engine, mix and load."""

    engine: Engine
    mix: tuple[float, float, float]
    load: tuple[float, float]
    first_s: float
    output_s: float
    """Promised times to first token and per output token."""
    seed: int = 1
    name: str = ""


@dataclass(frozen=True, kw_only=True)
class Learned:
    """Learned and true capacity of a case, in requests per second and replica."""

    case: Case
    learned_rps: float
    true_rps: float
    cost_ratio: float
    """Learned over true engine seconds of a request."""
    binds: Binding | None

    @property
    def error(self) -> float:
        """Learned over true capacity, less 1."""
        return self.learned_rps / self.true_rps - 1.0


def cases() -> Iterator[Case]:
    """Yield every engine, mix and load, with its seeds one after the other."""
    for load in (VARIED, STEADY):
        for name, engine in ENGINES.items():
            for mix in MIXES:
                for seed in SEEDS:
                    yield Case(
                        name=name,
                        engine=engine,
                        mix=mix,
                        load=load,
                        first_s=FIRST_S.get(name, 3.0),
                        output_s=OUTPUT_S.get(name, 0.075),
                        seed=seed,
                    )


def measured(case: Case) -> Learned:
    """Let the decision watch the load, and compare."""
    engine, promises = case.engine, targets(case.first_s, case.output_s)
    prompts, answers, cv = case.mix
    random = np.random.default_rng([case.seed, 1])
    drawn = Requests(
        arrival_s=np.arange(20_000.0),
        prompt_tokens=lognormal_lengths(np.full(20_000, prompts), cv, random),
        output_tokens=lognormal_lengths(np.full(20_000, answers), cv, random),
    ).bounded(engine.context_tokens)
    true = Inputs(
        cost=engine.cost, shape=drawn.shape(), limits=engine.limits, factors=TailFactors()
    )
    requests = _requests(case, drawn, REPLICAS * _capacity_rps(true, promises))
    service = TokenService(
        engine=engine,
        targets=promises,
        min_replicas=REPLICAS,
        max_replicas=REPLICAS,
        initial_replicas=REPLICAS,
    )
    watching: list[TokenHeadroom] = []

    def watched(truth: Truth) -> TokenHeadroom:
        watching.append(TokenHeadroom(truth=truth))
        return watching[-1]

    simulate_tokens(service, requests, watched, case.seed)
    known = watching[0].state.generation.inputs
    if known is None:
        raise RuntimeError(f"nothing was learned of {case}")
    true = replace(true, shape=requests.bounded(engine.context_tokens).shape())
    true = replace(true, factors=known.factors)
    works = [
        fleet_of(one, promises, Routing.LEAST_IN_FLIGHT, 1.0).capacity.replica.work.request_s
        for one in (known, true)
    ]
    return Learned(
        case=case,
        learned_rps=_capacity_rps(known, promises),
        true_rps=_capacity_rps(true, promises),
        cost_ratio=works[0] / works[1],
        binds=fleet_of(true, promises, Routing.LEAST_IN_FLIGHT, 1.0).capacity.binding(REPLICAS),
    )


def _requests(case: Case, drawn: Requests, full_rps: float) -> Requests:
    """Return a quarter of an hour at this share of the full rate."""
    lowest, highest = case.load
    at_s = BIN_S * np.arange(int(LEARNING_S / BIN_S))
    wave = 0.5 - 0.5 * np.cos(2.0 * math.pi * at_s / PERIOD_S)
    arrival_s = poisson(full_rps * (lowest + (highest - lowest) * wave), BIN_S, case.seed)
    rows = np.arange(len(arrival_s)) % len(drawn)
    return Requests(
        arrival_s=arrival_s,
        prompt_tokens=drawn.prompt_tokens[rows],
        output_tokens=drawn.output_tokens[rows],
    )


def _capacity_rps(inputs: Inputs, promises: TokenTargets) -> float:
    fleet = fleet_of(inputs, promises, Routing.LEAST_IN_FLIGHT, 1.0)
    return fleet.capacity_rps(1.0, REPLICAS)


def main(console: Console, jobs: int) -> int:
    """Print learned and true capacities; exits 1 if one differs by more than its goal."""
    with ProcessPoolExecutor(max_workers=jobs) as pool:
        every = list(pool.map(measured, cases()))
    groups = [every[start : start + len(SEEDS)] for start in range(0, len(every), len(SEEDS))]
    table = Table("engine", "prompt", "load", "true", "error", "of each seed", "cost", "binds")
    worst = dict.fromkeys(PROMISED, 0.0)
    for group in groups:
        case, error = group[0].case, fmean(one.error for one in group)
        lowest, highest = case.load
        worst[case.load] = max(worst[case.load], abs(error))
        table.add_row(
            case.name,
            f"{case.mix[0]:g}",
            "steady" if lowest == highest else "varied",
            f"{fmean(one.true_rps for one in group):.3g}/s",
            f"{100 * error:+.1f}" + ("" if abs(error) <= PROMISED[case.load] else " !"),
            " ".join(f"{100 * one.error:+.1f}" for one in group),
            f"{100 * (fmean(one.cost_ratio for one in group) - 1):+.0f}",
            str(group[0].binds),
        )
    console.print(table)
    for load, promised in PROMISED.items():
        name = "steady" if load == STEADY else "varied"
        console.print(f"{name}: at most {100 * worst[load]:.1f} % (goal: {100 * promised:g} %)")
    return 0 if all(worst[load] <= promised for load, promised in PROMISED.items()) else 1
