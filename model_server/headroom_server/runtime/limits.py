"""The bounds that one model is served within."""

from __future__ import annotations

from dataclasses import dataclass, field

from headroom_server.scheduling.terms import SloClasses


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much is batched and may wait, in items; how long one batch may take."""

    max_batch_size: int
    max_waiting: int
    stall_timeout_s: float
    max_waiting_bytes: int = 1 << 30
    max_wait_s: float = 0.0
    """How long a batch that is not full may wait for company; 0 where none was asked for."""
    classes: SloClasses = field(default_factory=dict)
    """The model's SLO classes by name."""
