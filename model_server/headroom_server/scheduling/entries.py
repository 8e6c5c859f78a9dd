"""Queue entries, and the batches they leave in. Pure."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class QueueEntry(NamedTuple, Generic[T]):
    """One waiting request with `items` rows, to be answered by `deadline_s` if it has one."""

    key: int
    items: int
    arrived_s: float
    deadline_s: float | None
    payload: T
    length: int = 0
    """The padded length; 0 if the model has none."""
    priority: int = 5
    """0 (most urgent) to 9."""
    tenant: str = ""
    size: int = 0
    """Bytes in memory."""

    @property
    def due_s(self) -> float:
        """The deadline; infinite if there is none."""
        return math.inf if self.deadline_s is None else self.deadline_s


class QueuePosition(NamedTuple, Generic[T]):
    """An entry's position: the smallest is served first."""

    level: float
    turn: int
    entry: QueueEntry[T]
    work: float
    """Charge to its tenant."""


class CloseReason(StrEnum):
    """Reason why a batch was closed."""

    IDLE = "idle"
    """No other request waited."""
    FULL = "full"
    """The next request did not fit."""
    DEADLINE = "deadline"
    """A larger batch would have ended too late."""
    BUCKET = "bucket"
    """Other waiting requests have another length, or are kept apart (`suspects`)."""


class SealedBatch(NamedTuple, Generic[T]):
    """A batch in order of service, and the entries that expired before it."""

    batch: tuple[QueueEntry[T], ...]
    expired: tuple[QueueEntry[T], ...]
    length: int = 0
    """The length all are padded to; 0 if the model has no dynamic dimension."""
    close: CloseReason = CloseReason.IDLE
    again_s: float | None = None
    """The batch waits for more requests within the maximum wait: ask again at this time."""

    @property
    def items(self) -> int:
        """Rows of the batch."""
        return sum([entry.items for entry in self.batch])
