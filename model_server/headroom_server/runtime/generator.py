"""One generating model: its engine, life cycle, intake and accounts.

Everything runs on the event loop's thread.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from headroom_server.caching.features import FeatureCache
from headroom_server.caching.generation_cache import GenerationCache
from headroom_server.errors import LateError, QueueFullError, RefusedError
from headroom_server.generation.ports import ManagedEngine, WarmEngine
from headroom_server.generation.values import GenerationLimits
from headroom_server.lifecycle import Lifecycle, Phase
from headroom_server.runtime.generation_run import GenerationRun
from headroom_server.scheduling.admission import Refusal, closed_error, refusal_when_closed
from headroom_server.scheduling.request_options import (
    FIRST_TOKEN_TIMEOUT,
    TIMEOUT,
    RequestOptions,
    SloClasses,
    check_deadline,
)
from headroom_server.telemetry.accounting import Ledger, Outcome
from headroom_server.telemetry.class_ledger import ClassLedgers
from headroom_server.telemetry.generation import GenerationLedger
from headroom_server.telemetry.generation_metrics import GenerationSnapshot

log = logging.getLogger("headroom_server")

STARTUP_SLACK_S = 1.0
"""An engine that still responds reports a start-up timeout itself within this time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratorOptions:
    """Limits of one model's life, and the classes of its requests."""

    stall_timeout_s: float = 60.0
    warmup_timeout_s: float = 600.0
    classes: SloClasses = field(default_factory=dict)
    bounds_fillers: bool = False
    """Whether the engine bounds what the batch class adds to the time per token of others."""


