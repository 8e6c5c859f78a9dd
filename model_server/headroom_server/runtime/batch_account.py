"""PURE. What an executed batch is booked as."""

from __future__ import annotations

from collections.abc import Sequence

from headroom_server.device.execution import Executed
from headroom_server.runtime.pending import Pending
from headroom_server.telemetry.accounting import Batch
from headroom_server.tensors import Signature


def account(done: Executed[Pending], left: Sequence[bool], signature: Signature | None) -> Batch:
    """The batch's shares; `left` tells who had an answer before it ended."""
    sealed, began_s, end_s = done.sealed, done.began_s, done.began_s + done.seconds
    items = late = cancelled = real = 0
    queued_s = []
    for entry, gone in zip(sealed.batch, left, strict=True):
        items += entry.items
        real += entry.items * (entry.work.work.length or 1)
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
