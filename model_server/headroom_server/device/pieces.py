"""The results of a batch that is executed in parts. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, NamedTuple, TypeVar

from headroom_server.device.batches import Outputs
from headroom_server.scheduling.entries import SealedBatch

T = TypeVar("T")


class Pieces(NamedTuple, Generic[T]):
    """Results by request key."""

    outputs: dict[int, Outputs]
    late: set[int]
    alone: set[int]
    """Requests that failed alone."""
    short: list[SealedBatch[T]]
    """Parts of several requests for which memory was short."""

    def too_large(self) -> Iterator[SealedBatch[T]]:
        """Yield the parts that memory was short for though none of their requests fails alone."""
        for part in self.short:
            if self.alone.isdisjoint(entry.key for entry in part.batch):
                yield part
