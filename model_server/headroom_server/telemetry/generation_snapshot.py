"""The data of a scrape of a generating model, from one instant. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headroom_server.caching.features import FeatureCounts
from headroom_server.caching.generation_cache import GenerationCacheCounts
from headroom_server.generation.ports import EngineStatistics
from headroom_server.generation.values import GenerationLimits
from headroom_server.lifecycle import Phase
from headroom_server.telemetry.accounting import Ledger
from headroom_server.telemetry.class_ledger import ClassLedgers
from headroom_server.telemetry.generation_ledger import GenerationLedger


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationSnapshot:
    """The data of a scrape, from one instant."""

    model: str
    engine: str
    device: str
    emulated: bool
    ledger: Ledger
    generation: GenerationLedger
    counts: EngineStatistics
    in_flight: int
    limits: GenerationLimits | None
    """None until the model is loaded."""
    ready: bool
    draining: bool
    phase_s: Mapping[Phase, float]
    page: int = 1
    classes: ClassLedgers = field(default_factory=ClassLedgers)
    """Part of the ledgers of requests that name a class."""
    cache: GenerationCacheCounts | None = None
    """None without a cache; then the series are absent."""
    features: FeatureCounts | None = None
    """None without a feature cache."""
