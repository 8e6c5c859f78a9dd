"""Starts an executor on its thread: load, warm, self-test, within a time limit."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headroom_server.engine import DeviceLostError
from headroom_server.generation.loop.warming import prompt_chunk, warm_up_iterations
from headroom_server.generation.ports import Executor, WarmEngine, WarmIteration
from headroom_server.generation.values import GenerationLimits, Iteration, SampledToken
from headroom_server.lifecycle import Phase

REPEATS = 3
"""Executions of each shape: one cold, the others timed."""
SELF_TESTS = 20
SELF_TEST_S = 1.0
LEAST_SELF_TESTS = 4
RETEST_PAUSE_S = 0.5
SELF_TEST_TOKENS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmUpLimits:
    """Steps before the server is ready, and the time limit."""

    max_latency_s: float = 1.0
    timeout_s: float = 600.0
    max_drafts: int = 0
    draft_model: bool = False
    """Whether the executor has one, which must be warm too."""


class NotWarmError(Exception):
    """The model did not become warm; the message says which rule and what to change."""


class StoppedError(Exception):
    """The server is stopping."""


class StartUp:
    """Runs the phases; `on_phase` and `observe` get each phase and each timed iteration."""

    def __init__(
        self,
        executor: Executor,
        limits: WarmUpLimits,
        *,
        clock: Callable[[], float],
        stopping: Callable[[], bool],
        on_phase: Callable[[Phase], None],
        observe: Callable[[Iteration, float], None],
    ) -> None:
        self._executor = executor
        self._limits = limits
        self._clock = clock
        self._stopping = stopping
        self._on_phase = on_phase
        self._observe = observe
        self._over_s = clock() + limits.timeout_s

    def warm(self, limits: GenerationLimits) -> WarmEngine:
        """Execute every shape of a loaded model; return when single requests are fast enough.

        Raises:
            NotWarmError: not in time.
            StoppedError: the server is stopping.
        """
        self._on_phase(Phase.WARM)
        shapes = [self._shape(one) for one in warm_up_iterations(limits, self._limits.max_drafts)]
        if self._limits.draft_model:
            self._warm_drafts(limits)
        self._on_phase(Phase.SELFTEST)
        single = prompt_chunk(limits, min(SELF_TEST_TOKENS, limits.context_tokens - 1))
        while (p95_s := self._p95_s(single)) > self._limits.max_latency_s:
            self._checkpoint(
                f"the first token of a short prompt takes {p95_s:.3f} s at the 95th percentile, "
                f"HEADROOM_WARMUP_MAX_LATENCY_S={self._limits.max_latency_s:g}"
            )
            time.sleep(RETEST_PAUSE_S)
        return WarmEngine(limits, shapes, p95_s)

    def works(self, limits: GenerationLimits) -> bool:
        """Return whether the request of the self-test can be executed.

        Raises:
            DeviceLostError: the device says so.
            StoppedError: the server is stopping.
        """
        try:
            self._timed(prompt_chunk(limits, min(SELF_TEST_TOKENS, limits.context_tokens - 1)))
        except (DeviceLostError, StoppedError):
            raise
        except Exception:  # noqa: BLE001 - whatever an engine raises
            return False
        return True

    def _warm_drafts(self, limits: GenerationLimits) -> None:
        """Let the draft model propose for every number of sequences."""
        for iteration in warm_up_iterations(limits, 0):
            sequences = [chunk.sequence for chunk in iteration.chunks if chunk.start]
            if not sequences:
                continue
            self._checkpoint("warm-up takes too long")
            self._executor.draft(sequences, self._limits.max_drafts)
            for one in sequences:
                self._executor.forget(one.request.key)

    def _shape(self, iteration: Iteration) -> WarmIteration:
        seconds = [self._timed(iteration) for _ in range(REPEATS)]
        for one in seconds[1:]:
            self._observe(iteration, one)
        chunk = iteration.chunks[0]
        tokens = len(chunk.tokens) - chunk.drafts
        first_s, later_s = seconds[0], statistics.median(seconds[1:])
        return WarmIteration(len(iteration.chunks), tokens, chunk.drafts, first_s, later_s)

    def _p95_s(self, single: Iteration) -> float:
        seconds: list[float] = []
        while len(seconds) < SELF_TESTS and (
            len(seconds) < LEAST_SELF_TESTS or sum(seconds) < SELF_TEST_S
        ):
            seconds.append(self._timed(single))
        return sorted(seconds)[math.ceil(0.95 * len(seconds)) - 1]

    def _timed(self, iteration: Iteration) -> float:
        self._checkpoint("warm-up takes too long")
        began_s = self._clock()
        result = self._executor.execute(iteration)
        seconds = self._clock() - began_s
        check_result(iteration, result.sampled)
        for chunk in iteration.chunks:
            self._executor.forget(chunk.sequence.request.key)
        return max(seconds, 1e-6)

    def _checkpoint(self, why: str) -> None:
        if self._stopping():
            raise StoppedError
        if self._clock() > self._over_s:
            raise NotWarmError(
                "the model did not become warm within "
                f"HEADROOM_WARMUP_TIMEOUT_S={self._limits.timeout_s:g} s: {why}"
            )


def check_result(iteration: Iteration, sampled: Sequence[Sequence[SampledToken]]) -> None:
    """Check that a result has tokens for every chunk that samples, and for no other.

    Raises:
        ValueError: it does not, so that one request would get another's tokens.
    """
    if len(sampled) != len(iteration.chunks):
        raise ValueError(f"a result must have {len(iteration.chunks)} rows; got {len(sampled)}")
    for chunk, row in zip(iteration.chunks, sampled, strict=True):
        low, high = (1, chunk.drafts + 1) if chunk.samples else (0, 0)
        if not low <= len(row) <= high:
            raise ValueError(f"a row must have {low} to {high} tokens; got {len(row)}")
