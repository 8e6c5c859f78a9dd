"""The requests of one model that batches: received, looked up, queued, and answered.

Everything runs on the event loop's thread. Only the loop uses the ledger, so that a scrape is
consistent.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field

from headroom_server.caching.cache import Cache
from headroom_server.connection import Connection
from headroom_server.device.batches import Outputs
from headroom_server.engine import Work
from headroom_server.errors import AbandonedError
from headroom_server.protocols.request_options import RequestOptions, SloClasses
from headroom_server.runtime.batching.featuring import FeatureSource, Featuring
from headroom_server.runtime.batching.in_flight import InFlight
from headroom_server.runtime.batching.intake import Intake
from headroom_server.runtime.batching.pending import DoneCallback, PendingRequest
from headroom_server.runtime.batching.shared_queue import SharedQueue
from headroom_server.runtime.model_life import ModelLife
from headroom_server.scheduling.admission import Caps, Refusal
from headroom_server.scheduling.scheduler import Scheduler
from headroom_server.signature import Signature
from headroom_server.telemetry.accounting import Ledger
from headroom_server.tracing.current import TRACE


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits on batches and on the queue, in items, and on a batch's duration."""

    max_batch_size: int
    max_waiting: int
    stall_timeout_s: float
    max_waiting_bytes: int = 1 << 30
    max_wait_s: float = 0.0
    """Longest time an incomplete batch may wait for more requests; 0: not at all."""
    classes: SloClasses = field(default_factory=dict)
    """The model's SLO classes by name."""


class ModelQueue(ModelLife, ABC):
    """One model's intake, queue and caches, for a number of devices."""

    def __init__(
        self,
        model: str,
        limits: Limits,
        devices: int,
        clock: Callable[[], float],
        chance: Callable[[], float],
        cache: Cache | None,
        features: FeatureSource | None,
    ) -> None:
        super().__init__(model, clock)
        self.limits = limits
        self.ledger = Ledger()
        caps = Caps(limits.max_waiting, limits.max_waiting_bytes)
        largest, max_wait_s = limits.max_batch_size, limits.max_wait_s
        self._scheduler: Scheduler[PendingRequest] = Scheduler(
            largest, caps, chance=chance, max_wait_s=max_wait_s, devices=devices
        )
        self._overload_items = 2 * largest * devices
        self._queue = SharedQueue(self._scheduler, clock=clock, wake=self._wake)
        self._in_flight = InFlight(self._queue, self.ledger, clock=clock)
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

    @abstractmethod
    def _wake(self, device: int) -> None:
        """Wake an idle device."""

    @abstractmethod
    def _closed(self) -> Refusal | None:
        """Return why no request is accepted now; None if one is."""

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

    @property
    def overloaded(self) -> bool:
        """Whether more than two full batches wait per device."""
        return self._scheduler.batcher.items > self._overload_items

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

    def _serve(self, signature: Signature) -> None:
        """Set the shapes in which the devices execute from now on."""
        self._in_flight.serve(signature)
        if self._cache is not None:
            self._cache.serve(signature)
        if self._featuring is not None:
            self._featuring.serve(signature)
