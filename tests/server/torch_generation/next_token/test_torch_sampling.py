"""Drawn tokens have the distribution that the request describes, whatever the batch contains."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headroom_server.generation.values import Chunk, GenerationRequest, Sampling
from headroom_server.torch_generation.next_token.adjustments import KeptAdjustments
from headroom_server.torch_generation.next_token.chance import seed_of, uniform
from headroom_server.torch_generation.next_token.distributions import draw
from headroom_server.torch_generation.next_token.sampling import sample
from support.generation_chunks import Grown

LOGITS = (2.0, 1.5, 1.5, 0.3, 0.0, -0.7, -2.0, -30.0)
DRAWS = 4000


def chunk_with(
    sampling: Sampling, *, key: int = 1, drafts: Sequence[int] = (), position: int = 3
) -> Chunk:
    request = GenerationRequest(key=key, prompt=(0,) * position, max_tokens=9, sampling=sampling)
    sequence = Grown(request, [0] * position)
    computed = (0, *drafts)
    return Chunk(sequence, position - 1, computed, (0,), True, len(drafts))


def expected(sampling: Sampling, logits: Sequence[float] = LOGITS) -> list[float]:
    """Compute the distribution token by token, as the parameters' documentation says."""
    weights = [math.exp(value / sampling.temperature) for value in logits]
    order = sorted(range(len(weights)), key=lambda token: -weights[token])
    order = order[: sampling.top_k or len(order)]
    total, reached, kept = sum(weights[token] for token in order), 0.0, []
    for token in order:
        if reached < sampling.top_p * total and weights[token] >= sampling.min_p * max(weights):
            kept.append(token)
        reached += weights[token]
    total = sum(weights[token] for token in kept)
    return [weights[token] / total if token in kept else 0.0 for token in range(len(weights))]


def assert_distributed(counts: Counter[int], probabilities: Sequence[float]) -> None:
    """Pearson's chi-square at the 0.1 % level; what has no probability never occurs."""
    total = sum(counts.values())
    assert not [token for token in counts if probabilities[token] == 0.0]
    cells = [(counts[t], p * total) for t, p in enumerate(probabilities) if p * total >= 5]
    statistic = sum((seen - mean) ** 2 / mean for seen, mean in cells)
    # quantiles of 0.999 for 0 to 7 degrees of freedom
    assert statistic < (1e-6, 10.9, 13.9, 16.3, 18.5, 20.6, 22.5, 24.4)[len(cells) - 1]


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(),
        Sampling(temperature=0.5),
        Sampling(temperature=2.0),
        Sampling(top_k=3),
        Sampling(top_k=1),
        Sampling(top_p=0.7),
        Sampling(top_p=0.01),
        Sampling(min_p=0.2),
        Sampling(top_k=5, top_p=0.8, min_p=0.05, temperature=1.3),
    ],
)
def test_draws_have_the_described_distribution(sampling: Sampling) -> None:
    logits = torch.tensor(LOGITS).repeat(DRAWS, 1)
    numbers = [uniform(7, position) for position in range(DRAWS)]
    drawn = draw(logits, [sampling] * DRAWS, numbers).tolist()
    assert_distributed(Counter(drawn), expected(sampling))


def test_accepted_drafts_and_their_replacements_have_the_models_distribution() -> None:
    """The rule of Leviathan et al. 2023: at each position exactly what is drawn without drafts."""
    sampling = Sampling(temperature=1.2)
    chunks = [chunk_with(sampling, key=key, drafts=(1, 0)) for key in range(DRAWS)]
    results = sample(torch.tensor(LOGITS).repeat(3 * DRAWS, 1), chunks, process_seed=5)
    first = Counter(one[0].token for one in results)
    second = Counter(one[1].token for one in results if len(one) > 1)
    assert_distributed(first, expected(sampling))
    assert_distributed(second, expected(sampling))
    assert sum(second.values()) == first[1]


