"""PURE. What an executed batch is booked as."""

from __future__ import annotations

from headroom_server.device.execution import Executed
from headroom_server.runtime.pending import Pending
from headroom_server.telemetry.accounting import Batch
from headroom_server.tensors import Signature


def account(done: Executed[Pending], signature: Signature | None) -> Batch:
    """The batch's shares, before its requests are answered. A batch of nobody has none."""
    sealed, end_s, items = done.sealed, done.began_s + done.seconds, done.sealed.items
    late = cancelled = real = 0
    for entry in sealed.batch:
        real += entry.items * (entry.work.work.length or 1)
        if entry.work.done:
            cancelled += entry.items
        elif entry.due_s < end_s:
            late += entry.items
    padded = signature.padded_batch(items) if signature and signature.batches else items
    return Batch(
        items=items,
        seconds=done.seconds,
        queued_s=[max(0.0, done.began_s - entry.arrived_s) for entry in sealed.batch],
        close=sealed.close,
        failed=not any(answer is not None for answer in done.outputs),
        late=late / items,
        cancelled=cancelled / items,
        padding=1.0 - real / (padded * (sealed.length or 1)),
        stages=done.stages,
    )
