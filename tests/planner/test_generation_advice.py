"""The settings that `headroom plan generation` recommends."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headroom.planner.accelerators import TABLE
from headroom.planner.generation.generating_service import GeneratingService
from headroom.planner.generation.serving_settings import recommend
from headroom.planner.generation.setting_effects import Setting
from headroom.planner.generation.token_plan import plan_generation
from headroom.scaling.values.tokens import EngineLimits, Target, TokenTargets
from planner.generation_plans import LONG_PROMPTS, PUBLISHED, VARIED
from support.generating_plants import requests


def advised(service: GeneratingService, arrival_rps: float) -> dict[str, Setting]:
    return {one.name: one for one in recommend(service, arrival_rps).settings}


def test_recommendation_of_a_memory_bound_service_quantizes_its_cache() -> None:
    settings = advised(PUBLISHED, 20.0)
    assert settings["quantized cache (fp8)"].value.startswith("on")
    assert "->" in settings["quantized cache (fp8)"].effect
    assert settings["prefill and decode pools"].value == "one pool"
    assert "by requests" in settings["limits of clients"].reason


def test_recommendation_for_lengths_that_vary_limits_tokens() -> None:
    assert "by tokens" in advised(VARIED, 20.0)["limits of clients"].reason


def number(setting: Setting) -> int:
    return int(setting.value.split()[0])


def full_iteration(setting: Setting) -> tuple[int, float]:
    """Return the tokens and the seconds that the reason states."""
    words = setting.reason.split()
    return int(words[words.index("of") + 1]), float(words[words.index("takes") + 1]) / 1e3


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
@pytest.mark.parametrize("lengths", [(500, 200), (4000, 1000), (2000, 4000)])
def test_all_settings_together_carry_the_rate_with_the_replicas_they_are_said_to_need(
    row: Any, lengths: tuple[int, int]
) -> None:
    """Seats for nine replicas leave most requests waiting at the seven of a quantized cache."""
    given = replace(
        VARIED,
        shape=requests(*lengths, prompt_cv=1.0, output_cv=1.0),
        cost=row.cost,
        limits=replace(VARIED.limits, kv_tokens=row.kv_tokens),
    )
    advice, settings = recommend(given, 10.0), advised(given, 10.0)
    limits = EngineLimits(
        kv_tokens=row.kv_tokens * (1 + settings["quantized cache (fp8)"].value.startswith("on")),
        sequences=number(settings["sequences at once"]),
        iteration_tokens=number(settings["tokens of an iteration"]),
    )
    if settings["speculation"].value == "off":
        assert plan_generation(replace(given, limits=limits), 10.0).replicas == advice.plan.replicas
    assert number(settings["sequences at once"]) > advice.plan.sequences


def test_no_setting_saves_replicas_by_giving_up_a_promise() -> None:
    """Chunks of 512 tokens make an idle replica miss 2.3 s, and then nothing asks for replicas."""
    for first_s in (2.2, 2.3, 2.4, 2.6):
        targets = TokenTargets(
            first_token=Target(percentile=0.95, seconds=first_s),
            output_token=Target(percentile=0.95, seconds=0.05),
        )
        service = replace(LONG_PROMPTS, targets=targets)
        before, after = plan_generation(service, 5.0), recommend(service, 5.0).plan
        assert dict(after.infeasible).keys() <= dict(before.infeasible).keys()


def test_queue_of_a_replica_is_what_it_computes_in_time_while_it_decodes() -> None:
    """Chunks of 1024 tokens in 88 ms: 11 600 tokens per second, not 18 100."""
    advice, settings = recommend(VARIED, 10.0), advised(VARIED, 10.0)
    chunk, full_s = full_iteration(settings["tokens of an iteration"])
    room_s = 3.0 - advice.plan.first_token_s / 2
    assert number(settings["limits of clients"]) == pytest.approx(chunk / full_s * room_s, rel=0.02)


def test_queue_of_a_replica_is_not_sized_by_a_promise_that_an_idle_replica_breaks() -> None:
    """Within 1 ms no prompt is computed: a queue of 1 token would reject every request."""
    broken = replace(VARIED.targets, first_token=Target(percentile=0.95, seconds=0.001))
    without = replace(VARIED.targets, first_token=None)
    sizes = [
        number(advised(replace(VARIED, targets=one), 10.0)["limits of clients"])
        for one in (broken, without)
    ]
    assert sizes[0] == sizes[1] > 10_000


def test_full_iteration_includes_attention_and_experts() -> None:
    mixture = next(one for one in TABLE if one.name == "qwen3-30b-a3b/h100")
    for cost, shape in (
        (LONG_PROMPTS.cost, LONG_PROMPTS.shape),
        (mixture.cost, requests(2000, 400)),
    ):
        service = replace(LONG_PROMPTS, cost=cost, shape=shape)
        chunk, full_s = full_iteration(advised(service, 5.0)["tokens of an iteration"])
        products = shape.prompt_tokens_squared / (2.0 * shape.prompt_tokens)
        assert full_s >= 0.99 * cost.iteration_s(chunk, 1, 0, chunk * products)
