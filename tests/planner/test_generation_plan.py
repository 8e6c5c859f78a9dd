"""`headroom plan generation`: replicas from token lengths, and what the settings are worth."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from generating_plants import QWEN_32B, requests
from headroom.cli.app import app
from headroom.planner.accelerators import TABLE
from headroom.planner.errors import ImpossiblePlan
from headroom.planner.generation import GeneratingService, plan_generation, plan_split
from headroom.planner.serving_settings import recommend
from headroom.scaling.token_values import Binding, EngineLimits, Target, TokenTargets

PUBLISHED = GeneratingService(
    shape=requests(4000, 1000),
    cost=QWEN_32B,
    limits=EngineLimits(kv_tokens=350_000, sequences=256, iteration_tokens=8192),
    targets=TokenTargets(
        first_token=Target(percentile=0.9, seconds=3.0),
        output_token=Target(percentile=0.9, seconds=0.1),
    ),
    gpus=2,
    price_per_hour=3.0,
)
LINE = "generation 10 --prompt 4000 --answer 1000 --prompt-cv 0 --answer-cv 0 --on qwen3-32b/2xh100"


def plan(line: str) -> Result:
    return CliRunner().invoke(app, ["plan", *line.split()])


def report(line: str) -> Any:
    result = plan(line + " -o json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


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


def test_recommendation_of_a_memory_bound_service_quantizes_its_cache() -> None:
    settings = {one.name: one for one in recommend(PUBLISHED, 20.0)}
    assert settings["quantized cache (fp8)"].value == "on"
    assert "->" in settings["quantized cache (fp8)"].effect
    assert settings["prefill and decode pools"].value == "one pool"
    assert settings["limits of clients"].value == "requests"


def test_recommendation_for_lengths_that_vary_limits_tokens() -> None:
    varied = replace(PUBLISHED, shape=requests(4000, 1000, prompt_cv=1.0, output_cv=1.0))
    settings = {one.name: one for one in recommend(varied, 20.0)}
    assert settings["limits of clients"].value == "tokens"


def test_plan_generation_prints_replicas_what_binds_and_settings() -> None:
    result = plan(LINE + " --first-token 3s --output-token 100ms --gpu-price 3")
    assert result.exit_code == 0, result.stderr
    for text in ("Memory binds", "GPU-hours a day", "per million generated tokens", "speculation"):
        assert text in result.stdout


def test_plan_generation_as_json_has_every_bound() -> None:
    found = report(LINE + " --first-token 3s --output-token 100ms")
    assert found["binds"] == "Memory"
    assert set(found["bounds"]) == {
        "Memory",
        "Seats",
        "TimeToFirstToken",
        "TimePerOutputToken",
        "Utilization",
    }
    assert found["gpus"] == 2 * found["replicas"]


def test_plan_generation_names_a_promise_below_the_floor() -> None:
    result = plan(LINE + " --output-token 10ms")
    assert "TimePerOutputToken cannot be kept: an idle replica needs" in result.stdout


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("generation 10 --prompt 4000 --answer 1000", "the cost of an iteration must be given"),
        (LINE.replace("qwen3-32b/2xh100", "abacus"), "--on must be one of"),
        (LINE + " --cached 1", "--cached must be from 0 to below 1"),
        (LINE.replace("generation 10", "generation 0"), "the arrival rate must be above 0"),
        (LINE + " --accepted 0.5", "--accepted must be at least 1"),
    ],
)
def test_plan_generation_of_wrong_options_says_what_to_change(line: str, says: str) -> None:
    result = plan(line)
    assert result.exit_code == 2
    assert says in result.stderr


def test_plan_of_a_memory_too_small_for_one_request_is_impossible() -> None:
    small = replace(PUBLISHED, limits=replace(PUBLISHED.limits, kv_tokens=2000.0))
    with pytest.raises(ImpossiblePlan, match="the memory must hold a request"):
        plan_generation(small, 1.0)
