"""decide() for services that generate, in a loop with a token-level simulation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headroom.scaling import Reason
from headroom.scaling.values.tokens import (
    Binding,
    Target,
)
from scaling.generation.generation_loop import TARGETS, loop, true_capacity
from support.generating_plant import GeneratingPlant, fixed_lengths, varied_lengths
from support.generating_plants import LLAMA_8B, QWEN_32B


@pytest.mark.parametrize("sums", [False, True])
def test_decision_after_varied_load_knows_the_capacity_within_3_percent(sums: bool) -> None:
    found = loop(
        QWEN_32B, varied_lengths(3000, 500), lambda t: 3.0 + 2.0 * (t % 300 > 150), 3, sums=sums
    )
    decision = found.run(900.0, act=False)
    assert decision.generation is not None
    assert decision.generation.identification.known
    capacity = decision.generation.capacity_rps
    assert capacity == pytest.approx(true_capacity(found, QWEN_32B), rel=0.03)


def test_decision_at_steady_load_knows_the_capacity_within_6_percent() -> None:
    found = loop(LLAMA_8B, varied_lengths(1000, 300), lambda t: 24.0, 2)
    decision = found.run(900.0, act=False)
    assert decision.generation is not None
    capacity = decision.generation.capacity_rps
    assert capacity == pytest.approx(true_capacity(found, LLAMA_8B), rel=0.06)


def test_decision_of_a_rising_load_follows_memory_and_keeps_the_promise() -> None:
    found = loop(QWEN_32B, fixed_lengths(4000, 1000), lambda t: 2.0 + 3.0 * (t > 400), 2)
    decision = found.run(900.0)
    assert decision.generation is not None
    assert decision.generation.binding is Binding.MEMORY
    assert 4 <= decision.replicas <= 6
    assert found.late() < 0.10
    models = [
        rule
        for one in found.decisions
        for rule in one.recommendations
        if rule.rule is Reason.LATENCY_MODEL
    ]
    assert "memory binds: 88% of the KV tokens at p99" in models[-1].detail


def test_decision_at_a_steady_load_keeps_its_replicas() -> None:
    """Answers end unevenly, which is no sign of hidden demand."""
    found = loop(QWEN_32B, fixed_lengths(4000, 1000), lambda t: 4.5, 4)
    found.run(600.0)
    assert {one.replicas for one in found.decisions} == {4}
    assert found.late() == 0.0


def test_decision_of_longer_prompts_at_the_same_rate_adds_replicas_before_latency_rises() -> None:
    long = 600.0

    def lengths(source: object, plant: list[GeneratingPlant]) -> tuple[int, int]:
        return (4000, 500) if plant[0].next_s < long else (10_000, 500)

    plants: list[GeneratingPlant] = []
    found = loop(QWEN_32B, lambda source: lengths(source, plants), lambda t: 3.0, 2)
    plants.append(found.plant)
    before = found.run(long)
    after = found.run(long + 120.0)
    assert after.replicas > before.replicas
    first = next(
        one for one in found.decisions if one.time_s > long and one.replicas > before.replicas
    )
    assert first.generation is not None
    assert first.generation.first_token is not None
    assert first.generation.first_token.measured_s is not None
    assert first.generation.first_token.measured_s < 2.0


def test_decision_of_a_surge_lets_new_replicas_carry_it_alone() -> None:
    """The first token is in time at every replica that was added, from its first request on."""
    found = loop(QWEN_32B, fixed_lengths(4000, 300), lambda t: 5.0 + 6.0 * (t > 200), 2)
    before = found.run(200.0)
    old = tuple(found.plant.engines)
    found.run(320.0)
    assert before.replicas == 2
    added = [one for one in found.plant.engines if one not in old]
    late = [value > 2.0 for engine in added for value in engine.first.values]
    assert len(late) > 300
    assert sum(late) < 0.05 * len(late)
    most = max(one.replicas for one in found.decisions)
    assert 5 <= most <= 9
    queued = [one.replicas for one in found.decisions if one.time_s > 210.0]
    assert queued == sorted(queued)


def test_decision_with_half_of_the_pages_missing_in_one_tick_expects_no_queue() -> None:
    """A silent replica serves; taken as none, the others would have twice the arrivals."""
    found = loop(QWEN_32B, fixed_lengths(3000, 300), lambda t: 10.0, 4)
    before = found.run(200.0)
    found.see = lambda seen: replace(seen, samples=seen.samples[len(seen.samples) // 2 :])
    after = found.run(202.0)
    assert after.replicas == before.replicas
    assert Reason.QUEUE_DEPTH not in {one.rule for one in after.recommendations}


def test_decision_with_a_promise_below_the_floor_names_it_and_does_not_chase_it() -> None:
    impossible = replace(TARGETS, output_token=Target(percentile=0.95, seconds=0.010))
    found = loop(QWEN_32B, fixed_lengths(2000, 200), lambda t: 2.0, 2, targets=impossible)
    decision = found.run(400.0)
    assert decision.generation is not None
    assert decision.generation.infeasible == (Binding.TIME_PER_OUTPUT_TOKEN,)
    assert not decision.feasible
    floor = decision.generation.output_token
    assert floor is not None
    assert floor.floor_s == pytest.approx(0.0132, rel=0.1)
    assert decision.replicas <= 2
