"""decide() for services whose iterations are not timed: what they are sized by instead."""

from __future__ import annotations

from itertools import pairwise

import pytest

from headroom.scaling import State
from headroom.scaling.values.tokens import (
    Target,
    TokenTargets,
)
from scaling.generation.generation_loop import (
    UNTIMED,
    UNUSUAL,
    embedding,
    loop,
    standing,
    true_capacity,
    with_batches,
    without,
)
from support.generating_plant import fixed_lengths, varied_lengths
from support.generating_plants import LLAMA_8B, QWEN_32B


def test_decision_before_its_cost_is_known_counts_misses_of_tokens_and_not_of_answers() -> None:
    """An answer of 300 tokens takes longer than the promise for the first; it is none."""
    found = loop(LLAMA_8B, varied_lengths(1000, 300), lambda t: 6.0, 2)
    found.latency_target_s = 0.5
    found.run(60.0, act=False)
    assert found.state.budget.ended > 100.0
    assert found.state.budget.late == 0.0
    assert found.state.risk.level == 0.0


def test_decision_without_engine_times_learns_from_the_time_between_tokens() -> None:
    """As vLLM reports: iterations and times between tokens, no seconds of the engine."""
    found = loop(LLAMA_8B, varied_lengths(1000, 300), lambda t: 6.0 + 6.0 * (t % 300 > 150), 2)
    found.see = without("engine_seconds", "sequence_steps")
    decision = found.run(600.0, act=False)
    assert decision.generation is not None
    assert decision.generation.identification.source == "times between tokens"
    capacity = decision.generation.capacity_rps
    assert capacity == pytest.approx(true_capacity(found, LLAMA_8B), rel=0.10)


def test_decision_without_any_time_of_the_engine_says_so_and_falls_back() -> None:
    found = loop(LLAMA_8B, varied_lengths(1000, 300), lambda t: 6.0, 2)
    found.see = without(*UNTIMED)
    decision = found.run(120.0, act=False)
    assert decision.generation is not None
    assert decision.generation.capacity_rps is None
    assert not decision.generation.identification.known
    assert any("time per iteration" in one for one in decision.generation.identification.missing)


@pytest.mark.parametrize(
    ("lacking", "known"),
    [
        pytest.param((), True, id="the cost of an iteration follows from the pages"),
        pytest.param(UNTIMED, False, id="it never does: sized by the batches"),
    ],
)
def test_requests_of_a_new_service_are_batches_only_where_iterations_are_not_timed(
    lacking: tuple[str, ...], known: bool
) -> None:
    found = loop(LLAMA_8B, varied_lengths(800, 300), lambda t: 4.0, 1)
    hidden = without(*lacking)
    found.see = lambda observation: with_batches(hidden(observation))
    found.run(100.0)
    last = found.decisions[-1].generation
    assert last is not None
    assert last.identification.known is known
    assert (max(decision.replicas for decision in found.decisions) <= 2) is known


def test_queue_adds_replicas_while_the_cost_of_an_iteration_is_awaited() -> None:
    found = loop(LLAMA_8B, varied_lengths(8000, 500), lambda t: 30.0, 1)
    found.see = with_batches
    found.run(30.0)
    assert found.decisions[-1].generation is not None
    assert not found.decisions[-1].generation.identification.known
    assert 1 < found.decisions[-1].replicas <= 9


def test_counters_of_iterations_that_never_change_are_not_awaited_indefinitely() -> None:
    found = loop(LLAMA_8B, varied_lengths(800, 300), lambda t: 4.0, 1)
    found.see = lambda observation: with_batches(standing(observation))
    found.run(170.0)
    assert found.decisions[-1].replicas == 1
    found.run(240.0)
    assert found.decisions[-1].replicas > 2
    assert found.state.generation.inputs is None


def test_removals_go_no_further_at_once_than_twice_what_replicas_were_seen_to_carry() -> None:
    found = loop(UNUSUAL, fixed_lengths(800, 100), lambda t: 4.0, 10)
    found.targets = TokenTargets(output_token=Target(percentile=0.95, seconds=0.12))
    found.run(900.0)
    replicas = [decision.replicas for decision in found.decisions]
    falls = [(one, other) for one, other in pairwise(replicas) if other < one]
    assert falls[0] == (10, 5)
    assert replicas[-1] == min(replicas) == 3
    said = "what it carries beyond twice as many is not known yet"
    assert any(said in decision.message for decision in found.decisions)
    engines = (*found.plant.engines, *found.plant.draining)
    values = [value for engine in engines for value in engine.token.values]
    assert sum(value > 0.12 for value in values) <= 0.05 * len(values)


def test_promise_for_whole_answers_alone_is_sized_by_tokens_if_iterations_are_timed() -> None:
    found = loop(LLAMA_8B, varied_lengths(1000, 300), lambda t: 6.0, 2)
    found.targets, found.latency_target_s, found.see = None, 40.0, with_batches
    decision = found.run(400.0)
    assert decision.generation is not None
    assert decision.generation.identification.known
    assert decision.generation.latency is not None
    assert decision.generation.latency.target == Target(percentile=0.95, seconds=40.0)
    assert max(one.replicas for one in found.decisions) == 2
    assert decision.replicas == 1


def test_server_that_counts_tokens_and_generates_none_is_sized_by_its_batches() -> None:
    found = loop(LLAMA_8B, varied_lengths(1000, 2), lambda t: 6.0, 2)
    found.targets, found.latency_target_s = None, 40.0
    found.see = lambda observation: with_batches(embedding(observation))
    decision = found.run(60.0)
    assert decision.generation is None
    assert decision.utilization is not None


def test_decision_after_a_restart_knows_the_capacity_at_once() -> None:
    found = loop(QWEN_32B, varied_lengths(3000, 500), lambda t: 4.0, 3)
    before = found.run(400.0, act=False)
    found.state = State.from_checkpoint(found.state.to_checkpoint())
    after = found.run(410.0, act=False)
    assert before.generation is not None
    assert after.generation is not None
    assert after.generation.capacity_rps == pytest.approx(before.generation.capacity_rps, rel=0.05)
