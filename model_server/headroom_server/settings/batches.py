"""Settings: batches, the queue before them, and deadlines. Pure."""

from __future__ import annotations

from pydantic import Field

from headroom_server.settings.fields import Group, Seconds, SecondsOrNone


class QueueSettings(Group):
    """Batches and queue."""

    max_batch_size: int = Field(8, ge=1, le=1024)
    """Maximum items per batch, for models whose description does not set it. If it is set, a model
    that generates text has at most as many sequences per iteration."""
    max_waiting: int | None = Field(None, ge=1, le=1_000_000)
    """Maximum items waiting per model. Default: eight full batches per device."""
    max_waiting_bytes: int = Field(1 << 30, ge=1024, le=1 << 40)
    """Maximum bytes waiting per model."""
    max_wait_s: SecondsOrNone = 0.0
    """Longest time an incomplete batch may wait for more requests, in seconds; 0: not at all."""
    deadline_s: Seconds | None = None
    """Deadline of requests without one, for models without an SLO class `default`."""
    stall_timeout_s: Seconds = 60.0
    """Maximum time of a batch; while one takes longer the server is neither ready nor live."""
