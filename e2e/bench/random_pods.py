"""Pods under random load: their counters, as a page holds them when the pod is scraped.

Requests arrive by chance, batches differ in size and time, latencies and lengths are drawn. So
nothing repeats from tick to tick that a decision could get for nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from headroom.scaling import CostModel, PodSample
from headroom.scaling.values.latency_counts import LatencyCounts
from headroom.scaling.values.tokens import (
    EngineLimits,
    GenerationSample,
    IterationCost,
    TokenCounts,
)

UTILIZATION = 0.6
COST = CostModel(fixed_s=0.150, per_item_s=0.060, max_batch=4)
BATCH_ITEMS, BATCH_CV = 2.0, 0.05
LATENCY_S = 1.0 / 3.0
BOUNDS_S = (*(float(f"{0.001 * 1.15**k:.6g}") for k in range(80)), math.inf)

ITERATION = IterationCost(
    fixed_s=0.01316, prompt_token_s=4.4e-5, sequence_s=3.0e-5, context_token_s=4.15e-8
)
LIMITS = EngineLimits(kv_tokens=350_000, sequences=256, iteration_tokens=8192)
TOKEN_BOUNDS = (*(float(2**k) for k in range(18)), math.inf)
GENERATED_RPS, ITERATIONS_PER_S, PROMPT, ANSWER = 1.2, 40.0, 4000.0, 1000.0
TOKEN_S = 0.02
"""Mean time to first token, and time per output token."""

Chance: TypeAlias = np.random.Generator
_Draws: TypeAlias = NDArray[np.float64]


class RandomPod(Protocol):
    """A pod that serves until it is scraped."""

    def scraped(self, time_s: float, chance: Chance) -> PodSample:
        """Serve until `time_s` and return the counters."""
        ...


@dataclass(slots=True)
class _Histogram:
    """A cumulative histogram of what was drawn, and its sum."""

    bounds: tuple[float, ...]
    counts: NDArray[np.float64] = field(init=False)
    total: float = 0.0

    def __post_init__(self) -> None:
        self.counts = np.zeros(len(self.bounds))

    def add(self, drawn: _Draws) -> None:
        self.counts += np.searchsorted(np.sort(drawn), self.bounds, side="right")
        self.total += float(drawn.sum())

    def latency(self) -> LatencyCounts:
        return LatencyCounts(bounds_s=self.bounds, counts=self._read())

    def tokens(self) -> TokenCounts:
        return TokenCounts(bounds=self.bounds, counts=self._read(), total=self.total)

    def _read(self) -> tuple[float, ...]:
        """Return the counts; equal ones are one object, as after reading a page."""
        counts = self.counts.tolist()
        objects = {count: count for count in counts}
        return tuple(map(objects.__getitem__, counts))


@dataclass(slots=True)
class BatchingPod:
    """A replica of our model server."""

    uid: str
    time_s: float
    items: int = 0
    batches: int = 0
    seconds: float = 0.0
    latency: _Histogram = field(default_factory=lambda: _Histogram(BOUNDS_S))

    def scraped(self, time_s: float, chance: Chance) -> PodSample:
        """Serve until `time_s` and return the counters."""
        mean = UTILIZATION * COST.full_batch_rps * (time_s - self.time_s)
        items = int(chance.poisson(mean))
        batches = math.ceil(items / chance.uniform(0.8 * BATCH_ITEMS, 1.2 * BATCH_ITEMS))
        self.time_s, self.items, self.batches = time_s, self.items + items, self.batches + batches
        if batches:
            usual_s = COST.batch_s(items / batches)
            times_s = usual_s * chance.normal(1.0, BATCH_CV, batches)
            self.seconds += float(times_s.sum())
        self.latency.add(chance.exponential(LATENCY_S, items))
        return PodSample(
            pod=self.uid,
            time_s=time_s,
            arrivals=float(self.items),
            missed=0.0,
            waiting=int(chance.poisson(0.5)),
            running=2,
            latency=self.latency.latency(),
            batches=float(self.batches),
            batch_items=float(self.items),
            batch_seconds=self.seconds,
            cost=COST,
        )


@dataclass(slots=True)
class GeneratingPod:
    """A replica of a server that generates text."""

    uid: str
    time_s: float
    ended: int = 0
    iterations: float = 0.0
    engine_s: float = 0.0
    latency: _Histogram = field(default_factory=lambda: _Histogram(BOUNDS_S))
    first_token: _Histogram = field(default_factory=lambda: _Histogram(BOUNDS_S))
    output_token: _Histogram = field(default_factory=lambda: _Histogram(BOUNDS_S))
    prompts: _Histogram = field(default_factory=lambda: _Histogram(TOKEN_BOUNDS))
    answers: _Histogram = field(default_factory=lambda: _Histogram(TOKEN_BOUNDS))

    def scraped(self, time_s: float, chance: Chance) -> PodSample:
        """Serve until `time_s` and return the counters."""
        elapsed_s = time_s - self.time_s
        ended = int(chance.poisson(GENERATED_RPS * elapsed_s))
        prompts = np.ceil(chance.exponential(PROMPT, ended))
        answers = np.ceil(chance.exponential(ANSWER, ended))
        iterations = ITERATIONS_PER_S * elapsed_s * float(chance.normal(1.0, 0.02))
        contexts = float((answers * (prompts + answers / 2.0)).sum())
        each_s = ITERATION.iteration_s(
            float(prompts.sum()) / iterations,
            float(answers.sum()) / iterations,
            contexts / iterations,
        )
        self.time_s, self.ended = time_s, self.ended + ended
        self.iterations += iterations
        self.engine_s += iterations * each_s
        self.prompts.add(prompts)
        self.answers.add(answers)
        self.first_token.add(chance.exponential(20.0 * TOKEN_S, ended))
        self.output_token.add(chance.exponential(TOKEN_S, ended))
        self.latency.add(answers * TOKEN_S)
        return self._sample(int(chance.poisson(1.0)))

    def _sample(self, waiting: int) -> PodSample:
        return PodSample(
            pod=self.uid,
            time_s=self.time_s,
            arrivals=float(self.ended),
            missed=0.0,
            waiting=waiting,
            running=30,
            latency=self.latency.latency(),
            generation=GenerationSample(
                iterations=self.iterations,
                engine_seconds=self.engine_s,
                computed_prompt_tokens=self.prompts.total,
                generated_tokens=self.answers.total,
                sequence_steps=self.answers.total,
                waiting_tokens=waiting * PROMPT,
                limits=LIMITS,
                prompt_lengths=self.prompts.tokens(),
                output_lengths=self.answers.tokens(),
                first_token=self.first_token.latency(),
                output_token=self.output_token.latency(),
            ),
        )
