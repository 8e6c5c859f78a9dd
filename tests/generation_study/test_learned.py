"""Capacities that a quarter of an hour teaches, of engines and mixes that decided no constant.

Parts of the cost are drawn within the ratios of measured engines; k/E also off the grid.
"""

from __future__ import annotations

import numpy as np
import pytest

from generation_study.learned import STEADY, VARIED, Case, measured
from headroom.scaling.values.tokens import IterationCost
from headroom.simulator.generation.plant import Engine

BOUNDS = {VARIED: 0.05, STEADY: 0.08}
"""Bounds of a single run: what is promised of the mean of three, and 2 % of chance in the
lengths."""


def drawn(number: int) -> tuple[Engine, tuple[float, float, float]]:
    """An engine and a mix: dense if even, else a mixture of experts."""
    random = np.random.default_rng([number, 30])
    prompt_s = float(np.exp(random.uniform(np.log(1.1e-5), np.log(6e-5))))
    fixed_s = prompt_s * random.uniform(200.0, 360.0)
    cost = IterationCost(
        fixed_s=fixed_s,
        prompt_token_s=prompt_s,
        sequence_s=prompt_s * random.uniform(0.6, 1.2),
        context_token_s=prompt_s * float(np.exp(random.uniform(np.log(6e-4), np.log(3.5e-3)))),
        prompt_product_s=prompt_s * random.uniform(2.7e-5, 6.2e-5),
        experts_s=fixed_s * random.uniform(3.0, 7.0) if number % 2 else 0.0,
        expert_share=float(random.choice((1 / 48, 1 / 32, 3 / 64, 1 / 16, 3 / 32))),
    )
    engine = Engine(cost=cost, kv_tokens=int(random.uniform(150_000, 500_000)))
    mix = float(random.uniform(800, 3500)), float(random.uniform(150, 600)), 0.8
    return engine, mix


@pytest.mark.parametrize("load", [VARIED, STEADY])
@pytest.mark.parametrize("number", range(4))
def test_capacity_of_a_drawn_engine_is_learned(number: int, load: tuple[float, float]) -> None:
    engine, mix = drawn(number)
    slowest_s = engine.cost.iteration_s(0.0, 64.0, 64.0 * (mix[0] + mix[1]))
    case = Case(engine=engine, mix=mix, load=load, first_s=4.0, output_s=2.0 * slowest_s)
    assert abs(measured(case).error) < BOUNDS[load]
