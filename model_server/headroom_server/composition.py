"""Builds the server from its settings: engines, runners, model store and listener."""

from __future__ import annotations

import logging
import math
import os
import socket
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import uvloop

from headroom_server.device.startup import WarmUpPlan
from headroom_server.engine import Engine, LoadError
from headroom_server.heap import return_large_blocks
from headroom_server.process import (
    StartError,
    explained,
    listen,
    prompt_device_thread,
    quiet_garbage_collector,
)
from headroom_server.repository import samples
from headroom_server.repository.description import Description
from headroom_server.repository.huggingface import generates
from headroom_server.repository.tables import Emulated
from headroom_server.runtime.caches import cache_of, has_class, input_cache_of, second_level_of
from headroom_server.runtime.featuring import FeatureSource
from headroom_server.runtime.model_queue import Limits
from headroom_server.runtime.registry import Models
from headroom_server.runtime.runner import Runner
from headroom_server.runtime.store import ModelSource, ModelStore
from headroom_server.scheduling.request_options import DEFAULT_CLASS, SloClass, SloClasses
from headroom_server.settings import Settings
from headroom_server.tracing.setup import telemetry_of

if TYPE_CHECKING:
    from headroom_server.caching.store import GuardedStore
    from headroom_server.torch_engine.loading import Load

log = logging.getLogger("headroom_server")


def check_applicable(settings: Settings, sources: Sequence[ModelSource]) -> None:
    """Check that no cache is asked for that would have no effect on models that batch.

    Raises:
        LoadError: one is; it says what to do instead.
    """
    classes = any(has_class(settings, source) for source in sources)
    for value, key, rule in (
        (settings.semantic_cache_url, "SEMANTIC_CACHE_URL", "unless the model generates text"),
        (
            0 if classes else settings.feature_cache_bytes,
            "FEATURE_CACHE_BYTES",
            "unless a model generates text or is a class with features",
        ),
    ):
        if value:
            raise LoadError(
                f"HEADROOM_{key} must be unset {rule}; got {value!s:.200}: HEADROOM_CACHE_BYTES "
                "keeps the answers to equal requests"
            )


def build_engines(settings: Settings, source: ModelSource) -> list[Engine]:
    """Build one engine per device of a model. Only the path of the torch engine imports torch.

    Raises:
        LoadError: a device does not exist.
    """
    description = source.description
    if settings.engine == "emulated" or (description and description.engine == "emulated"):
        count = max(1, len(settings.devices))
        return [_emulated(settings, description, number) for number in range(count)]
    from headroom_server.torch_engine import TorchEngine  # noqa: PLC0415
    from headroom_server.torch_engine.choosing_devices import chosen  # noqa: PLC0415
    from headroom_server.torch_engine.loading import (  # noqa: PLC0415
        ClassModel,
        DescribedModel,
    )

    if description is None:
        load: Load = ClassModel(settings.model_class, source.directory)
    else:
        assert source.root is not None
        assert source.directory is not None
        load = DescribedModel(
            source.root, source.directory, description, settings.repository_trusted
        )
    return [
        TorchEngine(
            load,
            threads=settings.torch_threads,
            compile_model=description is not None and description.compile,
            compile_cache=Path(settings.compile_cache) if settings.compile_cache else None,
            device=device,
            needs_features=bool(settings.feature_cache_bytes) and has_class(settings, source),
        )
        for device in chosen(settings.devices)
    ]


def _emulated(settings: Settings, description: Description | None, number: int) -> Engine:
    from headroom_server.device.emulated_engine import EmulatedEngine  # noqa: PLC0415

    cost = (description and description.emulated) or Emulated(
        fixed_cost_s=settings.emulated_fixed_cost_s,
        per_item_cost_s=settings.emulated_per_item_cost_s,
        load_s=settings.emulated_load_s,
        input_size=settings.emulated_input_size,
        per_token_cost_s=settings.emulated_per_token_cost_s,
        lengths=settings.emulated_lengths,
    )
    slow_after_s, slow_factor = settings.emulated_slowdown or (math.inf, 1.0)
    lost, lost_after_s = settings.emulated_loss or (number, math.inf)
    return EmulatedEngine(
        fixed_cost_s=cost.fixed_cost_s,
        per_item_cost_s=cost.per_item_cost_s,
        load_s=cost.load_s,
        input_size=cost.input_size,
        per_token_cost_s=cost.per_token_cost_s,
        lengths=cost.lengths,
        slow_after_s=slow_after_s,
        slow_factor=slow_factor,
        lost_after_s=lost_after_s if lost == number else math.inf,
    )


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
    """Return what computes and keeps the features of a model's requests; None if nothing does."""
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


async def _run(
    models: Models,
    store: ModelStore,
    settings: Settings,
    listener: socket.socket,
    second_level: GuardedStore | None,
) -> int:
    """Serve and return the exit code. Models load while the web framework is imported (0.7 s)."""
    prompt_device_thread()
    return_large_blocks(settings.engine)
    models.start()
    from headroom_server.server.batching_models import serve  # noqa: PLC0415

    quiet_garbage_collector()
    try:
        return await serve(models, store, settings, listener, telemetry_of(os.environ))
    finally:
        if second_level is not None:
            await second_level.close()


def run(settings: Settings) -> int:
    """Serve until stopped and return the exit code."""
    try:
        with explained(settings, "HEADROOM_CACHE_REDIS_URL"):
            generating = generates(settings)
        if generating:
            from headroom_server import generating_server  # noqa: PLC0415

            return generating_server.run(settings)
        with explained(settings, "HEADROOM_CACHE_REDIS_URL"):
            second_level = second_level_of(settings)
            store = ModelStore(settings, partial(build_runner, settings, second_level=second_level))
            check_applicable(settings, store.sources())
            versions = store.configured()
            listener = listen(settings.host, settings.port)
        with explained(settings, f"HEADROOM_ENGINE={settings.engine}"):
            models = Models(versions, unload_grace_s=settings.drain_grace_s)
    except StartError as error:
        log.error("%s", error)
        return 2
    code = uvloop.run(_run(models, store, settings, listener, second_level))
    if not models.join():
        # A native call that hangs (a load, a kernel) cannot be ended from here. Interpreter
        # shutdown with such a thread may hang or abort, so the process exits at once.
        logging.shutdown()
        os._exit(code)
    return code
