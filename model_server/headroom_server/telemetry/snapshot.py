"""The data of a scrape, from one instant. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from headroom_server.caching.cache import CacheCounts
from headroom_server.lifecycle import Phase
from headroom_server.scheduling.cost_model import CostModel
from headroom_server.telemetry.accounting import Ledger


class DeviceStatus(NamedTuple):
    """One device of a model."""

    busy_s: float
    fit: bool
    """Whether it executes what it is given: it is not lost, does not hang, does not fail all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The data of a scrape, from one instant."""

    model: str
    engine: str
    device: str
    emulated: bool
    ledger: Ledger
    waiting: int
    oldest_waiting_s: float
    delay_s: float | None
    """Predicted wait of a request arriving now; None until warm-up has timed batches."""
    saturation: float | None
    """Predicted time to the response over recent deadlines; None without deadlines."""
    max_batch_size: int
    cost: CostModel | None
    """None until warm-up has timed batches; then the series are absent, not zero."""
    ready: bool
    draining: bool
    phase_s: Mapping[Phase, float]
    budget_share: float
    devices: Sequence[DeviceStatus]
    version: str | None = None
    """Set if several versions of the model are served."""
    page: int = 1
    """Number of this scrape since the process started."""
    cache: CacheCounts | None = None
    """None without a cache; then the series are absent."""
    features: CacheCounts | None = None
    """Counts of what a class computed from inputs; None without a feature cache."""
