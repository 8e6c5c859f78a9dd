"""State of the gather step for one service between ticks."""

from __future__ import annotations

from dataclasses import dataclass, field

from headroom.controller.gather.pods.pod_ownership import PodOwnership
from headroom.telemetry.samples.pod_samples import PodSamples


@dataclass(slots=True, kw_only=True)
class GatherState:
    """Written by the gather step only."""

    ownership: PodOwnership = field(default_factory=PodOwnership)
    samples: PodSamples | None = None
    """The last pages of its pods; None before the first tick."""
    preempted: str = ""
    """Pod that the scheduler preempted, while one has no node in its place; empty if none."""
