"""Reports failed ticks: a line in the log, and a condition of the service."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from headroom.controller.scheduling.failure_log import FailureLog
from headroom.controller.scheduling.retry_pause import FailureStreak
from headroom.errors import ClusterError, Unavailable

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TickFailures:
    """Reports the failures of all services."""

    on_failure: Callable[[str, Exception], Awaitable[None]]
    name_of: Callable[[str], str]
    deadline_s: float
    """Deadline of a tick, and again of the report of its failure."""
    log: FailureLog = field(default_factory=FailureLog)

    async def report(self, uid: str, streak: FailureStreak, error: Exception) -> None:
        """Log a failure once, and report it while it lasts."""
        is_new = self._complain(uid, streak, error)
        # An API server that answers no tick takes no status either.
        is_news = is_new and not isinstance(error, Unavailable | TimeoutError)
        await self._try_to_report(uid, error, logging.INFO if is_news else logging.DEBUG)

    def _complain(self, uid: str, streak: FailureStreak, error: Exception) -> bool:
        """Log a failure that is new for a service, if it is; bugs with a traceback."""
        late = f"it did not finish within {self.deadline_s:g} s"
        text = str(error) or (late if isinstance(error, TimeoutError) else "")
        complaint = f"{type(error).__name__}: {text}"
        if complaint == streak.complaint:
            return False
        streak.complaint = complaint
        line = self.log.line(error, complaint, asyncio.get_running_loop().time())
        if line is not None:
            expected = isinstance(error, ClusterError | TimeoutError)
            trace = None if expected else error
            _log.warning("%s: tick failed: %s", self.name_of(uid), line, exc_info=trace)
        return True

    async def _try_to_report(self, uid: str, error: Exception, level: int) -> None:
        try:
            async with asyncio.timeout(self.deadline_s):
                await self.on_failure(uid, error)
        except Exception as second:  # noqa: BLE001  (the condition is best effort; the log has said it)
            words = "%s: the failure could not be written to status: %s"
            _log.log(level, words, self.name_of(uid), second)
