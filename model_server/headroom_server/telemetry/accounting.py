"""Counts of requests and batches since the process started. Pure.

Every received request is in exactly one place: waiting, running, or counted under one outcome. So
received = sum of outcomes + in flight at any time. Refusals are also counted by reason: refused =
sum of reasons.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from headroom_server.engine import StageTimes
from headroom_server.scheduling.admission import Refusal
from headroom_server.scheduling.entries import CloseReason
from headroom_server.telemetry.histograms import (
    BATCH_SIZE_BOUNDS,
    LATENCY_BOUNDS_S,
    RATIO_BOUNDS,
    STAGE_BOUNDS_S,
    Histogram,
)

STAGES = ("preprocess", "stage", "execute", "postprocess")
"""Label values, in the order of `StageTimes`."""


class Outcome(StrEnum):
    """End of a received request."""

    OK = "ok"
    REFUSED = "refused"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    FAILED = "failed"
    INVALID = "invalid"
    """Answered with an error of the client's own that only the execution could find: no miss."""


UNJUDGED = (Outcome.CANCELLED, Outcome.INVALID)
"""They neither meet nor miss a deadline."""


class Waste(StrEnum):
    """Device time that served no request."""

    CANCELLED = "cancelled"
    """The client had disconnected, or the request was already answered."""
    LATE = "late"
    """The deadline had passed when the batch ended."""
    FAILED = "failed"
    PADDING = "padding"


class Batch(NamedTuple):
    """One executed batch; ratios are shares of its items, or of its padded size."""

    items: int
    seconds: float
    queued_s: Sequence[float]
    """Time from each request's arrival to the batch."""
    close: CloseReason
    failed: bool
    late: float
    cancelled: float
    padding: float
    stages: StageTimes | None = None
    """None if it was executed in parts."""


class Ledger:
    """Counters and histograms. Used by one thread only."""

    def __init__(self) -> None:
        self.received = 0
        self.retried = 0
        self.outcomes = dict.fromkeys(Outcome, 0)
        self.refusals = dict.fromkeys(Refusal, 0)
        self.invalid: dict[str, int] = {}
        self.deadlines_met = 0
        self.deadlines_missed = 0
        self.busy_s = 0.0
        self.wasted_s = dict.fromkeys(Waste, 0.0)
        self.closed = dict.fromkeys(CloseReason, 0)
        self.request_s = Histogram(LATENCY_BOUNDS_S)
        self.queue_s = Histogram(LATENCY_BOUNDS_S)
        self.execution_s = Histogram(LATENCY_BOUNDS_S)
        self.batch_size = Histogram(BATCH_SIZE_BOUNDS)
        self.padding = Histogram(RATIO_BOUNDS)
        self.stage_s = {stage: Histogram(STAGE_BOUNDS_S) for stage in STAGES}

    @property
    def in_flight(self) -> int:
        """Requests received and not ended."""
        return self.received - sum(self.outcomes.values())

    def receive(self, *, retried: bool) -> None:
        """Record the arrival of a request; `retried`: it says that it was sent before."""
        self.received += 1
        self.retried += retried

    def end(self, outcome: Outcome, duration_s: float, deadline_s: float | None = None) -> None:
        """Record the end of a received request; the duration is recorded if it was answered.

        `deadline_s` counts from its arrival, as the duration does.
        """
        self.outcomes[outcome] += 1
        if outcome is Outcome.OK or outcome is Outcome.INVALID:
            self.request_s.observe(duration_s)
        if deadline_s is not None and outcome not in UNJUDGED:
            if outcome is Outcome.OK and duration_s <= deadline_s:
                self.deadlines_met += 1
            else:
                self.deadlines_missed += 1

    def refuse(self, refusal: Refusal) -> None:
        """Record the reason of a refusal."""
        self.refusals[refusal] += 1

    def reject(self, reason: str) -> None:
        """Record an invalid request."""
        self.invalid[reason] = self.invalid.get(reason, 0) + 1

    def record_batch(self, batch: Batch) -> None:
        """Record an executed batch."""
        self.execution_s.observe(batch.seconds)
        self.batch_size.observe(batch.items)
        self.queue_s.observe_all(batch.queued_s)
        self.busy_s += batch.seconds
        self.closed[batch.close] += 1
        self.padding.observe(batch.padding)
        if batch.stages is not None:
            for stage, seconds in zip(STAGES, batch.stages, strict=True):
                self.stage_s[stage].observe(seconds)
        if batch.failed:
            self.wasted_s[Waste.FAILED] += batch.seconds
            return
        used_s = (1.0 - batch.padding) * batch.seconds
        self.wasted_s[Waste.PADDING] += batch.seconds - used_s
        self.wasted_s[Waste.LATE] += batch.late * used_s
        self.wasted_s[Waste.CANCELLED] += batch.cancelled * used_s
