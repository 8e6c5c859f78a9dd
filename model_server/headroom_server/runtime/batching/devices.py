"""The devices of one model, which share its queue: in step until all are warm, then independent.

A device that fails before that fails the start. When one is lost later, hangs or fails every batch,
the others continue with the queue. The requests of a lost device get an error and are not retried:
a request that crashes a device would crash all of them, one after the other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from headroom_server.device.batches import ExecutedBatch
from headroom_server.device.startup import WarmUpPlan
from headroom_server.device.warming import SelfTest
from headroom_server.engine import Engine
from headroom_server.errors import FailedError
from headroom_server.lifecycle import Phase
from headroom_server.runtime.batching.common_warm_up import common_warm_up
from headroom_server.runtime.batching.device import Device
from headroom_server.runtime.batching.devices_owner import Owner
from headroom_server.runtime.batching.in_flight import InFlight
from headroom_server.runtime.batching.pending import PendingRequest
from headroom_server.runtime.batching.shared_queue import SharedQueue
from headroom_server.scheduling.entries import SealedBatch
from headroom_server.telemetry.snapshot import DeviceStatus

log = logging.getLogger("headroom_server")

PHASES = tuple(Phase)
NOTHING: SealedBatch[PendingRequest] = SealedBatch((), ())


class Devices:
    """All devices of a model, numbered from 0 in the order of the engines."""

    def __init__(
        self,
        engines: Sequence[Engine],
        plan: WarmUpPlan,
        queue: SharedQueue,
        in_flight: InFlight,
        owner: Owner,
        *,
        clock: Callable[[], float],
        stall_timeout_s: float,
    ) -> None:
        self.queue = queue
        self.in_flight = in_flight
        self.owner = owner
        self._clock = clock
        self._all = [
            Device(number, engine, plan, self, clock=clock, stall_timeout_s=stall_timeout_s)
            for number, engine in enumerate(engines)
        ]

    # ---- life

    def start(self, post: Callable[..., object]) -> None:
        """Start loading on all devices; `post` calls functions on the owner's thread."""
        for one in self._all:
            one.thread.start(post, one)

    def stop(self) -> None:
        """Ask all threads to end after their current batch."""
        for one in self._all:
            one.thread.stop()

    def join(self, timeout_s: float) -> bool:
        """Wait for all threads up to a timeout; return whether they have ended."""
        end_s = self._clock() + timeout_s
        return all(one.thread.join(max(0.0, end_s - self._clock())) for one in self._all)

    def fail_stalled(self) -> int:
        """Fail the requests of hanging devices, and the queue if no other device can execute it."""
        stalled = [one for one in self._all if one.stalled and not one.gone]
        if stalled and not self.live:
            return self.in_flight.fail_all(lambda: FailedError("the device hangs"))
        return sum(one.fail_held("the device hangs") for one in stalled)

    @property
    def live(self) -> bool:
        """Whether any device can still execute batches."""
        return any(one.live for one in self._all)

    @property
    def fit(self) -> bool:
        """Whether any device executes its batches successfully."""
        return any(one.fit for one in self._all)

    @property
    def suspected(self) -> bool:
        """Whether all remaining devices fail every batch."""
        return self.live and all(one.suspected for one in self._all if one.live)

    @property
    def serving(self) -> bool:
        """Whether a device remains that does not hang."""
        for one in self._all:  # noqa: SIM110 - asked per request, and a generator costs as much again
            if not one.gone and not one.stalled:
                return True
        return False

    @property
    def impaired(self) -> bool:
        """Whether a device was lost."""
        return any(one.gone for one in self._all)

    # ---- batches

    def wake(self, number: int) -> None:
        """Wake a device that found no work."""
        self._all[number].thread.wake()

    def on_queued(self) -> None:
        """Notify the devices of a queued request, which may be staged ahead."""
        for one in self._all:
            one.thread.on_queued()

    @property
    def pipelined(self) -> bool:
        """Whether any device stages ahead."""
        return any(one.thread.pipelined for one in self._all)

    def take(self, one: Device) -> SealedBatch[PendingRequest]:
        """Return the next batch, on the device's thread.

        A device that fails every batch is free first: without this check it would take all work
        from the healthy ones.
        """
        if one.suspected and self.fit:
            self.queue.decline(one.number)
            return NOTHING
        sealed = self.queue.take(one.number)
        if sealed.batch and len(self._all) > 1:
            one.held[sealed.batch[0].key] = sealed.batch
            self.on_queued()  # what comes after it is for another device to stage
        return sealed

    def peek(self, one: Device) -> SealedBatch[PendingRequest]:
        """Return the batch that the device would get if it were next."""
        return self.queue.peek(one.number)

    # ---- what the devices tell

    def advance(self, one: Device, phase: Phase, at_s: float | None = None) -> None:
        """Record a device's phase; notify the owner when the last device has entered it."""
        before = self._last()
        one.phase = phase
        after = self._last()
        if after is before:
            return
        if after is Phase.READY:
            warm = common_warm_up([each.warm for each in self._all if each.warm is not None])
            if warm is None:
                message = "the model has different inputs or outputs on different devices"
                self.owner.on_lost(message)
            else:
                self.owner.on_warm(warm)
        else:
            self.owner.on_phase(after, at_s)

    def on_self_test(self, result: SelfTest) -> None:
        """Forward a self-test to the owner."""
        self.owner.on_self_test(result)

    def on_executed(self, one: Device, done: ExecutedBatch[PendingRequest]) -> None:
        """Forward a batch to the owner."""
        self.owner.on_executed(done, one.number)

    def on_lost(self, one: Device, message: str) -> None:
        """Handle a lost device: the model is lost if it is not warm yet or has no other device."""
        left = sum(not each.gone for each in self._all)
        if self._last() is not Phase.READY or not left:
            self.owner.on_lost(message)
            return
        self.queue.decline(one.number, lost=True)
        failed = one.fail_held("the device is lost")
        log.error(
            "device %d: %s; %d requests failed, %d of %d devices continue",
            one.number,
            message,
            failed,
            left,
            len(self._all),
        )

    def _last(self) -> Phase:
        return min((one.phase for one in self._all), key=PHASES.index)

    # ---- reports

    @property
    def budget_share(self) -> float:
        """The smallest share of a full batch that memory allows at once on any device."""
        return min(one.thread.budget_share for one in self._all)

    def seen(self) -> tuple[DeviceStatus, ...]:
        """Return each device's state for metrics."""
        return tuple(DeviceStatus(one.busy_s, one.fit) for one in self._all)
