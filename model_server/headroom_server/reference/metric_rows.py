"""The metrics of the reference page, from scrapes of servers in which everything is in use."""

from __future__ import annotations

from collections.abc import Iterator

from headroom_server.caching.cache import CacheCounts
from headroom_server.caching.feature_values import FeatureKind
from headroom_server.caching.features import FeatureCounts
from headroom_server.caching.flights import Source
from headroom_server.caching.generation_cache import GeneratedSource, GenerationCacheCounts
from headroom_server.caching.levels import LevelCounts
from headroom_server.generation.ports import EngineStatistics
from headroom_server.generation.values import GenerationLimits
from headroom_server.lifecycle import STARTUP
from headroom_server.scheduling.cost_model import CostModel
from headroom_server.telemetry.accounting import Ledger
from headroom_server.telemetry.generation_ledger import GenerationLedger
from headroom_server.telemetry.generation_metrics import render as render_generation
from headroom_server.telemetry.generation_snapshot import GenerationSnapshot
from headroom_server.telemetry.metrics import render
from headroom_server.telemetry.snapshot import DeviceStatus, Snapshot


def metric_rows() -> Iterator[tuple[str, str, str]]:
    """Yield name, type and meaning of the series of a model that batches."""
    return _rows(render(_everything()))


def generation_metric_rows() -> Iterator[tuple[str, str, str]]:
    """Yield the series that only generating models have."""
    others = set(metric_rows())
    for row in _rows(render_generation(_generating())):
        if row not in others:
            yield row


def _rows(page: bytes) -> Iterator[tuple[str, str, str]]:
    """Read names, types and help of a page on which everything is known and in use."""
    meaning = ""
    for line in page.decode().splitlines():
        mark, _, rest = line.partition(" ")
        kind, _, rest = rest.partition(" ")
        name, _, value = rest.partition(" ")
        if (mark, kind) == ("#", "HELP"):
            meaning = value
        elif (mark, kind) == ("#", "TYPE"):
            yield f"`{name}`", value, meaning


def _generating() -> GenerationSnapshot:
    return GenerationSnapshot(
        model="model",
        engine="emulated",
        device="emulated",
        emulated=True,
        ledger=Ledger(),
        generation=GenerationLedger(),
        counts=EngineStatistics(cost_xx=(0.0,) * 15, cost_xy=(0.0,) * 5),
        in_flight=0,
        limits=GenerationLimits(1, 1, 1, 1, 1, 1),
        ready=True,
        draining=False,
        phase_s=dict.fromkeys(STARTUP, 0.0),
        cache=GenerationCacheCounts(dict.fromkeys(GeneratedSource, 0), _LEVELS, 0, 0),
        features=FeatureCounts(
            {(kind, source): 0 for kind in FeatureKind for source in Source}, _LEVELS
        ),
    )


_LEVELS = LevelCounts(0, 0, 0, 0, store_enabled=True)


def _everything() -> Snapshot:
    return Snapshot(
        model="model",
        engine="emulated",
        device="emulated",
        emulated=True,
        ledger=Ledger(),
        waiting=0,
        oldest_waiting_s=0.0,
        delay_s=0.0,
        saturation=0.0,
        max_batch_size=1,
        cost=CostModel.from_warm_up([(1, 1.0)]),
        ready=True,
        draining=False,
        phase_s=dict.fromkeys(STARTUP, 0.0),
        budget_share=1.0,
        devices=(DeviceStatus(0.0, True), DeviceStatus(0.0, True)),
        cache=CacheCounts(dict.fromkeys(Source, 0), _LEVELS),
        features=CacheCounts(dict.fromkeys(Source, 0), _LEVELS),
    )
