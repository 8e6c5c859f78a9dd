"""One device of a model: its thread, what it has in hand, and how it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from operator import attrgetter
from typing import Protocol

from headroom_server.device.execution import ExecutedBatch
from headroom_server.device.startup import Warm, WarmUpPlan
from headroom_server.device.thread import DeviceThread
from headroom_server.device.warming import SelfTest
from headroom_server.engine import Engine
from headroom_server.errors import FailedError
from headroom_server.lifecycle import Phase
from headroom_server.runtime.in_flight import InFlight
from headroom_server.runtime.pending import PendingRequest
from headroom_server.scheduling.entries import QueueEntry, SealedBatch


class Group(Protocol):
    """All devices of a model. `take` and `peek` are called on the device's thread."""

    in_flight: InFlight

    def take(self, one: Device) -> SealedBatch[PendingRequest]:
        """The next batch."""

    def peek(self, one: Device) -> SealedBatch[PendingRequest]:
        """What the device would be given now."""

    def advance(self, one: Device, phase: Phase) -> None:
        """A device goes on."""

    def on_self_test(self, result: SelfTest) -> None:
        """A self-test has ended."""

    def on_executed(self, one: Device, done: ExecutedBatch[PendingRequest]) -> None:
        """A batch is over."""

    def on_lost(self, one: Device, message: str) -> None:
        """A device is gone."""


class Device:
    """Listens to its thread."""

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
        """Whether it fails everything, even what it answered in warm-up."""
        self.gone = False
        """Whether it will execute nothing any more."""
        self.busy_s = 0.0
        self.held: dict[int, Sequence[QueueEntry[PendingRequest]]] = {}
        """Batches taken and not reported, by the key of their first request."""
        self._group = group
        self._clock = clock
        self._stall_timeout_s = stall_timeout_s
        self.thread: DeviceThread[PendingRequest] = DeviceThread(
            engine,
            plan,
            take=lambda: group.take(self),
            peek=lambda: group.peek(self),
            waits=lambda: group.in_flight.waiting_items > 0,
            work_of=attrgetter("work"),
            clock=clock,
        )

    @property
    def stalled(self) -> bool:
        """Whether it has been on one batch for too long."""
        busy_since_s = self.thread.busy_since_s
        return busy_since_s is not None and self._clock() - busy_since_s > self._stall_timeout_s

    @property
    def live(self) -> bool:
        """Whether it may still execute something."""
        return not self.gone and self.thread.alive and not self.stalled

    @property
    def fit(self) -> bool:
        """Whether it executes what it is given."""
        return self.live and not self.suspected

    def on_phase(self, phase: Phase) -> None:
        """A startup phase has begun."""
        self._group.advance(self, phase)

    def on_self_test(self, result: SelfTest) -> None:
        """A self-test has ended."""
        self._group.on_self_test(result)

    def on_warm(self, warm: Warm) -> None:
        """It is ready."""
        self.warm = warm
        self._group.advance(self, Phase.READY)

    def on_executed(self, done: ExecutedBatch[PendingRequest]) -> None:
        """A batch is over."""
        if self.held:
            for entry in chain(done.sealed.batch, done.sealed.expired):
                self.held.pop(entry.key, None)
        if done.sealed.batch:
            self.busy_s += done.seconds
        self._group.on_executed(self, done)

    def on_suspected(self, suspected: bool) -> None:
        """It fails everything, or does so no more."""
        self.suspected = suspected
        self.thread.wake()

    def on_lost(self, message: str) -> None:
        """It will execute nothing more."""
        self.gone = True
        self._group.on_lost(self, message)

    def fail_held(self, message: str) -> int:
        """Answer what it has in hand with an error; say how many requests that were."""
        held = list(chain.from_iterable(list(self.held.values())))
        return self._group.in_flight.fail(held, lambda: FailedError(message))