class Generator:
    """A model that generates, behind the engine's port."""

    def __init__(
        self,
        model: str,
        engine: ManagedEngine,
        options: GeneratorOptions | None = None,
        clock: Callable[[], float] = time.monotonic,
        cache: GenerationCache | None = None,
        features: FeatureCache | None = None,
    ) -> None:
        self.model = model
        self.cache = cache
        self.features = features
        self.engine = engine
        self.options = options or GeneratorOptions()
        self.clock = clock
        self.ledger = Ledger()
        self.generation = GenerationLedger()
        classes, bounds = self.options.classes, self.options.bounds_fillers
        fillers = {name for name, one in classes.items() if one.batch and bounds}
        self.classes = ClassLedgers(classes, fillers)
        self.lifecycle = Lifecycle(since_s=clock())
        self.draining = False
        self.warm_engine: WarmEngine | None = None
        self.failure: str | None = None
        """Why nothing can be generated any more."""
        self.suspected = False
        self._pages = itertools.count(1)
        self._keys = itertools.count(1)
        self._runs: set[GenerationRun] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._intake_open = True
        self._began_s = clock()
        self.started_at_s = time.time()
        self._stalled_since_s: float | None = None
        self._ended = asyncio.Event()
        self._settled = asyncio.Event()

    # ---- life

    def start(self) -> None:
        """Start loading, on the running loop."""
        self.engine.start(asyncio.get_running_loop().call_soon_threadsafe, self)

    async def started(self) -> None:
        """Wait until the model is warm, has failed, or is no longer wanted."""
        await self._settled.wait()

    async def failed(self) -> None:
        """Wait until nothing can be generated any more."""
        await self._ended.wait()

    def drain(self) -> None:
        """Become unready. A loaded model accepts requests until the intake is closed."""
        self._settled.set()
        if not self.draining:
            self._enter(Phase.DRAINING)

    def close_intake(self) -> None:
        """Refuse new requests from now on."""
        self._intake_open = False
        self.engine.close_intake()

    async def wait_idle(self) -> None:
        """Wait until every accepted request has ended."""
        await self._idle.wait()

    def abandon(self) -> int:
        """End every request in flight with an error; return how many."""
        count = len(self._runs)
        self.engine.abandon()
        for run in list(self._runs):  # those that were still being tokenized
            run.cancel()
        return count

    def stop(self) -> None:
        """Ask the engine to end."""
        self.engine.stop()
        if self.lifecycle.phase is not Phase.STOPPED:
            self._enter(Phase.STOPPED)

    def join(self, timeout_s: float) -> bool:
        """Wait for the engine; return whether it has ended."""
        return self.engine.join(timeout_s)

    def watch(self) -> None:
        """Detect an iteration or a start-up that hangs; to be called about every second."""
        now_s = self.clock()
        since_s = self.engine.executing_since_s
        stalled = since_s is not None and now_s - since_s > self.options.stall_timeout_s
        if stalled and self._stalled_since_s is None:
            self._stalled_since_s = since_s
            log.error(
                "an iteration has run for more than HEADROOM_STALL_TIMEOUT_S=%g s; %d requests "
                "failed",
                self.options.stall_timeout_s,
                len(self._runs),
            )
            self.engine.fail_all("the device does not respond")
        elif not stalled:
            self._stalled_since_s = None
        over_s = self._began_s + self.options.warmup_timeout_s + STARTUP_SLACK_S
        if self.lifecycle.starting and self.failure is None and now_s > over_s:
            self.on_lost(
                "the model did not become warm within "
                f"HEADROOM_WARMUP_TIMEOUT_S={self.options.warmup_timeout_s:g} s"
            )

    @property
    def warm(self) -> bool:
        """Whether the model is loaded and warm."""
        return self.warm_engine is not None

    @property
    def begun(self) -> bool:
        """Whether it accepts requests, so that there is something to drain."""
        return self.lifecycle.phase is Phase.READY

    @property
    def impaired(self) -> bool:
        """Whether only a restart brings everything back."""
        return self.failure is not None

    @property
    def overloaded(self) -> bool:
        """Whether clients do better with another replica: two full iterations are in flight."""
        warm = self.warm_engine
        return warm is not None and len(self._runs) > 2 * warm.limits.max_sequences

    @property
    def ready(self) -> bool:
        """Whether it is warm, able to generate, and not draining."""
        return self.lifecycle.ready and self._fit

    @property
    def live(self) -> bool:
        """Whether no restart is needed; independent of load."""
        return self.failure is None and self._stalled_since_s is None

    @property
    def limits(self) -> GenerationLimits:
        """What the loaded model admits.

        Raises:
            RefusedError: it is not loaded yet.
        """
        if self.warm_engine is None:
            raise RefusedError("this replica is not ready", retry_after_s=1)
        return self.warm_engine.limits

    @property
    def _fit(self) -> bool:
        return self.failure is None and not self.suspected and self._stalled_since_s is None

    # ---- requests

    @property
    def in_flight(self) -> int:
        """Requests received and not ended."""
        return len(self._runs)

    def key(self) -> int:
        """Return the next choice's key."""
        return next(self._keys)

    def begin(self, arrived_s: float, options: RequestOptions) -> GenerationRun:
        """Receive a valid request; its run must be closed.

        Raises:
            ImpossibleDeadlineError: nothing was ever computed as fast; it is not received.
            RefusedError: no request is accepted now; it is counted.
        """
        if self.cache is None:  # a cached answer takes no time
            fastest_s = self.engine.fastest_s
            check_deadline(options.deadline_s, fastest_s, TIMEOUT)
            check_deadline(options.first_token_deadline_s, fastest_s, FIRST_TOKEN_TIMEOUT)
        self.ledger.receive(retried=options.retried)
        if (own := self.classes.of(options.slo_class)) is not None:
            own.requests.receive(retried=options.retried)
        run = GenerationRun(self, arrived_s, options)
        self._runs.add(run)
        self._idle.clear()
        refusal = self._closed()
        if refusal is not None:
            self.ledger.refuse(refusal)
            run.close(Outcome.REFUSED)
            raise closed_error(refusal)
        return run

    def refused(self, error: RefusedError) -> None:
        """Count the reason of an engine's refusal."""
        if isinstance(error, LateError):
            reason = Refusal.DEADLINE
        else:
            full = isinstance(error, QueueFullError)
            reason = Refusal.QUEUE_FULL if full else Refusal.DRAINING
        self.ledger.refuse(reason)

    def closed(self, run: GenerationRun, outcome: Outcome) -> None:
        """A run has its outcome."""
        self._runs.discard(run)
        if not self._runs:
            self._idle.set()
        took_s, options = self.clock() - run.arrived_s, run.options
        self.ledger.end(outcome, took_s, options.deadline_s)
        if (own := self.classes.of(options.slo_class)) is not None:
            own.requests.end(outcome, took_s, options.deadline_s)

    def _closed(self) -> Refusal | None:
        serving = self.warm and self._fit
        if serving and self.lifecycle.phase is Phase.READY:
            return None
        draining = self.draining and not (self._intake_open and serving)
        return refusal_when_closed(ready=serving, draining=draining)

    # ---- reports

    def snapshot(self) -> GenerationSnapshot:
        """Return the state for metrics."""
        warm = self.warm_engine
        return GenerationSnapshot(
            model=self.model,
            engine=self.engine.name,
            device=self.engine.device,
            emulated=self.engine.emulated,
            ledger=self.ledger,
            generation=self.generation,
            classes=self.classes,
            counts=self.engine.statistics(),
            in_flight=len(self._runs),
            limits=None if warm is None else warm.limits,
            ready=self.ready,
            draining=self.lifecycle.phase is Phase.DRAINING,
            phase_s=self.lifecycle.seconds(self.clock()),
            page=next(self._pages),
            cache=None if self.cache is None else self.cache.counts(),
            features=None if self.features is None else self.features.counts(),
        )

    # ---- the engine's events

    def on_phase(self, phase: Phase, at_s: float) -> None:
        """A startup phase began at a time; the loop may learn of it later."""
        if self.lifecycle.starting:
            self._enter(phase, at_s)

    def on_warm(self, warm: WarmEngine) -> None:
        """The engine is ready."""
        self.warm_engine = warm
        for cache in (self.cache, self.features):
            if cache is not None:
                cache.start()
        if self.lifecycle.starting:
            self._enter(Phase.READY)
        self._settled.set()

    def on_suspected(self, suspected: bool) -> None:
        """The engine fails every iteration, or no longer does."""
        self.suspected = suspected
        log.warning("the engine %s", "fails every iteration" if suspected else "works again")

    def on_lost(self, message: str) -> None:
        """Nothing can be generated any more."""
        self.failure = message
        log.error("%s", message)
        self.engine.abandon()
        self._ended.set()
        self._settled.set()

    def _enter(self, phase: Phase, at_s: float | None = None) -> None:
        left = self.lifecycle
        now_s = self.clock() if at_s is None else max(at_s, left.since_s)
        self.lifecycle = left.advance(phase, now_s)
        self.draining = phase is Phase.DRAINING or phase is Phase.STOPPED
        spent_s = self.lifecycle.spent_s[left.phase]
        log.info("%s: %s after %.2f s of %s", self.model, phase, spent_s, left.phase)