@given(
    samplings=st.lists(
        st.builds(
            Sampling,
            temperature=st.sampled_from([0.0, 0.3, 1.0]),
            top_k=st.sampled_from([0, 2, 5]),
            top_p=st.sampled_from([1.0, 0.6]),
            min_p=st.sampled_from([0.0, 0.1]),
            frequency_penalty=st.sampled_from([0.0, 1.0]),
            seed=st.sampled_from([None, 1, 2]),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_a_result_does_not_depend_on_the_others_of_its_batch(samplings: list[Sampling]) -> None:
    torch.manual_seed(0)
    logits = torch.randn(len(samplings), 50)
    chunks = [chunk_with(one, key=key) for key, one in enumerate(samplings)]
    together = sample(logits.clone(), chunks, 9)
    alone = [sample(logits[at : at + 1].clone(), [chunks[at]], 9)[0] for at in range(len(chunks))]
    assert together == alone


@pytest.mark.parametrize("wrong", [0, 1, 2, 3])
def test_drafts_are_accepted_up_to_the_first_wrong_one(wrong: int) -> None:
    logits = torch.eye(8)[[3, 4, 5, 6]] * 9
    drafts = [3, 4, 5]
    if wrong < 3:
        drafts[wrong] = 7
    chunk = chunk_with(Sampling(temperature=0.0), drafts=drafts)
    (sampled,) = sample(logits, [chunk], 0)
    assert [one.token for one in sampled] == [3, 4, 5, 6][: wrong + 1]


@pytest.mark.parametrize("number", [math.nan, math.inf])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_logits_that_are_not_finite_give_no_token(number: float, temperature: float) -> None:
    logits = torch.eye(8)[[3, 4, 5]] * 9
    logits[1, 2] = number
    sampling, after = Sampling(temperature=temperature, logit_bias={2: -100.0}), [5, 4]
    with pytest.raises(FloatingPointError, match="must be finite"):
        sample(logits[:2].clone(), [chunk_with(sampling), chunk_with(sampling, key=2)], 0)
    # behind a draft that is not accepted nothing is chosen
    greedy = chunk_with(Sampling(temperature=0.0), drafts=after)
    (sampled,) = sample(logits.clone(), [greedy], 0)
    assert [one.token for one in sampled] == [3]


def test_a_speculating_request_draws_the_same_tokens_as_without_drafts() -> None:
    torch.manual_seed(3)
    logits = torch.randn(4, 20)
    plain: list[int] = []
    for at in range(4):
        chunk = chunk_with(Sampling(seed=11), position=3 + at)
        plain.append(sample(logits[at : at + 1].clone(), [chunk], 0)[0][0].token)
    chunk = chunk_with(Sampling(seed=11), drafts=plain[:3])
    assert [one.token for one in sample(logits.clone(), [chunk], 0)[0]] == plain


class OnlyThese:
    """A grammar that always allows the same tokens."""

    finished = False

    def __init__(self, tokens: set[int]) -> None:
        self.mask = sum(1 << token for token in tokens)

    def allowed(self) -> memoryview:
        return memoryview(self.mask.to_bytes(8, "little"))

    def accept(self, token: int) -> bool:
        return bool(self.mask >> token & 1)


def test_a_grammars_mask_decides_greedily_and_by_chance() -> None:
    logits = torch.arange(40, dtype=torch.float32).repeat(2, 1)
    chunks = []
    for temperature in (0.0, 1.0):
        request = GenerationRequest(
            key=1,
            prompt=(1,),
            max_tokens=5,
            sampling=Sampling(temperature=temperature),
            grammar=OnlyThese({4, 33}),
        )
        chunks.append(Chunk(Grown(request, [1]), 0, (1,), (0,), True))
    greedy, drawn = sample(logits, chunks, 3)
    assert greedy[0].token == 33
    assert drawn[0].token in (4, 33)


@pytest.mark.parametrize(
    ("sampling", "best"),
    [
        (Sampling(temperature=0.0), 2),
        (Sampling(temperature=0.0, presence_penalty=0.3), 1),
        (Sampling(temperature=0.0, frequency_penalty=0.15), 1),
        (Sampling(temperature=0.0, frequency_penalty=0.05), 2),
        (Sampling(temperature=0.0, repetition_penalty=1.3), 1),
        (Sampling(temperature=0.0, logit_bias={0: 5.0, 99: 1.0}), 0),
    ],
)
def test_penalties_and_biases_change_the_best_token(sampling: Sampling, best: int) -> None:
    request = GenerationRequest(key=1, prompt=(3,), max_tokens=9, sampling=sampling)
    sequence = Grown(request, [3, 2, 2])
    logits = torch.tensor([[0.5, 1.0, 1.2, -1.0]])
    (sampled,) = sample(logits, [Chunk(sequence, 2, (2,), (0,), True)], 0)
    assert sampled[0].token == best


class ReadTokens(list[int]):
    """Tokens of a sequence; counts how many of them are read."""

    read = 0

    def __getitem__(self, at: Any) -> Any:
        found = super().__getitem__(at)
        self.read += len(found) if isinstance(at, slice) else 1
        return found

    def __iter__(self) -> Iterator[int]:
        self.read += len(self)
        return super().__iter__()


PENALTIES = Sampling(
    temperature=0.0,
    presence_penalty=0.4,
    frequency_penalty=0.3,
    repetition_penalty=1.5,
    logit_bias={2: 1.0, 99: 1.0},
)


def test_penalties_read_each_token_once_and_give_what_all_tokens_give_at_once() -> None:
    torch.manual_seed(4)
    request = GenerationRequest(key=1, prompt=(3, 4) * 500, max_tokens=99, sampling=PENALTIES)
    sequence, kept = Grown(request, ReadTokens(request.prompt)), KeptAdjustments()
    for number in range(40):
        logits, before = torch.randn(3, 8), sequence.tokens.read  # type: ignore[attr-defined]
        last = len(sequence.tokens) - 1
        chunk = Chunk(sequence, last, (0, number % 8, 5), (0,), True, 2)
        at_once = Chunk(Grown(request, list(sequence.tokens)), *chunk[1:])
        sequence.tokens.read = before  # type: ignore[attr-defined]
        (sampled,) = sample(logits.clone(), [chunk], 0, kept)
        assert [sampled] == sample(logits.clone(), [at_once], 0)
        read = sequence.tokens.read - before  # type: ignore[attr-defined]
        assert read <= (1000 if not number else 3)
        sequence.tokens += [one.token for one in sampled]
    kept.forget(1)
    sequence.tokens.read = 0  # type: ignore[attr-defined]
    sample(torch.randn(1, 8), [Chunk(sequence, 999, (0,), (0,), True)], 0, kept)
    assert sequence.tokens.read == len(sequence.tokens)  # type: ignore[attr-defined]


def test_log_probabilities_are_the_models_own_with_the_best_alternatives() -> None:
    chunk = chunk_with(Sampling(temperature=0.0, logprobs=2, logit_bias={4: 50.0}))
    (sampled,) = sample(torch.tensor([LOGITS]), [chunk], 0)
    total = math.log(sum(map(math.exp, LOGITS)))
    assert sampled[0].token == 4
    assert sampled[0].logprob == pytest.approx(0.0 - total, abs=1e-5)
    assert sampled[0].alternatives[0].token == 0
    assert sampled[0].alternatives[0].logprob == pytest.approx(2.0 - total, abs=1e-5)


def test_uniform_numbers_are_uniform_and_seeds_differ() -> None:
    numbers = Counter(int(8 * uniform(seed_of(1, key), 5)) for key in range(DRAWS))
    assert_distributed(numbers, [1 / 8] * 8)
    assert uniform(1, 2) != uniform(2, 1) != uniform(1, 3)
