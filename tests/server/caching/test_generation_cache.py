"""Cached answers of generated text: keys, values, similar vectors, scopes, look-ups."""

from __future__ import annotations

import asyncio
import math
import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom_server.caching.generated import (
    CachedChoice,
    decoded,
    encoded,
    key_of,
    repeatable,
    size_of,
)
from headroom_server.caching.generation_cache import GeneratedSource, GenerationCache, Question
from headroom_server.caching.levels import LevelOptions
from headroom_server.caching.semantic import SemanticAnswers, SemanticBounds
from headroom_server.caching.similarity import SimilarVectors, unit
from headroom_server.generation.values import (
    Alternative,
    FinishReason,
    GenerationRequest,
    SampledToken,
    Sampling,
)

GREEDY = Sampling(temperature=0.0)
ASKED = GenerationRequest(key=1, prompt=(1, 2, 3), max_tokens=9, sampling=GREEDY, tenant="a")
ANSWER = (CachedChoice((SampledToken(5), SampledToken(6)), FinishReason.STOP),)
OTHER = (CachedChoice((SampledToken(7),), FinishReason.LENGTH),)


def key(*requests: GenerationRequest, identity: str = "m", stops: Sequence[str] = ()) -> bytes:
    return key_of(identity, requests or (ASKED,), stops, prompts=True)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(key(replace(ASKED, prompt=(1, 2, 4))), id="prompt"),
        pytest.param(key(replace(ASKED, max_tokens=8)), id="length"),
        pytest.param(key(replace(ASKED, tenant="b")), id="tenant"),
        pytest.param(key(replace(ASKED, stop_tokens=frozenset({4}))), id="stop token"),
        pytest.param(key(replace(ASKED, min_tokens=3)), id="least length"),
        pytest.param(key(replace(ASKED, constraint=("regex", "a"))), id="constraint"),
        pytest.param(key(replace(ASKED, sampling=replace(GREEDY, logprobs=1))), id="logprobs"),
        pytest.param(key(replace(ASKED, sampling=replace(GREEDY, logit_bias={3: 1.0}))), id="bias"),
        pytest.param(key(ASKED, ASKED), id="choices"),
        pytest.param(key(identity="n"), id="model"),
        pytest.param(key(stops=("x",)), id="stop string"),
    ],
)
def test_everything_that_changes_an_answer_changes_its_key(other: bytes) -> None:
    assert other != key()


def test_what_does_not_change_an_answer_does_not_change_its_key() -> None:
    same = replace(
        ASKED, key=9, priority=0, arrived_s=5.0, deadline_s=6.0, sampling=replace(GREEDY, seed=4)
    )

    assert key(same) == key()


def test_sampled_answers_are_not_repeatable() -> None:
    assert repeatable([ASKED])
    assert not repeatable([ASKED, replace(ASKED, sampling=Sampling(temperature=0.1))])


TOKENS = st.builds(
    SampledToken,
    st.integers(0, 2**31),
    st.none() | st.floats(-50, 0),
    st.lists(st.builds(Alternative, st.integers(0, 9), st.floats(-50, 0)), max_size=3).map(tuple),
)
CHOICES = st.builds(
    CachedChoice,
    st.lists(TOKENS, max_size=5).map(tuple),
    st.sampled_from((FinishReason.STOP, FinishReason.LENGTH, None)),
)


@given(st.lists(CHOICES, max_size=3).map(tuple))
def test_a_value_survives_the_store(answer: Any) -> None:
    assert decoded(b"k" * 32, encoded(b"k" * 32, answer)) == answer
    assert size_of(answer) > 0


@pytest.mark.parametrize(
    "value", [b"", b"x" * 40, encoded(b"o" * 32, ANSWER), encoded(b"k" * 32, ANSWER)[:-1]]
)
def test_a_value_of_another_key_or_cut_is_ignored(value: bytes) -> None:
    assert decoded(b"k" * 32, value) is None


# ---- similar vectors


