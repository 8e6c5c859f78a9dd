"""CPU of the generation scheduler: microseconds per iteration of full decodes, and per request."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence

from bench.figures import Figure, shown
from headroom_server.generation.scheduling.options import SchedulingOptions
from headroom_server.generation.scheduling.scheduler import Scheduler
from headroom_server.generation.values import (
    GenerationLimits,
    GenerationRequest,
    Iteration,
    IterationResult,
    SampledToken,
)

SEQUENCES = (64, 256)
PROMPT_TOKENS = 512
ITERATIONS = 400
STEP_S = 0.008
ROUNDS = 5
LIMITS = GenerationLimits(
    context_tokens=32_768,
    vocabulary=1000,
    blocks=32_768,
    block_tokens=16,
    max_sequences=256,
    max_iteration_tokens=8192,
)


def measure() -> Sequence[Figure]:
    """Return the figures."""
    figures = []
    for count in SEQUENCES:
        runs = [_run(count) for _ in range(ROUNDS)]
        iteration_us = statistics.median(run[0] for run in runs)
        request_us = statistics.median(run[1] for run in runs)
        figures.append(
            shown(
                f"scheduler with {count} sequences: an iteration; adding a request",
                f"{iteration_us:.0f} us, {iteration_us / count:.2f} per token; {request_us:.0f} us",
            )
        )
    return figures


def _run(count: int) -> tuple[float, float]:
    """Return the microseconds of an iteration that decodes `count` sequences, and of `add`."""
    scheduler = Scheduler(LIMITS, SchedulingOptions(max_waiting_requests=1 << 20))
    began_s = time.process_time()
    for key in range(count):
        prompt = tuple(1 + (key * 7919 + at) % 998 for at in range(PROMPT_TOKENS))
        scheduler.add(GenerationRequest(key=key, prompt=prompt, max_tokens=1 << 14), 0.0)
    request_us = (time.process_time() - began_s) / count * 1e6
    now_s = 0.0
    while scheduler.statistics.waiting_tokens:
        now_s = _step(scheduler, now_s)
    began_s = time.process_time()
    for _ in range(ITERATIONS):
        now_s = _step(scheduler, now_s)
    return (time.process_time() - began_s) / ITERATIONS * 1e6, request_us


def _step(scheduler: Scheduler, now_s: float) -> float:
    """Execute an iteration on a device that takes `STEP_S`; return when it ends."""
    iteration = scheduler.next_iteration(now_s)
    assert iteration is not None
    scheduler.complete(iteration, _result(iteration), now_s, now_s + STEP_S)
    return now_s + STEP_S


def _result(iteration: Iteration) -> IterationResult:
    token = (SampledToken(1),)
    return IterationResult([token if chunk.samples else () for chunk in iteration.chunks])
