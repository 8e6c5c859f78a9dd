"""Common prefixes are in memory once, however many running sequences hold them."""

from __future__ import annotations

import numpy as np
import pytest

from headroom.scaling.frozen import replace
from headroom.scaling.generation.fleet.learned_fleet import fleet_of
from headroom.scaling.generation.learning.model_inputs import Inputs
from headroom.scaling.generation.learning.request_lengths.length_sums import OUTPUT2
from headroom.scaling.generation.replica_model.replica import TailFactors
from headroom.scaling.generation.replica_model.shared_memory import SharedMemory
from headroom.scaling.generation.replica_model.work import context_tokens, work_of
from headroom.scaling.values.observation import PodSample
from headroom.scaling.values.policy import Routing
from headroom.scaling.values.tokens import Binding, EngineLimits, GenerationSample, RequestShape
from headroom.simulator.generation.autoscalers.headroom import TokenHeadroom
from headroom.simulator.generation.models import ENGINES, targets
from headroom.simulator.generation.plant import TokenService
from headroom.simulator.generation.requests import PREFIX_TOKENS, Requests
from headroom.simulator.generation.run import Truth, simulate_tokens
from headroom.simulator.generation.workloads import lognormal_lengths, poisson
from support.fakes_scaling import sample
from support.generating_plants import LLAMA_8B, requests

LIMITS = EngineLimits(kv_tokens=100_000.0)
AGENTS = requests(4500, 200, cached=0.66)
CONTEXT = context_tokens(AGENTS)
MIXED = requests(1650, 195, prompt_cv=2.1, output_cv=0.7)
ALIKE = context_tokens(MIXED)


def page(
    used: float | None,
    running: int = 20,
    contexts: float | None = None,
    kv: float | None = 100_000.0,
    cached: float | None = None,
) -> PodSample:
    """Return a page of a replica that uses this many tokens."""
    return replace(
        sample("pod", 0.0, 0.0, running=running),
        generation=GenerationSample(
            limits=EngineLimits(kv_tokens=kv),
            kv_used_share=None if used is None else used / 100_000.0,
            context_tokens=contexts,
            cached_prompt_tokens=cached,
        ),
    )


@pytest.mark.parametrize(
    ("pages", "share"),
    [
        pytest.param([page(20 * CONTEXT)], 0.0, id="each has its own"),
        pytest.param([page(0.95 * 20 * CONTEXT)], 0.0, id="within what is known of contexts"),
        pytest.param([page(0.39 * 20 * CONTEXT)], 0.89, id="clumps of agents"),
        pytest.param([page(0.1 * 20 * CONTEXT)], 1.0, id="no more than was found in caches"),
        pytest.param([page(0.39 * 50_000, contexts=50_000)], 0.89, id="contexts are reported"),
        pytest.param([page(None)], 0.0, id="use is not reported"),
        pytest.param([page(1000, kv=None)], 0.0, id="size is not known"),
        pytest.param([page(0.0, running=0)], 0.0, id="nothing runs"),
        pytest.param([], 0.0, id="no page"),
    ],
)
def test_shared_tokens_follow_from_what_is_in_use(pages: list[PodSample], share: float) -> None:
    found = SharedMemory().observe(pages, AGENTS, 4.0)
    assert found.share(AGENTS) == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize(
    ("pages", "times"),
    [
        pytest.param([page(20 * ALIKE)], 1.0, id="prompts say nothing of their answers"),
        pytest.param([page(1.05 * 20 * ALIKE)], 1.0, id="within what is known of contexts"),
        pytest.param([page(2.2 * 20 * ALIKE)], 2.0, id="long prompts have long answers"),
        pytest.param([page(0.0, contexts=2.2 * 20 * ALIKE)], 2.0, id="contexts are reported"),
        pytest.param([page(50 * 20 * ALIKE)], 2.69, id="no more than lengths can be together"),
        pytest.param([page(0.5 * 20 * ALIKE)], 1.0, id="shared, or short ones have long answers"),
        pytest.param([], 1.0, id="no page"),
    ],
)
def test_contexts_of_running_sequences_show_what_lengths_are_together(
    pages: list[PodSample], times: float
) -> None:
    found = SharedMemory().observe(pages, MIXED, 4.0)
    assert context_tokens(found.paired(MIXED)) / ALIKE == pytest.approx(times, abs=0.01)


@pytest.mark.parametrize(
    ("times", "unended", "found"),
    [
        pytest.param(1.05, 1e9, 1.0, id="within what is known of contexts"),
        pytest.param(2.2, 1e9, 2.0, id="long prompts may have long answers"),
        pytest.param(11.0, 1e9, 10.0, id="more than that: longer answers run"),
        pytest.param(11.0, 2e6, 5.55, id="no longer than what is generated shows"),
        pytest.param(11.0, 0.0, 2.69, id="all have ended: a cache counts as in use"),
    ],
)
def test_contexts_of_running_sequences_show_answers_that_are_longer_than_any_that_ended(
    times: float, unended: float, found: float
) -> None:
    seen = SharedMemory().observe([page(times * 20 * ALIKE)], MIXED, 4.0)
    assert context_tokens(seen.paired(MIXED, unended)) / ALIKE == pytest.approx(found, abs=0.01)


