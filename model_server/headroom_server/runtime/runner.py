"""One model on its devices: life cycle, intake, queue and metrics.

Everything runs on the event loop's thread. Only the loop uses the ledger, so that a scrape is
consistent.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field

from headroom_server.caching.cache import Cache
from headroom_server.connection import Connection
from headroom_server.device.execution import ExecutedBatch, Outputs
from headroom_server.device.startup import Warm, WarmUpPlan, not_warm
from headroom_server.device.warming import SelfTest
from headroom_server.engine import Engine, Work
from headroom_server.errors import AbandonedError, FailedError
from headroom_server.lifecycle import Lifecycle, Phase
from headroom_server.runtime.devices import Devices
from headroom_server.runtime.featuring import FeatureSource, Featuring
from headroom_server.runtime.in_flight import InFlight
from headroom_server.runtime.intake import Intake
from headroom_server.runtime.pending import DoneCallback, PendingRequest
from headroom_server.scheduling.admission import Caps, Refusal, refusal_when_closed
from headroom_server.scheduling.cost_model import CostModel
from headroom_server.scheduling.request_options import RequestOptions, SloClasses
from headroom_server.scheduling.scheduler import Scheduler
from headroom_server.telemetry.accounting import Ledger
from headroom_server.telemetry.metrics import Snapshot
from headroom_server.tensors import Signature
from headroom_server.tracing.current import TRACE
from headroom_server.tracing.current import executed as trace_batch

log = logging.getLogger("headroom_server")


STARTUP_SLACK_S = 1.0
"""A device thread that still responds reports a start-up timeout itself within this time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits on batches and on the queue, in items, and on a batch's duration."""

    max_batch_size: int
    max_waiting: int
    stall_timeout_s: float
    max_waiting_bytes: int = 1 << 30
    max_wait_s: float = 0.0
    """How long an incomplete batch may wait for more requests; 0: not at all."""
    classes: SloClasses = field(default_factory=dict)
    """The model's SLO classes by name."""


