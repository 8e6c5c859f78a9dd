"""PURE. What has happened to requests and batches since the process started.

Every received request is in exactly one place: waiting, running, or counted under one outcome. So
received = sum of outcomes + in flight, at every instant at which one thread looks.
"""

from __future__ import annotations

from enum import StrEnum

from headroom_server.histograms import BATCH_SIZE_BOUNDS, LATENCY_BOUNDS_S, Histogram


class Outcome(StrEnum):
    """How a received request ended."""

    OK = "ok"
    REFUSED = "refused"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    FAILED = "failed"


class Ledger:
    """Counters and histograms. One thread writes and reads it."""

    def __init__(self) -> None:
        self.received = 0
        self.outcomes = dict.fromkeys(Outcome, 0)
        self.invalid: dict[str, int] = {}
        self.request_s = Histogram(LATENCY_BOUNDS_S)
        self.queue_s = Histogram(LATENCY_BOUNDS_S)
        self.execution_s = Histogram(LATENCY_BOUNDS_S)
        self.batch_size = Histogram(BATCH_SIZE_BOUNDS)

    @property
    def in_flight(self) -> int:
        """Received and not ended."""
        return self.received - sum(self.outcomes.values())

    def end(self, outcome: Outcome, duration_s: float) -> None:
        """One received request has ended; the duration counts where it was answered."""
        self.outcomes[outcome] += 1
        if outcome is Outcome.OK:
            self.request_s.observe(duration_s)

    def reject(self, reason: str) -> None:
        """One request was no well-formed inference request."""
        self.invalid[reason] = self.invalid.get(reason, 0) + 1

    def executed(self, items: int, execution_s: float) -> None:
        """One batch was executed."""
        self.execution_s.observe(execution_s)
        self.batch_size.observe(items)
