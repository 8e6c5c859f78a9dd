"""Stages the expected next batch while the device computes.

Staging ahead is speculative. Only the queue decides what a batch is, at the moment the device is
free; whatever still fits is reused, so that batches are the same as without staging ahead.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Generic, TypeVar

from headroom_server.device.batches import StagedAhead
from headroom_server.device.execution import Executor
from headroom_server.scheduling.entries import SealedBatch

log = logging.getLogger("headroom_server")

T = TypeVar("T")


def worth_staging(items: int, staged_items: int, full: int) -> bool:
    """Return whether a batch that has grown is staged again, before it is complete.

    At twice the size, or full: so all speculative staging costs at most two batches.
    """
    return items > staged_items and (items >= full or items >= 2 * staged_items)


class Lookahead(Generic[T]):
    """A thread that stages the expected next batch while the device computes."""

    def __init__(
        self,
        executor: Executor[T],
        *,
        peek: Callable[[], SealedBatch[T]],
        full: int,
        clock: Callable[[], float],
    ) -> None:
        self._executor = executor
        self._peek = peek
        self._full = full
        self._clock = clock
        self._wakeups: SimpleQueue[bool] = SimpleQueue()
        self._lock = threading.Lock()
        self._open = False
        self._ahead = StagedAhead()
        threading.Thread(target=self._run, name="lookahead", daemon=True).start()

    def open(self) -> None:
        """Start staging waiting requests, and those queued from now on: the device computes."""
        with self._lock:
            self._open = True
        self.wake()

    def wake(self) -> None:
        """Notify the thread of a queued request."""
        self._wakeups.put(True)

    def close(self) -> StagedAhead:
        """Return the staged batch, after staging in progress: the device is free."""
        with self._lock:
            self._open = False
            ahead, self._ahead = self._ahead, StagedAhead()
        return ahead

    def stop(self) -> None:
        """End the thread."""
        self._wakeups.put(False)

    def _run(self) -> None:
        while self._wakeups.get():
            with self._lock:
                if self._open:
                    self._stage()

    def _stage(self) -> None:
        sealed = self._peek()
        if not sealed.batch or not self._executor.fits(sealed):
            return
        staged = self._ahead.staged
        staged_items = 0 if staged is None else sum(work.items for work in staged.batch)
        if not worth_staging(sealed.items, staged_items, self._full):
            return
        began_s = self._clock()
        self._ahead = StagedAhead()
        try:
            staged = self._executor.stage(sealed, staged)
        except Exception:
            log.debug("staging ahead failed", exc_info=True)
        else:
            self._ahead = StagedAhead(staged, self._clock() - began_s)
