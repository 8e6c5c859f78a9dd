"""The rate that a generating replica carries, and which bound it is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from headroom.scaling.generation.fleet.admission import most_in_flight
from headroom.scaling.generation.fleet.generating_fleet import GeneratingFleet
from headroom.scaling.generation.fleet.learned_fleet import fleet_of
from headroom.scaling.generation.learning.model_inputs import Inputs
from headroom.scaling.generation.replica_model.capacity import Capacity
from headroom.scaling.generation.replica_model.first_token import first_token_s
from headroom.scaling.generation.replica_model.occupancy import occupancy_of
from headroom.scaling.generation.replica_model.replica import GeneratingReplica, TailFactors
from headroom.scaling.generation.replica_model.work import work_of
from headroom.scaling.values.policy import Routing
from headroom.scaling.values.tokens import (
    Binding,
    EngineLimits,
    IterationCost,
    RequestShape,
    Target,
    TokenTargets,
)
from support.generating_plants import LLAMA_8B, LONG, QWEN_32B, requests

INTERACTIVE = TokenTargets(
    first_token=Target(percentile=0.9, seconds=3.0),
    output_token=Target(percentile=0.9, seconds=0.1),
)
H100 = EngineLimits(kv_tokens=350_000, sequences=256, iteration_tokens=8192)


def capacity(
    cost: IterationCost = QWEN_32B,
    shape: RequestShape = LONG,
    limits: EngineLimits = H100,
    targets: TokenTargets = INTERACTIVE,
    routing: Routing = Routing.RANDOM,
) -> Capacity:
    output_cv = (shape.output_tokens_squared / shape.output_tokens**2 - 1.0) ** 0.5
    return Capacity(
        replica=GeneratingReplica(
            work=work_of(cost, shape),
            limits=limits,
            targets=targets,
            routing=routing,
            output_cv=output_cv,
        )
    )


SIMULATED_MS = {
    ("8B", "fixed"): (128, 162, 177),
    ("8B", "exponential"): (51, 65, 84, 110),
    ("32B", "fixed"): (381, 433),
    ("32B", "exponential"): (138, 182, 253, 309),
}
"""p95 of the time to first token in a token-level simulation at 30, 50, 65, 75 % of the engine's
time; the cells beyond the limit of the memory are left out."""


@pytest.mark.parametrize(("cell", "simulated_ms"), SIMULATED_MS.items())
def test_first_token_against_a_simulation_is_within_13_percent(
    cell: tuple[str, str], simulated_ms: tuple[float, ...]
) -> None:
    cost = LLAMA_8B if cell[0] == "8B" else QWEN_32B
    shape = LONG if cell[1] == "fixed" else requests(1000, 300, output_cv=1.0)
    work = work_of(cost, shape)
    for load, expected_ms in zip((0.3, 0.5, 0.65, 0.75), simulated_ms, strict=False):
        occupancy = occupancy_of(work, load / work.request_s)
        assert occupancy is not None
        found_ms = 1000 * first_token_s(occupancy, 0.95, 8192)
        assert found_ms == pytest.approx(expected_ms, rel=0.13)


def test_capacity_of_the_published_load_is_bound_by_memory() -> None:
    """Measured: 1.45/s per replica of 2 H100."""
    found = capacity()
    assert found.binding(1) is Binding.MEMORY
    assert found.rps(1.0, 1) == pytest.approx(1.45, rel=0.05)
    assert found.most_rps > found.rps(1.0, 1)


LLAMA_8B_H100 = EngineLimits(kv_tokens=450_000, sequences=256, iteration_tokens=8192)
SATURATED_RPS = {
    (4255, 1.4, 232): 6.18,
    (4285, 1.0, 232): 6.56,
    (4255, 1.4, 804): 2.92,
    (1484, 1.4, 402): 13.08,
    (1500, 0.6, 402): 13.22,
}
"""Requests per second of a simulated replica in front of which requests wait, by length of prompts,
their variation, and length of answers."""


@pytest.mark.parametrize(("mix", "measured_rps"), SATURATED_RPS.items())
def test_full_replica_serves_nearly_the_rate_at_which_its_memory_is_full(
    mix: tuple[float, float, float], measured_rps: float
) -> None:
    prompt, prompt_cv, answer = mix
    shape = requests(prompt, answer, prompt_cv=prompt_cv, output_cv=0.7)
    found = capacity(LLAMA_8B, shape, LLAMA_8B_H100)

    assert found.saturated_rps == pytest.approx(measured_rps, rel=0.06)


@pytest.mark.parametrize("replicas", [1, 2, 8, 64])
def test_no_rate_is_planned_at_which_a_full_replica_never_recovers(replicas: int) -> None:
    loose = TokenTargets(output_token=Target(percentile=0.95, seconds=1.0))
    shape = requests(4280, 800, prompt_cv=1.0, output_cv=0.7)
    found = capacity(LLAMA_8B, shape, LLAMA_8B_H100, loose, Routing.LEAST_IN_FLIGHT)

    assert found.binding(replicas) is Binding.MEMORY
    assert found.rps(1.0, replicas) < found.saturated_rps


@pytest.mark.parametrize("kv_tokens", [3000, 5000, 20_000, 450_000])
@pytest.mark.parametrize("variation", [0.0, 0.6, 1.4])
def test_memory_that_one_long_context_fills_does_not_request_more_and_more_replicas(
    kv_tokens: int, variation: float
) -> None:
    loose = TokenTargets(output_token=Target(percentile=0.95, seconds=1.0))
    shape = requests(2000, 200, prompt_cv=variation, output_cv=variation)
    limits = replace(LLAMA_8B_H100, kv_tokens=kv_tokens)
    found = capacity(LLAMA_8B, shape, limits, loose, Routing.RANDOM)
    alone_s = 200 * LLAMA_8B.fixed_s
    assert found.rps(1.0, 1) > 0.04 / alone_s  # 4 % of the time one sequence runs


@pytest.mark.parametrize(
    ("binding", "limits", "targets"),
    [
        (Binding.MEMORY, EngineLimits(kv_tokens=100_000), INTERACTIVE),
        (Binding.SEATS, EngineLimits(sequences=16, kv_tokens=350_000), INTERACTIVE),
        (
            Binding.TIME_PER_OUTPUT_TOKEN,
            EngineLimits(),
            TokenTargets(output_token=Target(percentile=0.95, seconds=0.03)),
        ),
        (
            Binding.TIME_TO_FIRST_TOKEN,
            EngineLimits(),
            TokenTargets(first_token=Target(percentile=0.95, seconds=0.4)),
        ),
        (
            Binding.LATENCY,
            EngineLimits(kv_tokens=350_000),
            TokenTargets(latency=Target(percentile=0.95, seconds=30.0)),
        ),
    ],
)
def test_capacity_names_what_binds(
    binding: Binding, limits: EngineLimits, targets: TokenTargets
) -> None:
    found = capacity(limits=limits, targets=targets)
    assert found.binding(1) is binding
    rate = found.rps(1.0, 1)
    assert rate == pytest.approx(min(found.by_bound(1).values()), rel=1e-3)
    assert found.replica.uses(0.99 * rate)[binding] <= 1.0
    assert found.replica.uses(1.01 * rate)[binding] > 1.0


def test_capacity_with_a_promise_below_the_floor_leaves_it_out_and_names_it() -> None:
    """One iteration without load takes 13.2 ms: 10 ms per token cannot be kept."""
    targets = replace(INTERACTIVE, output_token=Target(percentile=0.9, seconds=0.010))
    found = capacity(targets=targets)
    assert found.infeasible == {Binding.TIME_PER_OUTPUT_TOKEN}
    assert found.rps(1.0, 1) == pytest.approx(capacity().rps(1.0, 1), rel=1e-3)
    with_speculation = capacity(shape=requests(4000, 1000, accepted=2.0), targets=targets)
    assert not with_speculation.infeasible


@given(
    prompt=st.floats(10, 30_000),
    output=st.floats(10, 3000),
    output_cv=st.floats(0, 2),
    kv_tokens=st.floats(60_000, 2e6),
)
def test_capacity_of_any_lengths_falls_with_work_and_rises_with_room(
    prompt: float, output: float, output_cv: float, kv_tokens: float
) -> None:
    shape = requests(prompt, output, output_cv=output_cv)
    limits = EngineLimits(kv_tokens=kv_tokens, sequences=256, iteration_tokens=8192)
    longer = requests(1.5 * prompt, output, output_cv=output_cv)
    assume(not capacity(shape=longer, limits=limits).infeasible)
    usual = capacity(shape=shape, limits=limits).rps(1.0, 1)
    slack = 1.0 + 1e-3
    assert capacity(shape=longer, limits=limits).rps(1.0, 1) <= usual * slack
    talkative = capacity(shape=requests(prompt, 1.5 * output, output_cv=output_cv), limits=limits)
    room = capacity(shape=shape, limits=limits).by_bound(1)
    for one in (Binding.MEMORY, Binding.SEATS):  # short answers suffer most from prompts
        assert talkative.by_bound(1)[one] <= room[one] * slack
    roomier = replace(limits, kv_tokens=2.0 * kv_tokens)
    assert capacity(shape=shape, limits=roomier).rps(1.0, 1) >= usual / slack
    cached = requests(prompt, output, output_cv=output_cv, cached=0.5)
    assert capacity(shape=cached, limits=limits).rps(1.0, 1) >= usual / slack


def test_capacity_of_a_level_fleet_grows_with_replicas_and_of_a_random_one_does_not() -> None:
    level = [capacity(routing=Routing.LEAST_IN_FLIGHT).rps(1.0, number) for number in (1, 4, 64)]
    assert level == sorted(level)
    assert level[-1] > 1.05 * level[0]
    alike = [capacity().rps(1.0, number) for number in (1, 64)]
    assert alike[0] == alike[1]


@pytest.mark.parametrize("routing", [Routing.RANDOM, Routing.LEAST_IN_FLIGHT])
def test_fleet_with_cached_prompts_plans_added_replicas_with_emptier_caches(
    routing: Routing,
) -> None:
    """Four replicas that find 80 % of the prompts' tokens carry more each than five would."""
    targets = TokenTargets(first_token=Target(percentile=0.95, seconds=0.4))
    inputs = Inputs(
        cost=QWEN_32B,
        shape=requests(4000, 50, cached=0.8),
        limits=EngineLimits(),
        factors=TailFactors(),
    )
    warm = fleet_of(inputs, targets, routing, 60.0)
    fleet = fleet_of(inputs, targets, routing, 60.0, 4)
    carried = 4 * fleet.capacity_rps(60.0, 4)
    assert carried == pytest.approx(4 * warm.capacity_rps(60.0, 4))
    assert fleet.replicas_for(0.99 * carried, 60.0, 1.0) == 4
    more = fleet.replicas_for(1.3 * carried, 60.0, 1.0)
    usual = warm.replicas_for(1.3 * carried, 60.0, 1.0)
    assert more is not None
    assert usual is not None
    assert more > usual
    assert fleet.replicas_for(0.5 * carried, 60.0, 1.0) == warm.replicas_for(
        0.5 * carried, 60.0, 1.0
    )


