"""Measures the hits of the cache among answered questions, and the time of a look-up."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from headroom_server.caching.generated import CachedChoice, scope_of
from headroom_server.caching.semantic import SemanticAnswers, SemanticBounds
from headroom_server.caching.similarity import Vector, unit
from headroom_server.generation.values import FinishReason, SampledToken
from semantic_cache.questions import Intent

COMMON = SCOPE = b"scope"
FOREVER_S = 1e9
UNBOUNDED = 1 << 40


class Found(NamedTuple):
    """Hits at one threshold."""

    right: int
    wrong: int
    asked_same: int

    @property
    def precision(self) -> float:
        """Share of the hits with the right answer; nan without any."""
        hits = self.right + self.wrong
        return self.right / hits if hits else float("nan")

    @property
    def hit_rate(self) -> float:
        """Share of the paraphrased questions that were answered correctly."""
        return self.right / self.asked_same


def hits(intents: Sequence[Intent], embed: Callable[[str], Vector], threshold: float) -> Found:
    """Answer all questions, then ask paraphrases and questions that look alike."""
    answers = SemanticAnswers(SemanticBounds(threshold, len(intents), FOREVER_S, UNBOUNDED))
    for number, intent in enumerate(intents):
        answer = (CachedChoice((SampledToken(number),), FinishReason.STOP),)
        scope = scope_of(COMMON, b"", intent.question)
        answers.put(scope, embed(intent.question), 0.0, answer, tenant="")

    def given(text: str) -> int | None:
        found = answers.find(scope_of(COMMON, b"", text), embed(text), 0.0)
        return None if found is None else found.answer[0].tokens[0].token

    same = [(n, given(text)) for n, intent in enumerate(intents) for text in intent.same]
    other = [given(text) for intent in intents for text in intent.other]
    right = sum(number == found for number, found in same)
    wrong = sum(found not in (None, number) for number, found in same)
    return Found(right, wrong + sum(found is not None for found in other), len(same))


class LookUp(NamedTuple):
    """Seconds of a look-up, half of them similar to an entry."""

    median_s: float
    p95_s: float
    cpu_s: float
    """Mean."""


def look_up(entries: int, dimension: int, threshold: float, looks: int = 400) -> LookUp:
    """Measure look-ups among random vectors."""
    chance = np.random.default_rng(1)
    answers = SemanticAnswers(SemanticBounds(threshold, entries, FOREVER_S, UNBOUNDED))
    answer = (CachedChoice((SampledToken(1),), FinishReason.STOP),)
    asked = []
    for number in range(entries):
        vector = unit(chance.standard_normal(dimension))
        assert vector is not None
        answers.put(SCOPE, vector, 0.0, answer, tenant="")
        if number % (2 * entries // looks) == 0:
            near = unit(vector + 0.2 / dimension**0.5 * chance.standard_normal(dimension))
            far = unit(chance.standard_normal(dimension))
            asked += [one for one in (near, far) if one is not None]
    seconds, cpu_s = [], time.process_time()
    for vector in asked:
        began_s = time.perf_counter()
        answers.find(SCOPE, vector, 0.0)
        seconds.append(time.perf_counter() - began_s)
    cpu_s = time.process_time() - cpu_s
    p95_s = statistics.quantiles(seconds, n=20)[-1]
    return LookUp(statistics.median(seconds), p95_s, cpu_s / len(asked))