class Runner:
    """One model on its devices."""

    def __init__(
        self,
        model: str,
        engines: Sequence[Engine],
        plan: WarmUpPlan,
        limits: Limits,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
        cache: Cache | None = None,
        features: FeatureSource | None = None,
    ) -> None:
        self.model = model
        self.engine = engines[0]
        """All engines are of one kind."""
        self.limits = limits
        self.clock = clock
        self.ledger = Ledger()
        self.lifecycle = Lifecycle(since_s=clock())
        self.draining = False
        """Whether it drains."""
        self.signature: Signature | None = None
        self.self_test: SelfTest | None = None
        self.warm: Warm | None = None
        """Results of warm-up; None before."""
        self.failure: str | None = None
        """Why nothing can be executed any more."""
        self._plan = plan
        self._began_s = clock()
        self._pages = itertools.count(1)
        self._intake_open = True
        caps = Caps(limits.max_waiting, limits.max_waiting_bytes)
        self._scheduler: Scheduler[PendingRequest] = Scheduler(
            limits.max_batch_size,
            caps,
            chance=chance,
            max_wait_s=limits.max_wait_s,
            devices=len(engines),
        )
        self._overload_items = 2 * limits.max_batch_size * len(engines)
        self._in_flight = InFlight(self._scheduler, self.ledger, clock=clock, wake=self._wake)
        self._cache = cache
        self._featuring = None
        if features is not None:
            stall_s = limits.stall_timeout_s
            self._featuring = Featuring(features, self.ledger, caps, stall_s=stall_s, clock=clock)
        self._intake = Intake(
            self._in_flight,
            self.ledger,
            closed=self._closed,
            clock=clock,
            cache=cache,
            featuring=self._featuring,
        )
        self.looks_up = cache is not None or features is not None
        """Whether a request is looked up in a cache before it is queued."""
        self._devices = Devices(
            engines,
            plan,
            self._in_flight,
            self,
            clock=clock,
            stall_timeout_s=limits.stall_timeout_s,
        )
        self._ended = asyncio.Event()
        self._settled = asyncio.Event()

    # ---- life

    def start(self) -> None:
        """Start loading, on the running loop."""
        self._devices.start(asyncio.get_running_loop().call_soon_threadsafe)

    async def started(self) -> None:
        """Wait until the model is warm, has failed, or is no longer wanted."""
        await self._settled.wait()

    async def failed(self) -> str:
        """Wait until nothing can be executed any more; return the reason."""
        await self._ended.wait()
        return self.failure or ""

    def drain(self) -> None:
        """Become unready. A loaded model accepts requests until the intake is closed."""
        self._settled.set()
        if not self.draining:
            self._enter(Phase.DRAINING)

    def close_intake(self) -> None:
        """Refuse new requests from now on."""
        self._intake_open = False

    async def wait_idle(self) -> None:
        """Wait until every accepted request has ended."""
        if self._cache is not None:
            await self._cache.wait_idle()
        if self._featuring is not None:
            await self._featuring.wait_idle()
        await self._in_flight.wait_idle()

    def abandon(self) -> int:
        """Fail every request in flight; return how many."""
        return self._in_flight.fail_all(
            lambda: AbandonedError("the server stopped before it could answer")
        )

    def stop(self) -> None:
        """Ask the device threads to end after their current batch."""
        self._devices.stop()
        if self._featuring is not None:
            self._featuring.stop()
        if self.lifecycle.phase is not Phase.STOPPED:
            self._enter(Phase.STOPPED)

    def join(self, timeout_s: float) -> bool:
        """Wait for the device threads; return whether they have ended."""
        return self._devices.join(timeout_s)

    def watch(self) -> None:
        """Detect hanging devices; to be called about every second.

        The requests of a hanging batch fail, and so does the queue if all devices hang. Until a
        batch ends, the server is neither ready nor live. A start-up that hangs fails.
        """
        failed = self._devices.fail_stalled()
        if failed:
            log.error(
                "a batch has run for more than HEADROOM_STALL_TIMEOUT_S=%g s; %d requests failed",
                self.limits.stall_timeout_s,
                failed,
            )
        over_s = self._began_s + self._plan.timeout_s + STARTUP_SLACK_S
        if self.lifecycle.starting and self.failure is None and self.clock() > over_s:
            self.on_lost(not_warm(self._plan))

    @property
    def ready(self) -> bool:
        """Whether it is warm, able to execute, and not draining."""
        return self.lifecycle.ready and self.failure is None and self._devices.fit

    @property
    def overloaded(self) -> bool:
        """Whether more than two full batches wait per device."""
        return self._scheduler.batcher.items > self._overload_items

    @property
    def live(self) -> bool:
        """Whether no restart is needed; independent of load."""
        return self.failure is None and self._devices.live

    @property
    def impaired(self) -> bool:
        """Whether a device was lost, which only a restart brings back."""
        return self._devices.impaired

    @property
    def devices_fit(self) -> list[bool]:
        """For each device, whether it executes its batches successfully."""
        return [one.fit for one in self._devices.seen()]

    @property
    def suspected(self) -> bool:
        """Whether the engine fails every batch, even the request that succeeded in warm-up."""
        return self._devices.suspected

    # ---- requests

    def refuse_unready(self) -> None:
        """Count and refuse a request that cannot be validated, because no model is loaded.

        Raises:
            RefusedError: always.
        """
        self._intake.refuse_unready()

    def submit(
        self,
        work: Work,
        *,
        arrived_s: float,
        options: RequestOptions,
        connection: Connection,
        on_done: DoneCallback,
    ) -> None:
        """Queue a request without a cache lookup; see `Intake.submit`.

        Raises:
            RequestError: refused; `on_done` is not called.
        """
        self._intake.submit(
            work, arrived_s=arrived_s, options=options, connection=connection, on_done=on_done
        )

    def infer(
        self, work: Work, *, arrived_s: float, options: RequestOptions, connection: Connection
    ) -> Coroutine[None, None, Outputs]:
        """Return the outputs of a request; see `Intake.infer`."""
        trace = TRACE.get()
        if trace is not None:
            trace.model, trace.accepted_s = self.model, self.clock()
        return self._intake.infer(work, arrived_s=arrived_s, options=options, connection=connection)

    def _closed(self) -> Refusal | None:
        serving = self.signature is not None and self.failure is None and self._devices.serving
        if serving and self.lifecycle.phase is Phase.READY:
            return None
        draining = self.draining and not (self._intake_open and serving)
        return refusal_when_closed(ready=serving, draining=draining)

    # ---- the devices

    def _wake(self, device: int) -> None:
        self._devices.wake(device)

    def on_phase(self, phase: Phase, at_s: float | None = None) -> None:
        """A startup phase began on the devices; the loop may learn of it later."""
        if self.lifecycle.starting:
            self._enter(phase, at_s)

    def on_self_test(self, result: SelfTest) -> None:
        """A self-test has ended."""
        self.self_test = result
        if not result.passed:
            log.warning(
                "self-test: p95 is %.1f ms, the maximum %.1f ms; testing again",
                result.p95_s * 1000,
                result.max_latency_s * 1000,
            )

    def on_warm(self, warm: Warm) -> None:
        """All devices are ready."""
        self.warm, self.signature = warm, warm.signature
        timings = [
            (shape.items, stages.total_s, shape.length)
            for shape in warm.shapes
            for stages in shape.later
        ]
        padded_batch = warm.signature.padded_batch if warm.signature.batches else None
        self._scheduler.seed(CostModel.from_warm_up(timings), padded_batch)
        self._in_flight.serve(warm.signature)
        if self._cache is not None:
            self._cache.serve(warm.signature)
        if self._featuring is not None:
            self._featuring.serve(warm.signature)
        if self._devices.pipelined:
            self._in_flight.on_queued = self._devices.on_queued
        if self.lifecycle.starting:
            self._enter(Phase.READY)
        self._settled.set()

    def on_executed(self, done: ExecutedBatch[PendingRequest], device: int) -> None:
        """Answer the requests of a batch, and learn from its duration.

        A defect in metrics or traces must not leave a request unanswered.
        """
        try:
            traces = [
                one for entry in done.sealed.batch if (one := entry.payload.trace) is not None
            ]
            if traces:
                trace_batch(self.model, done, traces)
            self._in_flight.settle(done, device)
        except Exception:  # the last resort, which logs it
            log.exception("a batch of %d requests was not settled", len(done.sealed.batch))
            entries = (*done.sealed.batch, *done.sealed.expired)
            self._in_flight.fail(entries, lambda: FailedError("the server failed"))

    def on_lost(self, message: str) -> None:
        """Nothing can be executed any more: fail every request."""
        self.failure = message
        log.error("%s", message)
        self._in_flight.fail_all(lambda: FailedError("the device is lost"))
        self._ended.set()
        self._settled.set()

    # ---- reports

    def snapshot(self) -> Snapshot:
        """Return the state for metrics."""
        now_s = self.clock()
        queue = self._in_flight.queue_status()
        return Snapshot(
            model=self.model,
            engine=self.engine.name,
            device=self.engine.device,
            emulated=self.engine.emulated,
            ledger=self.ledger,
            waiting=queue.waiting,
            oldest_waiting_s=0.0 if queue.oldest_s is None else max(0.0, now_s - queue.oldest_s),
            delay_s=queue.delay_s,
            saturation=queue.saturation,
            max_batch_size=self.limits.max_batch_size,
            budget_share=self._devices.budget_share,
            devices=self._devices.seen(),
            cost=self._scheduler.cost,
            ready=self.ready,
            draining=self.lifecycle.phase is Phase.DRAINING,
            phase_s=self.lifecycle.seconds(now_s),
            page=next(self._pages),
            cache=None if self._cache is None else self._cache.counts(),
            features=None if self._featuring is None else self._featuring.counts(),
        )

    def _enter(self, phase: Phase, at_s: float | None = None) -> None:
        left = self.lifecycle
        now_s = self.clock() if at_s is None else max(at_s, left.since_s)
        self.lifecycle = left.advance(phase, now_s)
        self.draining = phase is Phase.DRAINING or phase is Phase.STOPPED
        spent_s = self.lifecycle.spent_s[left.phase]
        log.info("%s: %s after %.2f s of %s", self.model, phase, spent_s, left.phase)