def test_capacity_of_experts_pays_for_reading_them() -> None:
    experts = replace(QWEN_32B, experts_s=0.020, expert_share=8 / 128)
    assert capacity(cost=experts).rps(1.0, 1) < 0.9 * capacity().rps(1.0, 1)


def test_concurrency_bound_by_the_time_per_token_is_that_of_the_highest_rate_within_it() -> None:
    """The fixed part takes 40 of 60 ms and prompts at most a third of the rest."""
    cost = IterationCost(fixed_s=0.040, prompt_token_s=5e-5, sequence_s=5e-4)
    targets = TokenTargets(output_token=Target(percentile=0.95, seconds=0.06))
    inputs = Inputs(
        cost=cost, shape=requests(1000, 100), limits=EngineLimits(), factors=TailFactors()
    )
    fleet = fleet_of(inputs, targets, Routing.LEAST_IN_FLIGHT, 60.0)
    rate_rps = fleet.capacity.by_bound(1)[Binding.TIME_PER_OUTPUT_TOKEN]
    occupancy = occupancy_of(fleet.capacity.replica.work, rate_rps)
    assert occupancy is not None
    assert fleet.cost.concurrency == pytest.approx(occupancy.sequences(0.95))
    assert occupancy.mean < fleet.cost.concurrency < 0.02 / 5e-4


