"""Tokens per second and KV memory of a service, from the pages of its pods."""

from __future__ import annotations

import math

from headroom.controller.decide.token_rates import NO_TOKENS, TokenRates
from headroom.scaling.values.latency_counts import LatencyCounts
from headroom.scaling.values.observation import PodSample
from headroom.scaling.values.token_decision import GenerationMeasurement
from headroom.scaling.values.tokens import GenerationSample

NONE = LatencyCounts(bounds_s=(math.inf,), counts=(0.0,))


def sample(pod: str, tokens: GenerationSample | None) -> PodSample:
    return PodSample(
        pod=pod,
        time_s=0.0,
        arrivals=0.0,
        missed=0.0,
        waiting=0,
        running=0,
        latency=NONE,
        generation=tokens,
    )


def page(
    generated: float, computed: float | None = None, kv: float | None = None
) -> GenerationSample:
    return GenerationSample(
        generated_tokens=generated, computed_prompt_tokens=computed, kv_used_share=kv
    )


def observed(*ticks: tuple[float, dict[str, GenerationSample | None]]) -> TokenRates:
    rates = NO_TOKENS
    for now_s, pods in ticks:
        rates = rates.observe([sample(pod, one) for pod, one in pods.items()], now_s)
    return rates


def test_rates_of_two_pods_are_summed_and_memory_is_the_fullest() -> None:
    rates = observed(
        (0.0, {"a": page(100, 1000, 0.2), "b": page(50, 10, 0.7)}),
        (2.0, {"a": page(140, 1600, 0.3), "b": page(70, 10, 0.6)}),
    )
    assert rates.measurement == GenerationMeasurement(
        generated_tokens_per_s=30.0, prompt_tokens_per_s=300.0, kv_used_share=0.6
    )


def test_rate_of_a_new_and_of_a_restarted_pod_begins_at_its_page() -> None:
    rates = observed(
        (0.0, {"a": page(100)}),
        (2.0, {"a": page(8), "b": page(5000)}),
        (4.0, {"a": page(10), "b": page(5010)}),
    )
    found = rates.measurement
    assert found is not None
    assert found.generated_tokens_per_s == (8 + 2 + 10) / 4.0
    assert found.prompt_tokens_per_s is None, "not exposed is not zero"


def test_rate_forgets_what_is_older_than_a_minute() -> None:
    ticks: list[tuple[float, dict[str, GenerationSample | None]]] = [
        (2.0 * tick, {"a": page(1000.0 if tick else 0.0)}) for tick in range(40)
    ]
    found = observed(*ticks).measurement
    assert found is not None
    assert found.generated_tokens_per_s == 0.0


def test_rate_forgets_what_is_of_a_clock_that_was_ahead() -> None:
    found = observed(
        (600.0, {"a": page(0.0)}),
        (602.0, {"a": page(1000.0)}),
        (4.0, {"a": page(1010.0)}),
        (6.0, {"a": page(1020.0)}),
    ).measurement
    assert found is not None
    assert found.generated_tokens_per_s == 5.0


def test_service_without_tokens_has_no_measurement() -> None:
    assert observed((0.0, {"a": None}), (2.0, {"a": None})) is NO_TOKENS
    assert NO_TOKENS.measurement is None
