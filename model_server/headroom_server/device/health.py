"""Health of an engine: its recent failures, whether it is suspected, and its memory budget."""

from __future__ import annotations

import logging

from headroom_server.device.isolation import Budget, Failure, FailureStreak
from headroom_server.device.warming import execute, synthetic
from headroom_server.engine import DeviceLostError, Engine
from headroom_server.signature import Signature

log = logging.getLogger("headroom_server")


class EngineHealth:
    """Learns from every execution; used on the device's thread."""

    def __init__(self, engine: Engine, signature: Signature, max_batch_size: int) -> None:
        self._engine = engine
        self._signature = signature
        self._streak = FailureStreak()
        self.budget = Budget.of(max_batch_size * max((1, *signature.lengths)))
        self.suspected = False
        """The engine failed even the request that succeeded in warm-up, and every one since."""

    def fits(self, items: int, length: int) -> bool:
        """Return whether a batch is executed as a whole: always, unless memory is short."""
        return self.budget.share == 1.0 or items <= self.budget.items(length)

    def learn(self, items: int, length: int, failure: Failure | None) -> None:
        """Learn from an execution and how it failed, if it did."""
        self._streak = self._streak.after(failure)
        if failure is None:
            self.suspected = False
        if failure is not None or self.budget.share < 1.0:
            self.budget = self.budget.after(items * max(1, length), failure)

    def works(self) -> bool:
        """Return whether the engine is not suspected; probe it if its failures are in doubt."""
        return not self.suspected and (not self._streak.due or self.probe())

    def probe(self) -> bool:
        """Execute the request that succeeded in warm-up; return whether it still does.

        Raises:
            DeviceLostError: raised by the engine.
        """
        length = self._signature.lengths[0] if self._signature.lengths else 0
        try:
            execute(self._engine, self._signature, synthetic(self._signature, 1, length))
        except DeviceLostError:
            raise
        except Exception:
            log.exception("the engine fails the request that succeeded in warm-up")
            self.suspected = True
        else:
            self.suspected = False
            self._streak = FailureStreak()
        return not self.suspected