@pytest.mark.parametrize(
    ("limits", "targets"),
    [
        (LLAMA_8B_H100, INTERACTIVE),
        (EngineLimits(sequences=16, kv_tokens=450_000), INTERACTIVE),
        (EngineLimits(sequences=256, kv_tokens=60_000), INTERACTIVE),
    ],
)
def test_gateway_admits_what_is_in_time_and_no_more(
    limits: EngineLimits, targets: TokenTargets
) -> None:
    """All that is there by chance at the highest rate fits; what fills seats or memory does not."""
    shape = requests(1500, 400, prompt_cv=0.6, output_cv=0.7)
    found = capacity(LLAMA_8B, shape, limits, targets, Routing.LEAST_IN_FLIGHT)
    fleet = GeneratingFleet(capacity=found, target_s=60.0)
    rate_rps = fleet.capacity_rps(60.0, 4)
    occupancy = occupancy_of(found.replica.work, rate_rps)
    assert occupancy is not None
    assert targets.first_token is not None

    most = most_in_flight(fleet, 4)

    waiting = targets.first_token.seconds * rate_rps
    assert min(occupancy.mean, fleet.cost.concurrency) <= most
    assert most <= fleet.cost.concurrency + waiting + 1


@pytest.mark.parametrize(
    ("output_tokens", "promised"), [(1.0, False), (1.05, False), (1.06, True), (2.0, True)]
)
def test_answers_of_one_token_promise_no_time_between_tokens(
    output_tokens: float, promised: bool
) -> None:
    """A p95 is broken by one answer in twenty: of 1.05 tokens this many at most have a second."""
    targets = TokenTargets(
        first_token=Target(percentile=0.95, seconds=1.0),
        output_token=Target(percentile=0.95, seconds=0.02),
    )
    found = capacity(LLAMA_8B, requests(800, output_tokens), targets=targets)
    assert (Binding.TIME_PER_OUTPUT_TOKEN in found.replica.promised) is promised
    assert (found.binding(1) is Binding.TIME_PER_OUTPUT_TOKEN) is promised


