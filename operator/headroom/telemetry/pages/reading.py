"""The quantities of one model on a page of metrics, in base units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headroom.scaling.generation.promises.classes import ClassCounts
from headroom.scaling.values.latency_counts import LatencyCounts
from headroom.scaling.values.tokens import GenerationSample
from headroom.telemetry.pages.continued_page import ContinuedPage


@dataclass(frozen=True, slots=True)
class Reading:
    """The quantities of one page, named as in `Profile`; None if the server does not expose one."""

    witness: float | None
    arrived: float | None
    retried: float | None
    answered: float | None
    missed: float | None
    waiting: float | None
    running: float | None
    in_flight: float | None
    waiting_seconds: float | None
    running_seconds: float | None
    batches: float | None
    batch_items: float | None
    batch_seconds: float | None
    fixed_cost_s: float | None
    item_cost_s: float | None
    max_batch: float | None
    pages: float | None = None
    latency: LatencyCounts | None = None
    """None if there is no histogram, or not yet."""
    first_token: LatencyCounts | None = None
    output_token: LatencyCounts | None = None
    generation: GenerationSample | None = None
    """None if the page has no metric of generation."""
    idle_seconds: float | None = None
    """Idle time of an engine that does not count the seconds in which it works."""
    classes: Mapping[str, ClassCounts] = field(default_factory=dict)
    """The same requests by the class that they name; empty where none is counted."""
    source: ContinuedPage | None = field(default=None, compare=False, repr=False)

    @property
    def waiting_and_running(self) -> float:
        """Requests in flight by both gauges; one that is missing counts as 0."""
        return (self.waiting or 0.0) + (self.running or 0.0)
