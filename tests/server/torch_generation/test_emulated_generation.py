"""The emulated executor: its time has the stated terms, its tokens depend on the prompt."""

import itertools
from typing import Any

import pytest

from headroom_server.engine import DeviceLostError
from headroom_server.generation.emulated import EmulatedCosts, EmulatedExecutor, emulated_token
from headroom_server.generation.values import (
    Chunk,
    GenerationLimits,
    GenerationRequest,
    Iteration,
    Sampling,
)
from support.generation_chunks import Grown, chunk_of

LIMITS = GenerationLimits(
    context_tokens=256,
    vocabulary=100,
    blocks=64,
    block_tokens=16,
    max_sequences=8,
    max_iteration_tokens=64,
)
GREEDY = Sampling(temperature=0.0)


class World:
    def __init__(self, **options: Any) -> None:
        self.now_s = 0.0
        costs = options.pop("costs", EmulatedCosts())
        self.executor = EmulatedExecutor(
            LIMITS, costs, clock=lambda: self.now_s, sleep=self.sleep, **options
        )

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


def test_an_iteration_takes_the_time_of_its_terms() -> None:
    costs = EmulatedCosts(0.01, 0.001, 0.002, 0.0001, 0.00001)
    world = World(costs=costs)
    one = Grown(GenerationRequest(key=1, prompt=tuple(range(10)), max_tokens=5), [1] * 12)
    other = Grown(GenerationRequest(key=2, prompt=tuple(range(20)), max_tokens=5), [2] * 20)
    decode = chunk_of(one, 11, 12)
    prompt = Chunk(other, 4, tuple(other.tokens[4:12]), range(4), False)
    world.executor.execute(Iteration((decode, prompt)))
    expected_s = 0.01 + 0.002 + 12 * 0.0001 + 8 * 0.001 + 8 * (4 + 4) * 0.00001
    assert world.now_s == pytest.approx(expected_s)


@pytest.mark.parametrize("chunk_tokens", [1, 3, 7, 20])
def test_tokens_do_not_depend_on_how_the_prompt_is_cut(chunk_tokens: int) -> None:
    world = World()
    request = GenerationRequest(key=1, prompt=tuple(range(20)), max_tokens=4, sampling=GREEDY)
    sequence = Grown(request, list(request.prompt))
    starts = itertools.count(0, chunk_tokens)
    for start in itertools.takewhile(lambda at: at < 20, starts):
        result = world.executor.execute(
            Iteration((chunk_of(sequence, start, min(20, start + chunk_tokens)),))
        )
    assert [one.token for one in result.sampled[0]] == [emulated_token(request, 20, range(100), 0)]


def test_drafts_that_repeat_the_answer_are_accepted_and_a_wrong_one_ends_them() -> None:
    world = World(period_tokens=3)
    request = GenerationRequest(key=1, prompt=(5, 6), max_tokens=9, sampling=GREEDY)
    right = [emulated_token(request, position, range(100), 3) for position in range(3, 8)]
    sequence = Grown(request, [5, 6, emulated_token(request, 2, range(100), 3)])
    wrong = (right[2] + 1) % 100
    chunk = Chunk(sequence, 2, (sequence.tokens[-1], right[0], right[1], wrong), (0,), True, 3)
    sampled = world.executor.execute(Iteration((chunk,))).sampled[0]
    assert [one.token for one in sampled] == right[:3]


def test_the_stop_token_is_never_generated() -> None:
    world = World(tokens=range(2))
    request = GenerationRequest(
        key=1, prompt=(5, 6), max_tokens=9, sampling=GREEDY, stop_tokens=frozenset({1})
    )
    for length in range(2, 20):
        sequence = Grown(request, [5] * length)
        result = world.executor.execute(Iteration((chunk_of(sequence, length - 1, length),)))
        assert result.sampled[0][0].token == 0


def test_a_seed_changes_the_answer_of_a_sampled_request_only() -> None:
    def tokens(sampling: Sampling) -> list[int]:
        request = GenerationRequest(key=1, prompt=(5, 6), max_tokens=9, sampling=sampling)
        return [emulated_token(request, position, range(100), 0) for position in range(2, 12)]

    assert tokens(Sampling(seed=1)) == tokens(Sampling(seed=1)) != tokens(Sampling(seed=2))
    assert tokens(Sampling(temperature=0.0, seed=1)) == tokens(Sampling(temperature=0.0, seed=2))


def test_alternatives_are_as_many_as_requested() -> None:
    world = World()
    request = GenerationRequest(
        key=1, prompt=(5, 6), max_tokens=9, sampling=Sampling(temperature=0.0, logprobs=3)
    )
    (sampled,) = world.executor.execute(
        Iteration((chunk_of(Grown(request, [5, 6]), 0, 2),))
    ).sampled[0]
    assert sampled.logprob is not None
    assert len({one.token for one in sampled.alternatives}) == 3
    assert sampled.alternatives[0].token == sampled.token


def test_the_device_is_lost_when_configured() -> None:
    world = World(lost_after_s=1.0)
    world.executor.load()
    request = GenerationRequest(key=1, prompt=(5, 6), max_tokens=9)
    iteration = Iteration((chunk_of(Grown(request, [5, 6]), 0, 2),))
    world.executor.execute(iteration)
    world.now_s = 2.0
    with pytest.raises(DeviceLostError):
        world.executor.execute(iteration)