@pytest.mark.parametrize(("iteration_tokens", "most_rps"), [(None, 10.2), (8192, 9.9), (512, 6.7)])
def test_engine_with_few_tokens_per_iteration_takes_less(
    iteration_tokens: int | None, most_rps: float
) -> None:
    """Two replicas of 512 tokens keep 6.0/s each, and at 6.6/s their queues grow."""
    limits = EngineLimits(iteration_tokens=iteration_tokens)
    found = capacity(QWEN_32B, requests(2000, 20, prompt_cv=0.8), limits, targets=TokenTargets())
    assert found.full_rps == pytest.approx(most_rps, rel=0.02)


def test_gateway_admits_as_many_prompts_as_full_iterations_compute_in_time() -> None:
    """By chance 24 are there at the highest rate; if always, the last would wait for 3 of 2 s."""
    targets = TokenTargets(
        first_token=Target(percentile=0.95, seconds=2.0),
        output_token=Target(percentile=0.95, seconds=0.06),
    )
    shape = requests(2000, 20, prompt_cv=0.8, output_cv=0.8)
    limits = EngineLimits(kv_tokens=350_000, sequences=256, iteration_tokens=512)
    found = capacity(QWEN_32B, shape, limits, targets, Routing.LEAST_IN_FLIGHT)
    assert most_in_flight(GeneratingFleet(capacity=found, target_s=22.0), 2) == 12
