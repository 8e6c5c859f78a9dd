"""decide() for services that generate, in a loop with a token-level simulation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest

from generating_plant import GeneratingPlant, Lengths, fixed_lengths, varied_lengths
from generating_plants import LLAMA_8B, QWEN_32B
from headroom.scaling import Decision, Observation, Policy, Reason, State, decide
from headroom.scaling.generation.learned_fleet import fleet_of
from headroom.scaling.values.observation import GatewayRejections, PodSample
from headroom.scaling.values.policy import Routing
from headroom.scaling.values.tokens import (
    Binding,
    EngineLimits,
    IterationCost,
    Target,
    TokenTargets,
)

LIMITS = EngineLimits(kv_tokens=350_000, sequences=256, iteration_tokens=8192)
TARGETS = TokenTargets(
    first_token=Target(percentile=0.95, seconds=2.0),
    output_token=Target(percentile=0.95, seconds=0.06),
)


UNUSUAL = IterationCost(fixed_s=0.03, prompt_token_s=2e-5, sequence_s=0.003, context_token_s=0.0)
"""A tenth of an iteration per sequence, where a GPU needs a hundredth: the engine of the demo."""
UNTIMED = ("engine_seconds", "sequence_steps", "sequence_seconds", "iterations")


@dataclass
class Loop:
    """A plant that decide() scales."""

    plant: GeneratingPlant
    targets: TokenTargets | None = TARGETS
    latency_target_s: float = 60.0
    see: Callable[[Observation], Observation] = lambda observation: observation
    state: State = field(default_factory=State.initial)
    decisions: list[Decision] = field(default_factory=list)

    def run(self, until_s: float, *, act: bool = True) -> Decision:
        """Tick until then; return the last decision."""
        policy = Policy(
            latency_target_s=self.latency_target_s,
            token_targets=self.targets,
            routing=Routing.LEAST_IN_FLIGHT,
            max_replicas=40,
        )
        while self.plant.now_s < until_s:
            self.plant.run(2.0)
            decision, self.state = decide(policy, self.state, self.see(self.plant.observe()))
            self.decisions.append(decision)
            if act:
                self.plant.scale(decision.replicas)
        return self.decisions[-1]

    def late(self) -> float:
        """Share of first tokens after the promise."""
        engines = (*self.plant.engines, *self.plant.draining)
        values = [value for engine in engines for value in engine.first.values]
        assert self.targets is not None
        target = self.targets.first_token
        assert target is not None
        return sum(value > target.seconds for value in values) / len(values)


def loop(
    cost: IterationCost,
    lengths: Lengths,
    rate_rps: Callable[[float], float],
    replicas: int,
    *,
    sums: bool = False,
    targets: TokenTargets = TARGETS,
) -> Loop:
    plant = GeneratingPlant(cost=cost, limits=LIMITS, lengths=lengths, rate_rps=rate_rps, sums=sums)
    plant.scale(replicas, at_once=True)
    return Loop(plant, targets)


def true_capacity(found: Loop, cost: IterationCost) -> float:
    """The capacity with the cost of the plant in place of the learned one, all else equal."""
    inputs = found.state.generation.inputs
    assert inputs is not None
    assert found.targets is not None
    true = replace(inputs, cost=cost)
    fleet = fleet_of(true, found.targets, Routing.LEAST_IN_FLIGHT, 60.0)
    return fleet.capacity_rps(60.0, len(found.plant.engines))


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


def test_decision_before_its_cost_is_known_counts_misses_of_tokens_and_not_of_answers() -> None:
    """An answer of 300 tokens takes longer than the promise for the first; it is none."""
    found = loop(LLAMA_8B, varied_lengths(1000, 300), lambda t: 6.0, 2)
    found.latency_target_s = 0.5
    found.run(60.0, act=False)
    assert found.state.budget.ended > 100.0
    assert found.state.budget.late == 0.0
    assert found.state.risk.level == 0.0


def test_decision_without_engine_times_learns_from_the_time_between_tokens() -> None:
    """What vLLM reports: iterations and times between tokens, no seconds of the engine."""
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


def test_counters_of_iterations_that_stand_still_are_not_awaited_for_ever() -> None:
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


def promised(percentile: float) -> TokenTargets:
    """Return both promises at one percentile."""
    return TokenTargets(
        first_token=Target(percentile=percentile, seconds=2.0),
        output_token=Target(percentile=percentile, seconds=0.06),
    )


@pytest.mark.parametrize(("percentile", "budget_s", "spare"), [(0.95, "180s", 0), (0.99, "36s", 1)])
def test_reserve_lasts_as_long_as_the_promised_percentile_allows(
    percentile: float, budget_s: str, spare: int
) -> None:
    """The whole answer, which is not promised, stays at p95."""
    targets = promised(percentile)
    found = loop(QWEN_32B, fixed_lengths(3000, 300), lambda t: 10.0, 4, targets=targets)
    decision = found.run(200.0)
    reserves = [one for one in decision.recommendations if one.rule is Reason.RESERVE]
    assert len(reserves) == spare
    assert all(f"budget lasts {budget_s}" in one.detail for one in reserves)


def test_rejected_requests_of_a_p99_count_in_full() -> None:
    """2 % are rejected: twice what is allowed, not two fifths of it as of a p95."""
    found = loop(QWEN_32B, fixed_lengths(3000, 300), lambda t: 10.0, 4, targets=promised(0.99))
    found.see = lambda seen: replace(
        seen,
        rejected_at_gateway=GatewayRejections(
            time_s=seen.now_s, requests=0.02 * sum(one.arrivals for one in seen.samples)
        ),
    )
    found.run(300.0, act=False)
    assert found.state.budget.late_share == pytest.approx(0.02, abs=0.004)
    assert found.state.risk.level > 0.0


def test_what_an_older_version_learned_of_tokens_is_left_out_and_the_rest_is_kept() -> None:
    saved = State.initial().to_checkpoint() | {"generation": [1.0] * 29, "coldStarts": [42.0]}
    found = State.from_checkpoint(saved)
    assert found.generation.inputs is None
    assert found.generation.ledger.iterations == 0.0
    assert found.cold_starts.seconds == (42.0,)


def with_batches(observation: Observation) -> Observation:
    """Return the view with each ended request as a batch of 4 s, as Little's law gives alone."""

    def seen(one: PodSample) -> PodSample:
        ended = one.latency.counts[-1]
        return replace(one, batches=ended, batch_items=ended, batch_seconds=4 * ended, max_batch=64)

    return replace(observation, samples=tuple(map(seen, observation.samples)))


def embedding(observation: Observation) -> Observation:
    """Return the view of a server that counts iterations and prompts, and generates nothing."""

    def seen(one: PodSample) -> PodSample:
        page = one.generation
        assert page is not None
        page = replace(page, generated_tokens=0.0, sequence_steps=0.0, output_lengths=None)
        return replace(one, generation=page)

    return replace(observation, samples=tuple(map(seen, observation.samples)))


def standing(observation: Observation) -> Observation:
    """Return the view of servers whose counters of iterations do not count."""

    def seen(one: PodSample) -> PodSample:
        page = one.generation
        if page is None:
            return one
        page = replace(page, iterations=0.0, engine_seconds=0.0, sequence_seconds=0.0)
        return replace(one, generation=page)

    return replace(observation, samples=tuple(map(seen, observation.samples)))


def without(*fields: str) -> Callable[[Observation], Observation]:
    """Return the view of a server that does not report these."""

    def seen(observation: Observation) -> Observation:
        samples = tuple(
            replace(one, generation=replace(one.generation, **dict.fromkeys(fields)))  # type: ignore[arg-type]
            if one.generation is not None
            else one
            for one in observation.samples
        )
        return replace(observation, samples=samples)

    return seen