def at_cosine(vector: Any, cosine: float, chance: np.random.Generator) -> Any:
    other = chance.standard_normal(vector.size)
    other -= (other @ vector) * vector
    return unit(cosine * vector + math.sqrt(1 - cosine**2) * other / np.linalg.norm(other))


def rows(count: int, dimension: int = 384, seed: int = 1) -> Any:
    chance = np.random.default_rng(seed)
    return [unit(chance.standard_normal(dimension)) for _ in range(count)]


def test_the_similar_vector_is_found_among_many_and_others_are_not() -> None:
    chance, vectors = np.random.default_rng(2), rows(5000)
    similar = SimilarVectors(384)
    for vector in vectors:
        similar.add(vector)

    for row in range(0, 5000, 250):
        near = similar.nearest(at_cosine(vectors[row], 0.97, chance), 0.95)
        assert near is not None
        assert near.row == row
        assert near.similarity == pytest.approx(0.97, abs=0.002)
        assert similar.nearest(at_cosine(vectors[row], 0.93, chance), 0.95) is None


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 200)), max_size=150))
def test_rows_stay_together_with_their_vectors(events: list[tuple[bool, int]]) -> None:
    similar, vectors = SimilarVectors(16), rows(201, 16)
    kept: list[int] = []
    for adds, number in events:
        if adds:
            assert similar.add(vectors[number]) == len(kept)
            kept.append(number)
        elif kept:
            row = number % len(kept)
            moved = similar.remove(row)
            last = kept.pop()
            if moved != row:
                kept[row] = last
    assert len(similar) == len(kept)
    for number in kept:
        near = similar.nearest(vectors[number], 0.99)
        assert near is not None
        assert kept[near.row] == number


@pytest.mark.parametrize("numbers", [[], [0.0, 0.0], [float("nan"), 1.0], [[1.0]]])
def test_what_has_no_direction_is_no_vector(numbers: Any) -> None:
    assert unit(numbers) is None


# ---- scopes


def semantic(entries: int = 3, ttl_s: float = 10.0, max_bytes: int = 1 << 20) -> SemanticAnswers:
    return SemanticAnswers(SemanticBounds(0.9, entries, ttl_s, max_bytes))


def test_a_similar_question_of_the_same_scope_has_an_answer() -> None:
    answers, (vector,) = semantic(), rows(1)
    near = at_cosine(vector, 0.95, np.random.default_rng(3))
    answers.put(b"a", vector, 0.0, ANSWER, tenant="")

    found = answers.find(b"a", near, 1.0)

    assert found is not None
    assert found.answer == ANSWER
    assert found.similarity == pytest.approx(0.95, abs=0.002)
    assert answers.find(b"b", near, 1.0) is None


def test_an_old_answer_is_gone() -> None:
    answers, (vector,) = semantic(), rows(1)
    answers.put(b"a", vector, 0.0, ANSWER, tenant="")

    assert answers.find(b"a", vector, 10.5) is None
    assert len(answers) == 0


def test_the_answer_that_was_not_used_for_longest_makes_room() -> None:
    answers, vectors = semantic(entries=3), rows(4)
    for number, vector in enumerate(vectors[:3]):
        answers.put(b"%d" % (number % 2), vector, 0.0, ANSWER, tenant="")
    answers.find(b"0", vectors[0], 0.0)
    answers.put(b"0", vectors[3], 0.0, OTHER, tenant="")

    assert len(answers) == 3
    assert answers.find(b"1", vectors[1], 0.0) is None
    for row in (0, 2, 3):
        assert answers.find(b"0", vectors[row], 0.0) is not None


def test_new_questions_of_a_tenant_leave_another_its_answers() -> None:
    answers, vectors = semantic(entries=4), rows(40)
    answers.put(b"steady", vectors[0], 0.0, ANSWER, tenant="steady")
    for vector in vectors[1:]:
        answers.put(b"flood", vector, 0.0, OTHER, tenant="flood")
        assert answers.find(b"steady", vectors[0], 0.0) is not None
    assert len(answers) == 4


