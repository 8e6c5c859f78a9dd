"""Times `decide()` in a process of its own; prints one JSON object of milliseconds.

Fleets of several sizes are evaluated in turn, at the end of full windows, with what a scrape of the
model server holds: 80 latency bounds per pod. CPU time is counted, so that other work on the
machine does not show.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
import time
from dataclasses import dataclass, field, replace

from headroom.scaling import CostModel, Observation, Pod, PodSample, PodState, Policy, State, decide
from headroom.scaling.latency.tail_latency import TailLatency
from headroom.scaling.values.latency_counts import LatencyCounts
from headroom.scaling.values.tokens import (
    EngineLimits,
    GenerationSample,
    IterationCost,
    Target,
    TokenCounts,
    TokenTargets,
)

SIZES = (3, 12, 50, 1000)
BATCHES = (4, 8, 32, 64)
TICK_S = 2.0
WINDOW_TICKS = 20
"""Fills the stable window of 30 s before anything is timed."""
TIMED_TICKS = 25
UTILIZATION = 0.6
COST = CostModel(fixed_s=0.150, per_item_s=0.060, max_batch=4)
BOUNDS_S = (*(float(f"{0.001 * 1.15**k:.6g}") for k in range(80)), math.inf)
BATCH_ITEMS = 2.0
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
"""Fixed shares of a full batch's time: each asks for a latency curve that is not known yet."""


TARGETS = TokenTargets(
    first_token=Target(percentile=0.95, seconds=2.0),
    output_token=Target(percentile=0.95, seconds=0.06),
)
ITERATION = IterationCost(
    fixed_s=0.01316, prompt_token_s=4.4e-5, sequence_s=3.0e-5, context_token_s=4.15e-8
)
TOKEN_BOUNDS = (*(float(2**k) for k in range(18)), math.inf)
GENERATED_RPS, PROMPT, ANSWER = 1.2, 4000.0, 1000.0


@dataclass(slots=True)
class Fleet:
    """A service at even load: this many pods, all ready, whose counters grow with time."""

    size: int
    generates: bool = False
    now_s: float = 10_000.0
    state: State = field(default_factory=State.initial)
    times_ms: list[float] = field(default_factory=list)

    def tick(self) -> None:
        """Evaluate once and note what it took."""
        self.now_s += TICK_S
        policy = Policy(latency_target_s=1.5, max_replicas=2 * self.size)
        if self.generates:
            policy = replace(policy, latency_target_s=60.0, token_targets=TARGETS)
        observation = self._observe()
        began_s = time.process_time()
        _, self.state = decide(policy, self.state, observation)
        self.times_ms.append(1000 * (time.process_time() - began_s))

    def _observe(self) -> Observation:
        uids = [f"pod-{number:04}" for number in range(self.size)]
        return Observation(
            now_s=self.now_s,
            current=self.size,
            pods=tuple(
                Pod(uid=uid, state=PodState.READY, created_s=0.0, ready_s=10.0) for uid in uids
            ),
            samples=tuple(
                self._generating(uid) if self.generates else self._sample(uid) for uid in uids
            ),
        )

    def _generating(self, uid: str) -> PodSample:
        ended = GENERATED_RPS * self.now_s
        iterations = 40.0 * self.now_s
        prompts, answers = PROMPT * ended, ANSWER * ended
        contexts = answers * (PROMPT + ANSWER / 2.0)
        per = iterations * ITERATION.iteration_s(
            prompts / iterations, answers / iterations, contexts / iterations
        )
        times = LatencyCounts(
            bounds_s=BOUNDS_S,
            counts=tuple(ended * -math.expm1(-50.0 * bound_s) for bound_s in BOUNDS_S),
        )
        lengths = TokenCounts(
            bounds=TOKEN_BOUNDS,
            counts=tuple(ended * -math.expm1(-bound / PROMPT) for bound in TOKEN_BOUNDS),
            total=prompts,
        )
        return PodSample(
            pod=uid,
            time_s=self.now_s,
            arrivals=ended,
            missed=0.0,
            waiting=1,
            running=30,
            latency=times,
            generation=GenerationSample(
                iterations=iterations,
                engine_seconds=per,
                computed_prompt_tokens=prompts,
                generated_tokens=answers,
                sequence_steps=answers,
                waiting_tokens=PROMPT,
                limits=EngineLimits(kv_tokens=350_000, sequences=256, iteration_tokens=8192),
                prompt_lengths=lengths,
                output_lengths=replace(lengths, total=answers),
                first_token=times,
                output_token=times,
            ),
        )

    def _sample(self, uid: str) -> PodSample:
        arrivals = UTILIZATION * COST.full_batch_rps * self.now_s
        batches = arrivals / BATCH_ITEMS
        return PodSample(
            pod=uid,
            time_s=self.now_s,
            arrivals=arrivals,
            missed=0.0,
            waiting=1,
            running=2,
            latency=LatencyCounts(
                bounds_s=BOUNDS_S,
                counts=tuple(arrivals * -math.expm1(-3.0 * bound_s) for bound_s in BOUNDS_S),
            ),
            batches=batches,
            batch_items=arrivals,
            batch_seconds=batches * COST.batch_s(BATCH_ITEMS),
            cost=COST,
        )


def decisions_ms(*, generates: bool = False) -> dict[int, float]:
    """Median of a call, by the number of pods."""
    fleets = [Fleet(size, generates) for size in SIZES]
    for _ in range(WINDOW_TICKS + TIMED_TICKS):
        for fleet in fleets:
            fleet.tick()
    return {fleet.size: statistics.median(fleet.times_ms[WINDOW_TICKS:]) for fleet in fleets}


def curves_ms() -> dict[int, float]:
    """Median cost of a latency curve that is new, by the largest batch."""
    return {
        batch: statistics.median(_curve_ms(batch, share) for share in SHARES) for batch in BATCHES
    }


def _curve_ms(max_batch: int, share: float) -> float:
    cost = CostModel(fixed_s=share, per_item_s=(1 - share) / max_batch, max_batch=max_batch)
    began_s = time.process_time()
    TailLatency(cost=cost, percentile=0.95).capacity_rps(3.0, 1)
    return 1000 * (time.process_time() - began_s)


if __name__ == "__main__":
    json.dump(
        {
            "decisions": decisions_ms(),
            "generating": decisions_ms(generates=True),
            "curves": curves_ms(),
        },
        sys.stdout,
    )