def test_contexts_that_grow_with_running_answers_count_within_seconds() -> None:
    found = SharedMemory()
    for _ in range(100):
        found = found.observe([page(20 * ALIKE)], MIXED, 4.0)
    for _ in range(15):
        found = found.observe([page(4.4 * 20 * ALIKE)], MIXED, 4.0)
    assert context_tokens(found.paired(MIXED)) / ALIKE < 2.0
    assert context_tokens(found.paired(MIXED, 1e9)) / ALIKE > 3.5


@pytest.mark.parametrize(
    ("waiting", "used", "learns"),
    [
        pytest.param(3, 95_000, False, id="short answers wait for long ones"),
        pytest.param(0, 95_000, True, id="none waits"),
        pytest.param(3, 80_000, True, id="they wait for a prompt, not for memory"),
    ],
)
def test_sequences_that_run_are_no_sample_while_others_wait_for_their_memory(
    waiting: int, used: float, learns: bool
) -> None:
    usual = SharedMemory().observe([page(20 * ALIKE)], MIXED, 4.0)
    busy = replace(page(used), waiting=waiting)
    assert (usual.observe([page(20 * ALIKE), busy], MIXED, 4.0) != usual) is learns


OPPOSITE = requests(4650, 790, prompt_cv=1.1, output_cv=1.25)
"""Half of 9000 with 80 tokens, half of 300 with 1500."""
SEPARATE = context_tokens(OPPOSITE)


@pytest.mark.parametrize(
    ("cached", "prefixes", "looks", "times", "held"),
    [
        pytest.param(0.0, 0.0, 100, 0.495, 0.495, id="long prompts have short answers"),
        pytest.param(None, 0.0, 100, 1.0, 1.0, id="what caches find is not reported"),
        pytest.param(0.0, 0.4, 100, 0.857, 0.528, id="cached tokens may be shared"),
        pytest.param(0.0, 0.0, 50, 1.0, 1.0, id="too few were seen"),
    ],
)
def test_memory_in_use_shows_that_long_prompts_have_short_answers(
    cached: float | None, prefixes: float, looks: int, times: float, held: float
) -> None:
    shape = replace(OPPOSITE, computed_tokens=(1.0 - prefixes) * OPPOSITE.prompt_tokens)
    found = SharedMemory()
    for _ in range(looks):
        found = found.observe([page(0.45 * 20 * SEPARATE, cached=cached)], shape, 4.0)
    paired = found.paired(shape)
    assert context_tokens(paired) / SEPARATE == pytest.approx(times, abs=0.01)
    memory = work_of(LLAMA_8B, paired, found.share(paired)).memory_tokens / SEPARATE
    assert memory == pytest.approx(held, abs=0.01)


def test_a_mix_that_changes_shows_before_it_has_faded() -> None:
    found = SharedMemory()
    for _ in range(100):
        found = found.observe([page(0.45 * 20 * SEPARATE, cached=0.0)], OPPOSITE, 4.0)
    for _ in range(15):
        found = found.observe([page(20 * SEPARATE, cached=0.0)], OPPOSITE, 4.0)
    assert context_tokens(found.paired(OPPOSITE)) > 0.97 * SEPARATE


def test_memory_of_two_kinds_of_requests_is_that_of_their_contexts() -> None:
    """A tenth of 12,000 and 600 tokens, the rest of 500 and 150: 4600 of context, not 1950."""
    random = np.random.default_rng(2)
    long = random.random(100_000) < 0.1
    prompts = np.where(long, 12_000.0, 500.0)
    answers = np.where(long, 600.0, 150.0)
    true = RequestShape(
        prompt_tokens=float(prompts.mean()),
        computed_tokens=float(prompts.mean()),
        output_tokens=float(answers.mean()),
        prompt_tokens_squared=float((prompts**2).mean()),
        output_tokens_squared=float((answers**2).mean()),
        prompt_output_product=float((prompts * answers).mean()),
    )
    alike = replace(true, prompt_output_product=true.prompt_tokens * true.output_tokens)
    of_true, of_alike = work_of(LLAMA_8B, true), work_of(LLAMA_8B, alike)
    assert of_true.context_tokens > 2.0 * of_alike.context_tokens
    weights = answers / answers.sum()  # long answers are seen more often, half way on average
    seen = prompts + answers * random.random(len(answers))
    mean = float((weights * seen).sum())
    deviation = float((weights * (seen - mean) ** 2).sum()) ** 0.5
    assert of_true.context_tokens == pytest.approx(mean, rel=0.02)
    assert of_true.context_variance**0.5 == pytest.approx(deviation, rel=0.2)


