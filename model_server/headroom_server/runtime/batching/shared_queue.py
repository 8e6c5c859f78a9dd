"""The queue of a model, shared by the event loop and the devices' threads: one lock protects it.

An idle device waits here until a request is queued.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple

from headroom_server.device.batches import ExecutedBatch
from headroom_server.runtime.batching.pending import PendingRequest
from headroom_server.scheduling.admission import Caps
from headroom_server.scheduling.entries import QueueEntry, SealedBatch
from headroom_server.scheduling.scheduler import Offer, Scheduler


class QueueStatus(NamedTuple):
    """The queue's state for metrics."""

    waiting: int
    oldest_s: float | None
    """Arrival time of the request that has waited longest."""
    delay_s: float | None
    """Predicted wait of a request arriving now; None until the device was timed."""
    saturation: float | None


class SharedQueue:
    """Requests that wait, and the devices that wait for them. `wake` wakes an idle device."""

    def __init__(
        self,
        scheduler: Scheduler[PendingRequest],
        *,
        clock: Callable[[], float],
        wake: Callable[[int], None],
    ) -> None:
        self._scheduler = scheduler
        self._clock = clock
        self._wake = wake
        self._lock = threading.Lock()
        self._idle: list[int] = []
        """Devices that found no work, the longest idle first."""
        self.on_queued: Callable[[], None] | None = None
        """Called when a request is queued for a busy device that stages ahead."""

    @property
    def waiting_items(self) -> int:
        """Items that are not in a batch yet."""
        return self._scheduler.batcher.items

    @property
    def fastest_s(self) -> float:
        """The shortest batch ever; 0 before the first."""
        return self._scheduler.fastest_s

    @property
    def caps(self) -> Caps:
        """The bounds of waiting requests."""
        return self._scheduler.caps

    def status(self) -> QueueStatus:
        """Return the queue's current state."""
        now_s, scheduler = self._clock(), self._scheduler
        with self._lock:
            return QueueStatus(
                len(scheduler.batcher),
                scheduler.batcher.oldest_s(),
                scheduler.delay_s(now_s),
                scheduler.saturation(now_s),
            )

    # ---- on the event loop

    def offer(self, entry: QueueEntry[PendingRequest]) -> Offer[PendingRequest]:
        """Queue a request, or refuse it; an idle device takes it at once."""
        with self._lock:
            offer = self._scheduler.offer(entry, self._clock())
            if offer.refusal is not None:
                return offer
            idle = self._idle.pop(0) if self._idle else None
        if idle is not None:
            self._wake(idle)
        elif self.on_queued is not None:
            self.on_queued()
        return offer

    def withdraw(self, entry: QueueEntry[PendingRequest]) -> bool:
        """Remove a request; return whether it still waited."""
        with self._lock:
            return self._scheduler.withdraw(entry.key)

    def record_batch(self, done: ExecutedBatch[PendingRequest], device: int) -> None:
        """Learn from the duration of a batch."""
        whole = done.stages is not None and bool(done.sealed.batch)
        with self._lock:
            self._scheduler.record_batch(
                done.sealed,
                done.began_s,
                done.seconds,
                whole=whole,
                device=device,
                failed=() if whole else done.failed,
            )

    def record_answer(
        self, entry: QueueEntry[PendingRequest], now_s: float, *, answered: bool
    ) -> None:
        """Learn from a request with a deadline, which was answered or has expired."""
        self._scheduler.record_answer(entry, now_s, answered=answered)

    # ---- on the devices' threads

    def take(self, device: int = 0) -> SealedBatch[PendingRequest]:
        """Return the next batch."""
        with self._lock:
            sealed = self._scheduler.seal(self._clock(), device)
            if not sealed.batch and not sealed.expired:
                if device not in self._idle:
                    self._idle.append(device)
            elif device in self._idle:
                self._idle.remove(device)
        return sealed

    def decline(self, device: int, *, lost: bool = False) -> None:
        """Pass work on to another idle device because this one takes none."""
        with self._lock:
            if device in self._idle:
                self._idle.remove(device)
            if lost:
                self._scheduler.remove_device(device)
            other = self._idle.pop(0) if self._idle and self._scheduler.batcher.items else None
        if other is not None:
            self._wake(other)

    def peek(self, device: int = 0) -> SealedBatch[PendingRequest]:
        """Estimate the batch that `take` would return; none if another device is expected next."""
        with self._lock:
            now_s = self._clock()
            if self._scheduler.next_device(now_s) != device:
                return SealedBatch((), ())
            return self._scheduler.batcher.peek(now_s)
