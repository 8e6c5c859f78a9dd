"""The draft model's part of an iteration: it proposes tokens that the model then checks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from headroom_server.engine import DeviceLostError
from headroom_server.errors import public
from headroom_server.generation.loop.shared_scheduler import SharedScheduler
from headroom_server.generation.ports import Executor
from headroom_server.generation.scheduling.scheduler import Scheduler

log = logging.getLogger("headroom_server")

FAILURES_IN_A_ROW = 3
"""Failures after which requests do without it."""


class Drafting:
    """Lets an executor's draft model propose, on the device thread."""

    def __init__(
        self,
        executor: Executor,
        shared: SharedScheduler,
        *,
        clock: Callable[[], float],
        enabled: bool,
    ) -> None:
        self.enabled = enabled
        self._executor = executor
        self._shared = shared
        self._clock = clock
        self._failures = 0

    def propose(self, scheduler: Scheduler) -> None:
        """Let the draft model propose tokens for the next iteration.

        Requests do without it: one that fails repeatedly is not asked again.
        """
        with self._shared.changed:
            wanted = scheduler.wanted_drafts()
            if wanted is None:
                return
            began_s = self._shared.executing_since_s = self._clock()
        proposed: Sequence[Sequence[int]] = [()] * len(wanted.sequences)
        try:
            proposed = self._executor.draft(wanted.sequences, wanted.most)
            self._failures = 0
        except DeviceLostError:
            raise
        except Exception as error:
            self._failures += 1
            self.enabled = self._failures < FAILURES_IN_A_ROW
            log.exception("the draft model failed: %s", public(str(error))[:500])
        with self._shared.changed:
            self._shared.executing_since_s = None
            spent_s = self._clock() - began_s
            self._shared.busy_s += spent_s
            scheduler.take_drafts(wanted, proposed, spent_s)
