"""One device of a model: its thread, its current batches and its health."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from operator import attrgetter
from typing import Protocol

from headroom_server.device.batch_loop import BatchSource
from headroom_server.device.batches import ExecutedBatch
from headroom_server.device.startup import Warm, WarmUpPlan
from headroom_server.device.thread import DeviceThread
from headroom_server.device.warming import SelfTest
from headroom_server.engine import Engine
from headroom_server.errors import FailedError
from headroom_server.lifecycle import Phase
from headroom_server.runtime.batching.in_flight import InFlight
from headroom_server.runtime.batching.pending import PendingRequest
from headroom_server.runtime.batching.shared_queue import SharedQueue
from headroom_server.scheduling.entries import QueueEntry, SealedBatch


class Group(Protocol):
    """All devices of a model. `take` and `peek` are called on the device's thread."""

    queue: SharedQueue
    in_flight: InFlight

    def take(self, one: Device) -> SealedBatch[PendingRequest]:
        """Return the next batch."""

    def peek(self, one: Device) -> SealedBatch[PendingRequest]:
        """Return the batch that the device would get now."""

    def advance(self, one: Device, phase: Phase, at_s: float | None = None) -> None:
        """Record that a device entered a phase."""

    def on_self_test(self, result: SelfTest) -> None:
        """A self-test has ended."""

    def on_executed(self, one: Device, done: ExecutedBatch[PendingRequest]) -> None:
        """A batch has ended."""

    def on_lost(self, one: Device, message: str) -> None:
        """A device is lost."""


class Device:
    """A device and the listener of its thread."""

    def __init__(
        self,
        number: int,
        engine: Engine,
        plan: WarmUpPlan,
        group: Group,
        *,
        clock: Callable[[], float],
        stall_timeout_s: float,
    ) -> None:
        self.number = number
        self.phase = Phase.INIT
        self.warm: Warm | None = None
        self.suspected = False
        """Whether every batch fails, even the request that succeeded in warm-up."""
        self.gone = False
        """Whether the device is lost for good."""
        self.busy_s = 0.0
        self.held: dict[int, Sequence[QueueEntry[PendingRequest]]] = {}
        """Batches taken and not yet reported, by the key of their first request."""
        self._group = group
        self._clock = clock
        self._stall_timeout_s = stall_timeout_s
        self.thread: DeviceThread[PendingRequest] = DeviceThread(
            engine,
            plan,
            BatchSource(
                take=lambda: group.take(self),
                peek=lambda: group.peek(self),
                waits=lambda: group.queue.waiting_items > 0,
                work_of=attrgetter("work"),
            ),
            clock=clock,
        )

    @property
    def stalled(self) -> bool:
        """Whether the current batch exceeds the stall timeout."""
        busy_since_s = self.thread.busy_since_s
        return busy_since_s is not None and self._clock() - busy_since_s > self._stall_timeout_s

    @property
    def live(self) -> bool:
        """Whether it can still execute batches."""
        return not self.gone and self.thread.alive and not self.stalled

    @property
    def fit(self) -> bool:
        """Whether it executes its batches successfully."""
        return self.live and not self.suspected

    def on_phase(self, phase: Phase, at_s: float) -> None:
        """A startup phase began at a time."""
        self._group.advance(self, phase, at_s)

    def on_self_test(self, result: SelfTest) -> None:
        """A self-test has ended."""
        self._group.on_self_test(result)

    def on_warm(self, warm: Warm) -> None:
        """The device is ready."""
        self.warm = warm
        self._group.advance(self, Phase.READY)

    def on_executed(self, done: ExecutedBatch[PendingRequest]) -> None:
        """A batch has ended."""
        if self.held:
            for entry in chain(done.sealed.batch, done.sealed.expired):
                self.held.pop(entry.key, None)
        if done.sealed.batch:
            self.busy_s += done.seconds
        self._group.on_executed(self, done)

    def on_suspected(self, suspected: bool) -> None:
        """Every batch fails, or no longer does."""
        self.suspected = suspected
        self.thread.wake()

    def on_lost(self, message: str) -> None:
        """The device is lost for good."""
        self.gone = True
        self._group.on_lost(self, message)

    def fail_held(self, message: str) -> int:
        """Fail its current requests; return how many."""
        held = list(chain.from_iterable(list(self.held.values())))
        return self._group.in_flight.fail(held, lambda: FailedError(message))
