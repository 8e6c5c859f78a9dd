"""The devices of one model, all on its one queue: in step until all are warm, then each for itself.

One that fails before fails the start. One that is lost later leaves the rest to the others, and so
does one that hangs or fails everything, until it comes back. What a lost one had in hand is
answered with an error and tried on no other: a request that can take a device with it would take
them all, one after the other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Protocol

from headroom_server.device.execution import ExecutedBatch
from headroom_server.device.startup import Warm, WarmUpPlan
from headroom_server.device.warming import SelfTest
from headroom_server.engine import Engine
from headroom_server.errors import FailedError
from headroom_server.lifecycle import Phase
from headroom_server.runtime.device import Device
from headroom_server.runtime.in_flight import InFlight
from headroom_server.runtime.pending import PendingRequest
from headroom_server.scheduling.entries import SealedBatch
from headroom_server.telemetry.metrics import DeviceStatus

log = logging.getLogger("headroom_server")

PHASES = tuple(Phase)
NOTHING: SealedBatch[PendingRequest] = SealedBatch((), ())


class Owner(Protocol):
    """Who is told of all devices together, on the event loop's thread."""

    def on_phase(self, phase: Phase) -> None:
        """The last one has entered a startup phase."""

    def on_self_test(self, result: SelfTest) -> None:
        """A self-test has ended, well or not."""

    def on_warm(self, warm: Warm) -> None:
        """All are ready."""

    def on_executed(self, done: ExecutedBatch[PendingRequest], device: int) -> None:
        """A batch is over."""

    def on_lost(self, message: str) -> None:
        """Nothing will be executed any more."""


class Devices:
    """All of them; numbers count from 0, in the order of the engines."""

    def __init__(
        self,
        engines: Sequence[Engine],
        plan: WarmUpPlan,
        in_flight: InFlight,
        owner: Owner,
        *,
        clock: Callable[[], float],
        stall_timeout_s: float,
    ) -> None:
        self.in_flight = in_flight
        self.owner = owner
        self._clock = clock
        self._all = [
            Device(number, engine, plan, self, clock=clock, stall_timeout_s=stall_timeout_s)
            for number, engine in enumerate(engines)
        ]

    # ---- life

    def start(self, post: Callable[..., object]) -> None:
        """Begin to load on all at once; `post` brings calls to the owner's thread."""
        for one in self._all:
            one.thread.start(post, one)

    def stop(self) -> None:
        """Ask all threads to end after the batch in hand."""
        for one in self._all:
            one.thread.stop()

    def join(self, timeout_s: float) -> bool:
        """Wait so long for all threads; whether they have ended."""
        end_s = self._clock() + timeout_s
        return all(one.thread.join(max(0.0, end_s - self._clock())) for one in self._all)

    def fail_stalled(self) -> int:
        """Answer what hangs with an error, and all that waits where nobody else executes it."""
        stalled = [one for one in self._all if one.stalled and not one.gone]
        if stalled and not self.live:
            return self.in_flight.fail_all(lambda: FailedError("the device hangs"))
        return sum(one.fail_held("the device hangs") for one in stalled)

    @property
    def live(self) -> bool:
        """Whether any may still execute something."""
        return any(one.live for one in self._all)

    @property
    def fit(self) -> bool:
        """Whether any executes what it is given."""
        return any(one.fit for one in self._all)

    @property
    def suspected(self) -> bool:
        """Whether all that are left fail everything."""
        return self.live and all(one.suspected for one in self._all if one.live)

    @property
    def serving(self) -> bool:
        """Whether one is left that does not hang."""
        for one in self._all:  # noqa: SIM110 - asked per request, and a generator costs as much again
            if not one.gone and not one.stalled:
                return True
        return False

    @property
    def impaired(self) -> bool:
        """Whether one was lost."""
        return any(one.gone for one in self._all)

    # ---- batches

    def wake(self, number: int) -> None:
        """There is work for a device that found none."""
        self._all[number].thread.wake()

    def on_queued(self) -> None:
        """Something joined the queue: it may be staged ahead."""
        for one in self._all:
            one.thread.on_queued()

    @property
    def pipelined(self) -> bool:
        """Whether one stages ahead."""
        return any(one.thread.pipelined for one in self._all)

    def take(self, one: Device) -> SealedBatch[PendingRequest]:
        """The next batch, on the device's thread.

        One that fails everything is free soonest: it would draw all work while others do it well.
        """
        if one.suspected and self.fit:
            self.in_flight.decline(one.number)
            return NOTHING
        sealed = self.in_flight.take(one.number)
        if sealed.batch and len(self._all) > 1:
            one.held[sealed.batch[0].key] = sealed.batch
            self.on_queued()  # what comes after it is for another device to stage
        return sealed

    def peek(self, one: Device) -> SealedBatch[PendingRequest]:
        """What the device would be given, as far as it is expected to be the next."""
        return self.in_flight.peek(one.number)

    # ---- what the devices tell

    def advance(self, one: Device, phase: Phase) -> None:
        """A device goes on; the owner hears of the last one."""
        before = self._last()
        one.phase = phase
        after = self._last()
        if after is before:
            return
        if after is Phase.READY:
            self._warmed([each.warm for each in self._all if each.warm is not None])
        else:
            self.owner.on_phase(after)

    def on_self_test(self, result: SelfTest) -> None:
        """The owner hears of each."""
        self.owner.on_self_test(result)

    def on_executed(self, one: Device, done: ExecutedBatch[PendingRequest]) -> None:
        """The owner hears of each."""
        self.owner.on_executed(done, one.number)

    def on_lost(self, one: Device, message: str) -> None:
        """A device is gone: the model with it, if it is not warm yet or has no other."""
        left = sum(not each.gone for each in self._all)
        if self._last() is not Phase.READY or not left:
            self.owner.on_lost(message)
            return
        self.in_flight.decline(one.number, lost=True)
        failed = one.fail_held("the device is lost")
        log.error(
            "device %d: %s; %d requests failed, %d of %d devices go on",
            one.number,
            message,
            failed,
            left,
            len(self._all),
        )

    def _last(self) -> Phase:
        return min((one.phase for one in self._all), key=PHASES.index)

    def _warmed(self, all_warm: Sequence[Warm]) -> None:
        first = all_warm[0]
        if any(warm.signature != first.signature for warm in all_warm):
            self.owner.on_lost("the model declares other tensors on one device than on another")
            return
        shapes = [
            same[0]._replace(
                first_s=max(one.first_s for one in same),
                later=tuple(chain.from_iterable(one.later for one in same)),
            )
            for same in zip(*(warm.shapes for warm in all_warm), strict=True)
        ]
        self.owner.on_warm(first._replace(shapes=shapes))

    # ---- reports

    @property
    def budget_share(self) -> float:
        """The least of a full batch that memory allows at once on any device."""
        return min(one.thread.budget_share for one in self._all)

    def seen(self) -> tuple[DeviceStatus, ...]:
        """What a scrape shows of each."""
        return tuple(DeviceStatus(one.busy_s, one.fit) for one in self._all)
