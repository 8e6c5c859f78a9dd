"""What is noted of a sampled request while it is served: moments that are measured anyway."""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any, NamedTuple, Protocol

from headroom_server.device.execution import ExecutedBatch


class Recorder(Protocol):
    """Turns what was noted into spans. Moments are in seconds, on the server's clock."""

    def batch(self, model: str, done: ExecutedBatch[Any]) -> object:
        """Record a batch that has a sampled request; its span's context."""


class Batch(NamedTuple):
    """The batch of a request."""

    context: object
    """The recorder's own: where a link to the batch points."""
    began_s: float
    ended_s: float


class Trace:
    """One sampled request."""

    __slots__ = ("accepted_s", "batch", "began_s", "context", "model", "recorder", "source")

    def __init__(self, recorder: Recorder, context: object, began_s: float) -> None:
        self.recorder = recorder
        self.context = context
        """The recorder's own: the request's span, and its parent."""
        self.began_s = began_s
        self.accepted_s: float | None = None
        """When it was read and checked, and asked for an answer."""
        self.model: str | None = None
        self.source: str | None = None
        """Where its answer came from, where answers are cached."""
        self.batch: Batch | None = None


TRACE: ContextVar[Trace | None] = ContextVar("trace", default=None)
"""Of the request that the running task serves; None where it is not sampled."""


def executed(model: str, done: ExecutedBatch[Any], traces: Iterable[Trace | None]) -> None:
    """Record a batch, once, where one of its requests is sampled, and note it on those."""
    sampled = [trace for trace in traces if trace is not None]
    if not sampled:
        return
    context = sampled[0].recorder.batch(model, done)
    for trace in sampled:
        trace.batch = Batch(context, done.began_s, done.began_s + done.seconds)
