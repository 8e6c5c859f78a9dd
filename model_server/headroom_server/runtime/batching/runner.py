"""One model that batches, on its devices: start, health, what the devices report, metrics."""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
import time
from collections.abc import Callable, Sequence

from headroom_server.caching.cache import Cache
from headroom_server.device.batches import ExecutedBatch
from headroom_server.device.startup import Warm, WarmUpPlan, not_warm
from headroom_server.device.warming import SelfTest
from headroom_server.engine import Engine
from headroom_server.errors import FailedError
from headroom_server.lifecycle import Phase
from headroom_server.runtime.batching.common_warm_up import timings_of
from headroom_server.runtime.batching.devices import Devices
from headroom_server.runtime.batching.featuring import FeatureSource
from headroom_server.runtime.batching.model_queue import Limits, ModelQueue
from headroom_server.runtime.batching.pending import PendingRequest
from headroom_server.scheduling.admission import Refusal
from headroom_server.scheduling.cost_model import CostModel
from headroom_server.signature import Signature
from headroom_server.telemetry.snapshot import Snapshot
from headroom_server.tracing.current import executed as trace_batch

log = logging.getLogger("headroom_server")


class Runner(ModelQueue):
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
        super().__init__(model, limits, len(engines), clock, chance, cache, features)
        self.engine = engines[0]
        """All engines are of one kind."""
        self.signature: Signature | None = None
        self.self_test: SelfTest | None = None
        self.warm: Warm | None = None
        """Results of warm-up; None before."""
        self._plan = plan
        self._pages = itertools.count(1)
        stall_s = limits.stall_timeout_s
        self._devices = Devices(
            engines, plan, self._queue, self._in_flight, self, clock=clock, stall_timeout_s=stall_s
        )

    # ---- life

    def start(self) -> None:
        """Start loading, on the running loop."""
        self._devices.start(asyncio.get_running_loop().call_soon_threadsafe)

    def stop(self) -> None:
        """Ask the device threads to end after their current batch."""
        self._devices.stop()
        if self._featuring is not None:
            self._featuring.stop()
        self._stopped()

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
        if self._start_hangs(self._plan.timeout_s):
            self.on_lost(not_warm(self._plan))

    @property
    def ready(self) -> bool:
        """Whether it is warm, able to execute, and not draining."""
        return self.lifecycle.ready and self.failure is None and self._devices.fit

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

    def _wake(self, device: int) -> None:
        self._devices.wake(device)

    def _closed(self) -> Refusal | None:
        serving = self.signature is not None and self.failure is None and self._devices.serving
        if serving and self.lifecycle.phase is Phase.READY:
            return None
        return self._refusal(serving=serving)

    # ---- what the devices report

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
        padded_batch = warm.signature.padded_batch if warm.signature.batches else None
        self._scheduler.seed(CostModel.from_warm_up(timings_of(warm)), padded_batch)
        self._serve(warm.signature)
        if self._devices.pipelined:
            self._queue.on_queued = self._devices.on_queued
        self._warmed()

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
        self._lost()

    # ---- reports

    def snapshot(self) -> Snapshot:
        """Return the state for metrics."""
        now_s = self.clock()
        queue = self._queue.status()
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
