"""The record of a sampled request while it is served: times that are measured anyway."""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any, NamedTuple, Protocol

from headroom_server.device.batches import ExecutedBatch


class Recorder(Protocol):
    """Turns records into spans. Times are in seconds, on the server's clock."""

    def batch(self, model: str, done: ExecutedBatch[Any]) -> object:
        """Record a batch with a sampled request; return its span's context."""


class Batch(NamedTuple):
    """The batch of a request."""

    context: object
    """The recorder's own: the target of links to the batch."""
    began_s: float
    ended_s: float


class RequestedText(NamedTuple):
    """Parameters of a request for generated text, as far as its span shows them."""

    operation: str
    """`chat` or `text_completion`."""
    choices: int
    max_tokens: int | None
    stream: bool


class Generated:
    """The outcome of a request for generated text; its choices together."""

    __slots__ = (
        "answer_tokens",
        "cached_tokens",
        "finish_reasons",
        "first_s",
        "last_s",
        "prompt_tokens",
        "requested",
        "started_s",
        "writing_s",
    )  # fmt: skip

    def __init__(self) -> None:
        self.started_s: float | None = None
        """Time when its first choice left the queue."""
        self.first_s: float | None = None
        """Time of its first token."""
        self.last_s: float | None = None
        """Time of its last token."""
        self.writing_s = 0.0
        """Time in which tokens became text and events, in sum."""
        self.prompt_tokens = 0
        self.cached_tokens = 0
        self.answer_tokens = 0
        self.requested: RequestedText | None = None
        self.finish_reasons: list[str] = []
        """Finish reasons of its choices, in the order in which they ended."""


class Trace:
    """One sampled request."""

    __slots__ = (
        "accepted_s", "batch", "began_s", "context", "generated", "model", "recorder", "source",
    )  # fmt: skip

    def __init__(self, recorder: Recorder, context: object, began_s: float) -> None:
        self.recorder = recorder
        self.context = context
        """The recorder's own: the request's span, and its parent."""
        self.began_s = began_s
        self.accepted_s: float | None = None
        """Time when it was parsed and passed to the intake."""
        self.model: str | None = None
        self.source: str | None = None
        """Source of its answer, if answers are cached."""
        self.batch: Batch | None = None
        self.generated: Generated | None = None


TRACE: ContextVar[Trace | None] = ContextVar("trace", default=None)
"""Trace of the request that the current task serves; None if it is not sampled."""


def executed(model: str, done: ExecutedBatch[Any], traces: Iterable[Trace | None]) -> None:
    """Record a batch once if one of its requests is sampled, and note it on those."""
    sampled = [trace for trace in traces if trace is not None]
    if not sampled:
        return
    context = sampled[0].recorder.batch(model, done)
    for trace in sampled:
        trace.batch = Batch(context, done.began_s, done.began_s + done.seconds)
