"""A queued or running request, its outcome, and the record of an executed batch."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from headroom_server.connection import Connection
from headroom_server.device.batches import ExecutedBatch, Outputs
from headroom_server.engine import Work
from headroom_server.errors import (
    DisconnectedError,
    ExpiredError,
    FailedError,
    QueueFullError,
    RefusedError,
    RequestError,
)
from headroom_server.signature import Signature
from headroom_server.telemetry.accounting import Batch, Outcome
from headroom_server.tracing.current import Trace

DoneCallback = Callable[[Outputs | RequestError], object]
"""Called once, on the event loop, with a request's outputs or error. Must not raise."""


class PendingRequest:
    """A request and its callback. The device only uses `work` and `trace`."""

    __slots__ = ("connection", "done", "on_done", "timer", "trace", "work")

    def __init__(
        self,
        work: Work,
        on_done: DoneCallback,
        connection: Connection,
        trace: Trace | None = None,
    ) -> None:
        self.work = work
        self.on_done = on_done
        self.connection = connection
        self.trace = trace
        """None if it is not sampled."""
        self.done = False
        """It has been answered, whatever happens to its batch."""
        self.timer: asyncio.TimerHandle | None = None
        """Timer of its deadline, if it has one."""


_OUTCOMES: dict[type[RequestError], Outcome] = {
    RefusedError: Outcome.REFUSED,
    QueueFullError: Outcome.REFUSED,
    ExpiredError: Outcome.EXPIRED,
    DisconnectedError: Outcome.CANCELLED,
}


def outcome_of(error: RequestError) -> Outcome:
    """Return the outcome of an error; every other error is a failure."""
    return _OUTCOMES.get(type(error), Outcome.FAILED)


def account(
    done: ExecutedBatch[PendingRequest], left: Sequence[bool], signature: Signature | None
) -> Batch:
    """Return a batch's record; `left` says which requests were answered before it ended."""
    sealed, began_s, end_s = done.sealed, done.began_s, done.began_s + done.seconds
    items = late = cancelled = real = 0
    queued_s = []
    for entry, gone in zip(sealed.batch, left, strict=True):
        items += entry.items
        real += entry.items * (entry.payload.work.length or 1)
        queued_s.append(max(0.0, began_s - entry.arrived_s))
        if gone:
            cancelled += entry.items
        elif entry.deadline_s is not None and entry.deadline_s < end_s:
            late += entry.items
    padded = signature.padded_batch(items) if signature and signature.batches else items
    return Batch(
        items=items,
        seconds=done.seconds,
        queued_s=queued_s,
        close=sealed.close,
        failed=not any(answer is not None for answer in done.outputs),
        late=late / items,
        cancelled=cancelled / items,
        padding=1.0 - real / (padded * (sealed.length or 1)),
        stages=done.stages,
    )


def expired() -> ExpiredError:
    """Return the error of a request whose deadline passes in the queue."""
    return ExpiredError("the deadline passed, or could no longer be met, while the request waited")


def checked(answer: Outputs | None, signature: Signature | None) -> Outputs | RequestError:
    """Return the outputs of one request, or why they are none."""
    if answer is None:
        return FailedError("the device failed on this request")
    if signature and not signature.all_finite(answer):
        return FailedError("an output contains NaN or infinity, which JSON cannot represent")
    return answer


def resolve(answer: asyncio.Future[Outputs], result: Outputs | RequestError) -> None:
    """Give a result to what waits for it, unless it was cancelled."""
    if answer.done():
        return
    if isinstance(result, RequestError):
        answer.set_exception(result)
    else:
        answer.set_result(result)
