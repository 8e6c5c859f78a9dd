"""Starts an engine: load, compile, warm, self-test, within a time limit."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from headroom_server.device.warming import (
    SelfTest,
    WarmShape,
    cold_round,
    execute,
    self_test,
    shapes,
    warm_rounds,
)
from headroom_server.engine import DeviceLostError, Engine, Work
from headroom_server.lifecycle import Phase
from headroom_server.signature import Signature

log = logging.getLogger("headroom_server")

RETEST_PAUSE_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmUpPlan:
    """Steps before the server is ready, and the time limit."""

    max_batch_size: int
    requests: int
    max_latency_s: float
    timeout_s: float
    samples: Callable[[Signature], Sequence[Work]] = lambda _: ()
    """The model's own sample requests, each executed once."""


class Warm(NamedTuple):
    """A warm engine."""

    signature: Signature
    shapes: Sequence[WarmShape]
    compiled: str
    """Way in which the model was compiled, or why not; empty if it did not request it."""


class StartupError(Exception):
    """The model did not become warm; the message says which rule and what to change."""


class StopError(Exception):
    """The server is stopping."""


def not_warm(plan: WarmUpPlan) -> str:
    """Return why a start-up has failed."""
    return f"the model did not become warm within HEADROOM_WARMUP_TIMEOUT_S={plan.timeout_s:g} s"


class StartUp:
    """One start; calls `on_phase` and `on_self_test` as it proceeds.

    `pause(seconds)` sleeps and returns whether the server is stopping.
    """

    def __init__(
        self,
        engine: Engine,
        plan: WarmUpPlan,
        *,
        clock: Callable[[], float],
        pause: Callable[[float], bool],
        on_phase: Callable[[Phase], None],
        on_self_test: Callable[[SelfTest], None],
    ) -> None:
        self._engine = engine
        self._plan = plan
        self._clock = clock
        self._pause = pause
        self._on_phase = on_phase
        self._on_self_test = on_self_test
        self._deadline_s = clock() + plan.timeout_s

    def run(self) -> Warm:
        """Prepare the engine for its first real request.

        Raises:
            StartupError: too late, too slow, or without shapes for the batches.
            LoadError: raised by the engine.
            StopError: the server is stopping.
        """
        engine, compiled = self._engine, ""
        self._on_phase(Phase.LOAD)
        signature = engine.load()
        self._checkpoint()
        try:
            wanted = shapes(signature, self._plan.max_batch_size)
        except ValueError as error:
            raise StartupError(
                f"HEADROOM_MAX_BATCH_SIZE={self._plan.max_batch_size}: the model's {error}"
            ) from error
        clock, checkpoint = self._clock, self._checkpoint
        if engine.compiles:
            self._on_phase(Phase.COMPILE)
            compiled = engine.compile()
            log.info("compile: %s", compiled)
            cold = cold_round(engine, signature, wanted, clock=clock, checkpoint=checkpoint)
            self._on_phase(Phase.WARM)
        else:
            self._on_phase(Phase.WARM)
            cold = cold_round(engine, signature, wanted, clock=clock, checkpoint=checkpoint)
        warm = warm_rounds(
            engine,
            signature,
            cold,
            requests=self._plan.requests,
            clock=clock,
            checkpoint=checkpoint,
        )
        self._run_samples(signature)
        self._on_phase(Phase.SELFTEST)
        self._test(signature)
        return Warm(signature, warm, compiled)

    def _run_samples(self, signature: Signature) -> None:
        for number, work in enumerate(self._plan.samples(signature)):
            self._checkpoint()
            try:
                execute(self._engine, signature, [work])
            except DeviceLostError:
                raise
            except Exception as error:
                raise StartupError(f"warm_up[{number}]: the model fails on it: {error}") from error

    def _test(self, signature: Signature) -> None:
        while True:
            result = self_test(
                self._engine,
                signature,
                requests=self._plan.requests,
                max_latency_s=self._plan.max_latency_s,
                clock=self._clock,
                checkpoint=self._checkpoint,
            )
            self._on_self_test(result)
            if result.passed:
                return
            self._before_another_test(result)

    def _before_another_test(self, result: SelfTest) -> None:
        if self._clock() + RETEST_PAUSE_S > self._deadline_s:
            raise StartupError(
                f"the self-test's p95 of {result.p95_s * 1000:.1f} ms is above "
                f"HEADROOM_WARMUP_MAX_LATENCY_S={result.max_latency_s:g} s, and "
                f"HEADROOM_WARMUP_TIMEOUT_S={self._plan.timeout_s:g} s have passed: increase "
                "the maximum, "
                f"or use a faster device"
            )
        if self._pause(RETEST_PAUSE_S):
            raise StopError

    def _checkpoint(self) -> None:
        if self._pause(0.0):
            raise StopError
        if self._clock() > self._deadline_s:
            raise StartupError(not_warm(self._plan))