@pytest.mark.parametrize("tokens", [1, 1000])
def test_answers_of_many_scopes_take_no_more_than_their_bytes(tokens: int) -> None:
    answers, vectors = semantic(10_000, max_bytes=1 << 20), rows(300)
    answers.put(b"", vectors[0], 0.0, ANSWER, tenant="")  # what all scopes share
    tracemalloc.start()
    try:
        for number, vector in enumerate(vectors):
            answer = (CachedChoice((SampledToken(number),) * tokens, FinishReason.STOP),)
            answers.put(b"%d" % number, vector, 0.0, answer, tenant="")
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 1 << 20
    assert answers.size <= 1 << 20
    assert answers.find(b"299", vectors[299], 1.0) is not None


def test_vectors_give_back_the_room_of_those_that_left() -> None:
    similar = SimilarVectors(384)
    for vector in rows(200):
        similar.add(vector)
    grown = similar.size
    for _ in range(195):
        similar.remove(0)
    assert similar.size < grown / 10
    assert len(similar) == 5


def test_another_embedding_model_starts_with_an_empty_index() -> None:
    answers = semantic()
    answers.put(b"a", rows(1, 8)[0], 0.0, ANSWER, tenant="")

    assert answers.find(b"a", rows(1, 16)[0], 0.0) is None
    answers.put(b"a", rows(1, 16)[0], 0.0, OTHER, tenant="")
    assert len(answers) == 1


# ---- look-ups


class Embedder:
    def __init__(self, vectors: dict[str, Any]) -> None:
        self.vectors = vectors
        self.asked: list[str] = []
        self.error: Exception | None = None
        self.hangs = False

    async def __call__(self, text: str, tenant: str) -> Sequence[float]:
        self.asked.append(text)
        if self.hangs:
            await asyncio.sleep(60)
        if self.error is not None:
            raise self.error
        found: Sequence[float] = self.vectors[text].tolist()
        return found


def cache_with(embedder: Embedder | None = None) -> GenerationCache:
    similar = None if embedder is None else (semantic(), embedder)
    return GenerationCache(LevelOptions(1 << 20, 10.0, lambda: 0.0), similar=similar)


async def test_an_equal_request_is_answered_and_an_embedding_is_not_needed() -> None:
    embedder = Embedder({"q": rows(1)[0]})
    cache = cache_with(embedder)
    lookup = await cache.look(Question(b"k", b"s", "q"))
    assert lookup.hit is None
    lookup.keep(ANSWER)

    again = await cache.look(Question(b"k", b"s", "q"))

    assert again.hit is not None
    assert again.hit.source is GeneratedSource.MEMORY
    assert embedder.asked == ["q"]


async def test_a_similar_request_is_answered_with_its_similarity() -> None:
    (vector,) = rows(1)
    near = at_cosine(vector, 0.96, np.random.default_rng(5))
    cache = cache_with(Embedder({"q": vector, "p": near}))
    (await cache.look(Question(b"k", b"s", "q"))).keep(ANSWER)

    found = (await cache.look(Question(b"l", b"s", "p"))).hit

    assert found is not None
    assert found.source is GeneratedSource.SEMANTIC
    assert found.similarity == pytest.approx(0.96, abs=0.002)
    assert (await cache.look(Question(b"l", None))).hit is None
    assert cache.counts().by_source[GeneratedSource.ENGINE] == 2


@pytest.mark.parametrize("hangs", [False, True])
async def test_embeddings_that_fail_are_left_out_for_a_while(hangs: bool) -> None:
    embedder = Embedder({})
    embedder.error, embedder.hangs = OSError("down"), hangs
    cache = cache_with(embedder)

    for _ in range(6):
        assert (await cache.look(Question(b"k", b"s", "q"))).hit is None

    assert len(embedder.asked) == 3
    assert cache.counts().embedding_failures == 3
