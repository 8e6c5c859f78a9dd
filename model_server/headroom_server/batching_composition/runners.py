"""Builds what runs a model that batches: its engines, limits, SLO classes and caches."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from headroom_server.batching_composition.engines import build_engines
from headroom_server.device.startup import WarmUpPlan
from headroom_server.engine import Engine
from headroom_server.protocols.request_options import DEFAULT_CLASS, SloClass, SloClasses
from headroom_server.repository import samples
from headroom_server.repository.description import Description
from headroom_server.runtime.batching.featuring import FeatureSource
from headroom_server.runtime.batching.model_queue import Limits
from headroom_server.runtime.batching.runner import Runner
from headroom_server.runtime.caches import cache_of, input_cache_of
from headroom_server.runtime.store import ModelSource
from headroom_server.settings import Settings

if TYPE_CHECKING:
    from headroom_server.caching.store import GuardedStore


def build_runner(
    settings: Settings, source: ModelSource, second_level: GuardedStore | None = None
) -> Runner:
    """Build the runner of one model from the settings and its description.

    Raises:
        LoadError: a device does not exist.
    """
    largest = largest_batch(settings, source.description)
    engines = build_engines(settings, source)
    return Runner(
        source.name,
        engines,
        WarmUpPlan(
            max_batch_size=largest,
            requests=settings.warmup_requests,
            max_latency_s=settings.warmup_max_latency_s,
            timeout_s=settings.warmup_timeout_s,
            samples=partial(
                samples.works, source.description.warm_up if source.description else ()
            ),
        ),
        Limits(
            max_batch_size=largest,
            max_waiting=settings.max_waiting or 8 * largest * len(engines),
            stall_timeout_s=settings.stall_timeout_s,
            max_waiting_bytes=settings.max_waiting_bytes,
            max_wait_s=settings.max_wait_s,
            classes=slo_classes(settings, source.description),
        ),
        cache=cache_of(settings, source, second_level),
        features=features_of(settings, source, engines[0], second_level),
    )


def features_of(
    settings: Settings, source: ModelSource, engine: Engine, second_level: GuardedStore | None
) -> FeatureSource | None:
    """Return the source of a model's features, computed or cached; None if it has none."""
    cache = input_cache_of(settings, source, second_level)
    if cache is None:
        return None
    from headroom_server.torch_engine import TorchEngine  # noqa: PLC0415

    assert isinstance(engine, TorchEngine)
    return FeatureSource(engine, cache)


def slo_classes(settings: Settings, description: Description | None) -> SloClasses:
    """Return a model's SLO classes; the settings' deadline is the default class if it has none."""
    described = {} if description is None else description.slo_classes
    if settings.deadline_s is None:
        return described
    return {DEFAULT_CLASS: SloClass(deadline_s=settings.deadline_s), **described}


def largest_batch(settings: Settings, description: Description | None) -> int:
    """Return the maximum batch size; the model's description takes precedence over the settings."""
    if description is None:
        return settings.max_batch_size
    if description.max_batch_size is not None:
        return description.max_batch_size
    return description.batches[-1] if description.batches else settings.max_batch_size
