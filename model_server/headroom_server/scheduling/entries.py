"""PURE. What waits, and what the queue gives up."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class QueueEntry(NamedTuple, Generic[T]):
    """One waiting request: `items` rows of the batch, due by `deadline_s` if it has one."""

    key: int
    items: int
    arrived_s: float
    deadline_s: float | None
    payload: T
    length: int = 0
    """The padded length; 0 where the model has none."""
    priority: int = 5
    """0, the most urgent, to 9."""
    tenant: str = ""
    size: int = 0
    """Bytes that it holds in memory."""

    @property
    def due_s(self) -> float:
        """The deadline; infinite where there is none."""
        return math.inf if self.deadline_s is None else self.deadline_s


class CloseReason(StrEnum):
    """Why a batch holds no more."""

    IDLE = "idle"
    """Nothing else waited."""
    FULL = "full"
    """The next one did not fit."""
    DEADLINE = "deadline"
    """A larger one would have ended too late."""
    BUCKET = "bucket"
    """What else waited has another length."""


class SealedBatch(NamedTuple, Generic[T]):
    """What the queue gave up: a batch in order of service, and what had expired before it."""

    batch: tuple[QueueEntry[T], ...]
    expired: tuple[QueueEntry[T], ...]
    length: int = 0
    """What all are padded to; 0 where the model has no dynamic dimension."""
    close: CloseReason = CloseReason.IDLE
    again_s: float | None = None
    """Nothing yet, by a maximal wait that was asked for: ask again then."""

    @property
    def items(self) -> int:
        """Rows of the batch."""
        return sum([entry.items for entry in self.batch])
