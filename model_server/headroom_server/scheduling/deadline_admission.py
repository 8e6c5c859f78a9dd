"""Decides whether a new request would meet its deadline, and learns from those that did not. Pure.

A request is accepted if its predicted finish (`finish_prediction`) is within the usable share of
its deadline (`deadline_margin`), which each priority has for itself.
"""

from __future__ import annotations

from typing import Any

from headroom_server.scheduling.batching import Batcher
from headroom_server.scheduling.deadline_margin import DeadlineMargin
from headroom_server.scheduling.entries import QueueEntry
from headroom_server.scheduling.finish_prediction import FinishPrediction

BUDGET_WEIGHT = 0.02
UNCHANGED = DeadlineMargin()


class DeadlineAdmission:
    """The margins, by priority, over one queue's prediction."""

    __slots__ = ("_batcher", "_margins", "_prediction", "budget_s")

    def __init__(self, batcher: Batcher[Any], prediction: FinishPrediction) -> None:
        self._batcher = batcher
        self._prediction = prediction
        self._margins: dict[int, DeadlineMargin] = {}
        self.budget_s: float | None = None
        """Recent mean time from arrival to deadline; None before any request had one."""

    def late(self, entry: QueueEntry[Any], deadline_s: float, now_s: float) -> bool:
        """Return whether a new request is predicted to miss its deadline."""
        budget_s = deadline_s - entry.arrived_s
        usual_s = budget_s if self.budget_s is None else self.budget_s
        self.budget_s = usual_s + BUDGET_WEIGHT * (budget_s - usual_s)
        prediction = self._prediction
        if not prediction.price_for_admission(now_s):
            return deadline_s < now_s
        if prediction.pool.idle and not self._batcher.items:
            # refusing would leave a device idle, with nothing learned: only a hopeless request is
            # refused
            late = self._batcher.prices.too_late(entry, now_s)
        else:
            finish_s = prediction.finish_s(entry, now_s)
            late = finish_s > self.margin(entry.priority).latest_s(entry.arrived_s, deadline_s)
        if late:
            prediction.doubt(now_s)
        return late

    def record(
        self, entry: QueueEntry[Any], deadline_s: float, now_s: float, *, answered: bool
    ) -> None:
        """Record that an accepted request was answered or expired."""
        margin = self.margin(entry.priority)
        if self._at_own_risk(entry, deadline_s, margin):
            return
        self._margins[entry.priority] = margin.record(
            missed=not answered or now_s > deadline_s, arrived_s=entry.arrived_s, now_s=now_s
        )

    def margin(self, priority: int) -> DeadlineMargin:
        """Return the margin at a priority."""
        return self._margins.get(priority, UNCHANGED)

    def _at_own_risk(
        self, entry: QueueEntry[Any], deadline_s: float, margin: DeadlineMargin
    ) -> bool:
        """Return whether only an idle device accepts it: its miss says nothing about admission."""
        alone_s = self._batcher.prices.batch_s(entry.items, entry.length)
        soonest_s = entry.arrived_s + alone_s + 2.0 * self._prediction.overhead_s.high
        return soonest_s > margin.latest_s(entry.arrived_s, deadline_s)