def test_without_cached_prompts_nothing_is_shared() -> None:
    found = SharedMemory().observe([page(0.39 * 20 * CONTEXT)], AGENTS, 4.0)
    assert found.share(requests(4500, 200)) == 0.0


def test_memory_carries_more_where_prefixes_are_shared_and_as_much_once_they_are_not_cached() -> (
    None
):
    def memory_rps(shared: float, cached: float) -> float:
        inputs = Inputs(
            cost=LLAMA_8B,
            shape=requests(4500, 200, cached=cached),
            limits=LIMITS,
            factors=TailFactors(),
            shared=shared,
        )
        fleet = fleet_of(inputs, targets(2.0, 0.06), Routing.LEAST_IN_FLIGHT, 2.0)
        return fleet.capacity.by_bound(4)[Binding.MEMORY]

    assert memory_rps(0.89, 0.66) > 1.4 * memory_rps(0.0, 0.66)
    assert memory_rps(0.89, 0.0) == memory_rps(0.0, 0.0)


def test_a_common_system_prompt_is_not_taken_for_a_memory_of_its_own_in_each_sequence() -> None:
    """A mixture of experts with 130,000 tokens of memory; 6144 of 7000 prompt tokens are common."""
    scaler = _run_with_system_prompt()
    inputs = scaler.state.generation.inputs
    assert inputs is not None
    assert inputs.shared > 0.7
    fleet = fleet_of(inputs, scaler.targets, Routing.LEAST_IN_FLIGHT, 2.0, 2)
    alone = fleet_of(replace(inputs, shared=0.0), scaler.targets, Routing.LEAST_IN_FLIGHT, 2.0, 2)
    assert fleet.capacity_rps(2.0, 2) > 1.2 * alone.capacity_rps(2.0, 2)


def test_long_prompts_with_long_answers_are_seen_in_what_runs() -> None:
    """A tenth of 12,000 and 600 tokens, the rest of 500 and 150."""
    random = np.random.default_rng(1)
    arrival_s = poisson(np.full(40, 10.0), 10.0, 1)
    long = random.random(len(arrival_s)) < 0.1
    load = Requests(
        arrival_s=arrival_s,
        prompt_tokens=np.where(long, 12_000, 500),
        output_tokens=np.where(long, 600, 150),
    )
    scaler = _run(load, "llama-8b-h100")
    inputs, lengths = scaler.state.generation.inputs, scaler.state.generation.lengths.shape
    assert inputs is not None
    assert lengths is not None
    assert context_tokens(inputs.shape) > 1.7 * context_tokens(lengths)
    fleet = fleet_of(inputs, scaler.targets, Routing.LEAST_IN_FLIGHT, 2.0)
    assert fleet.capacity.binding(2) is Binding.MEMORY


def test_replicas_stay_for_answers_of_which_none_has_ended() -> None:
    """One of 100 has 40,000 tokens, which take a quarter of an hour; the others 250."""
    random = np.random.default_rng(2)
    arrival_s = poisson(np.full(50, 4.3), 10.0, 2)
    outputs = lognormal_lengths(np.full(len(arrival_s), 250.0), 0.8, random)
    load = Requests(
        arrival_s=arrival_s,
        prompt_tokens=lognormal_lengths(np.full(len(arrival_s), 1200.0), 0.8, random),
        output_tokens=np.where(random.random(len(arrival_s)) < 0.01, 40_000, outputs),
    )
    scaler = _run(load, "qwen3-32b-tp2-h100")
    assert scaler.state.generation.lengths.slow[OUTPUT2] < 1e9  # else one has ended
    assert (scaler.state.decided or 0) >= 2


def _run_with_system_prompt() -> TokenHeadroom:
    units, random = 12, np.random.default_rng(1)
    arrival_s = poisson(np.full(40, 3.0), 10.0, 1)
    prompts = lognormal_lengths(np.full(len(arrival_s), 7000.0), 0.15, random)
    load = Requests(
        arrival_s=arrival_s,
        prompt_tokens=np.maximum(prompts, units * PREFIX_TOKENS + 1),
        output_tokens=lognormal_lengths(np.full(len(arrival_s), 300.0), 0.6, random),
        block_ids=np.tile(np.arange(units), len(arrival_s)),
        block_starts=units * np.arange(len(arrival_s) + 1),
    )
    return _run(load, "qwen3-30b-a3b-h100")


def _run(load: Requests, engine: str) -> TokenHeadroom:
    """Return Headroom after it has scaled this load, from two replicas on."""
    service = TokenService(
        engine=ENGINES[engine],
        targets=targets(2.0, 0.075),
        start_s=100.0,
        max_replicas=12,
        initial_replicas=2,
    )
    made: list[TokenHeadroom] = []

    def make(truth: Truth) -> TokenHeadroom:
        made.append(TokenHeadroom(truth=truth))
        return made[-1]

    simulate_tokens(service, load, make, 1)
    return made[0]
