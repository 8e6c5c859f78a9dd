"""Batches on their way through the device: staged ahead, computed, executed. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from headroom_server.engine import Staged, StageTimes
from headroom_server.scheduling.entries import QueueEntry, SealedBatch
from headroom_server.typed_arrays import Numbers

T = TypeVar("T")

Outputs = Mapping[str, Numbers]


class ExecutedBatch(NamedTuple, Generic[T]):
    """One executed batch; `outputs` has None for each request that failed."""

    sealed: SealedBatch[T]
    outputs: Sequence[Outputs | None]
    began_s: float
    seconds: float
    """Time that the next batch had to wait for this one."""
    stages: StageTimes | None = None
    """None if it was executed in parts, and therefore took longer."""
    apart: bool = False
    """Whether postprocessing came after these seconds, on another thread."""

    @property
    def failed(self) -> list[QueueEntry[T]]:
        """The requests that failed."""
        pairs = zip(self.sealed.batch, self.outputs, strict=True)
        return [entry for entry, output in pairs if output is None]


class StagedAhead(NamedTuple):
    """Inputs that were staged ahead for the expected batch, and the time that it took."""

    staged: Staged | None = None
    seconds: float = 0.0


UNPREPARED = StagedAhead()


class ComputedBatch(NamedTuple, Generic[T]):
    """A batch whose results are in host memory."""

    sealed: SealedBatch[T]
    staged: Staged
    result: Any
    began_s: float
    stage_s: float
    execute_s: float
