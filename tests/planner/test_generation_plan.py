"""`headroom plan generation`: replicas from token lengths, and effects of settings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headroom.planner.accelerators import TABLE
from headroom.planner.generation.split_pools import plan_split
from headroom.planner.generation.token_plan import plan_generation
from headroom.scaling.values.tokens import Binding, Target, TokenTargets
from planner.generation_plans import LONG_PROMPTS, PUBLISHED
from support.generating_plants import requests


def test_plan_of_the_published_load_needs_seven_replicas_for_its_peak() -> None:
    """llm-d kept its promises at 10/s with 8 replicas of two H100."""
    found = plan_generation(PUBLISHED, 10.0)
    assert found.replicas == 7
    assert found.binding is Binding.MEMORY
    assert found.gpu_hours_per_day == 7 * 2 * 24
    tokens_per_day = 10 * 1000 * 86_400
    price = found.gpu_hours_per_day * 3.0 / tokens_per_day * 1e6
    assert found.price_per_million_tokens == pytest.approx(price)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_plan_of_every_row_of_the_table_carries_its_rate(row: Any) -> None:
    service = replace(
        PUBLISHED,
        cost=row.cost,
        gpus=row.gpus,
        limits=replace(PUBLISHED.limits, kv_tokens=row.kv_tokens),
    )
    found = plan_generation(service, 10.0)
    assert found.replicas * found.capacity_rps >= 10.0 * (1 - 1e-3)
    uses = service.fleet().capacity.replica.uses(10.0 / found.replicas, found.replicas)
    assert max(uses.values()) <= 1.0
    assert not found.infeasible


def test_split_of_the_published_load_is_no_cheaper_and_its_ratio_follows_the_lengths() -> None:
    """Dynamo's own replay shows split pools costing 2 to 3.5 times the GPU-hours."""
    split = plan_split(PUBLISHED, 10.0)
    assert split is not None
    assert split.replicas >= plan_generation(PUBLISHED, 10.0).replicas
    long = plan_split(replace(PUBLISHED, shape=requests(12_000, 300)), 10.0)
    assert long is not None
    assert long.prefill / long.decode > split.prefill / split.decode


def test_promise_that_the_replicas_miss_by_its_own_prompts_is_named() -> None:
    """Simulated, nine replicas keep 2.3 s for 94 % of the requests, not for 95 %."""
    targets = TokenTargets(first_token=Target(percentile=0.95, seconds=2.3))
    service = replace(LONG_PROMPTS, targets=targets)
    found = plan_generation(service, 5.0)
    ((binding, expected_s, enough),) = found.missed
    assert binding is Binding.TIME_TO_FIRST_TOKEN
    assert expected_s > 2.3
    replica = service.fleet().capacity.replica
    assert replica.use(binding, 5.0 / enough, enough) <= 1.01
    assert replica.use(binding, 5.0 / (enough - 1), enough - 1) > 1.01
    assert not plan_generation(PUBLISHED, 10.0).missed
