"""Puts the server together: what is to be served, an engine and a runner for each, one listener."""

from __future__ import annotations

import logging
import os
import socket
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import uvloop

from headroom_server import model_uri
from headroom_server.engine import Engine, LoadError
from headroom_server.process import listen, prompt_device_thread, quiet_garbage_collector
from headroom_server.repository import folder, samples
from headroom_server.repository.description import Description, Emulated
from headroom_server.runner import Limits, Runner
from headroom_server.settings import Settings
from headroom_server.startup import WarmUpPlan

log = logging.getLogger("headroom_server")

DEVICE_END_S = 0.2
"""How long the device's thread may take to notice that it is over."""

NO_MODEL = (
    "HEADROOM_MODEL_URI names the repository of models, or HEADROOM_MODEL_CLASS a class; both are "
    "empty"
)


@dataclass(frozen=True, slots=True)
class ModelVersion:
    """One version of a model that is to be served."""

    name: str
    version: int
    root: Path | None = None
    """The repository; None where there is none."""
    directory: Path | None = None
    description: Description | None = None
    """None: the settings say what computes."""


def to_serve(settings: Settings) -> list[ModelVersion]:
    """What the settings and the repository say is served from the start.

    Raises:
        LoadError: where they do not; one line per mistake.
    """
    if settings.engine == "emulated":
        return [ModelVersion(settings.model_name, 1)]
    root = repository_root(settings)
    if settings.model_class:
        return [ModelVersion(settings.model_name, 1, root, root)]
    if root is None:
        raise LoadError(NO_MODEL)
    found = folder.chosen(folder.scan(root, settings.model_name), settings.models)
    served, wrong = [], []
    for name, versions in found.items():
        for number, directory in versions.items():
            try:
                description = folder.describe(root, directory)
                served.append(ModelVersion(name, number, root, directory, description))
            except LoadError as error:
                wrong += [f"model {name}, version {number}: {x}" for x in str(error).splitlines()]
    if wrong:
        raise LoadError("\n".join(wrong))
    return served


def repository_root(settings: Settings) -> Path | None:
    """The folder that HEADROOM_MODEL_URI names.

    Raises:
        LoadError: for a URI that names none.
    """
    try:
        root = model_uri.directory(settings.model_uri)
    except ValueError as error:
        raise LoadError(f"HEADROOM_MODEL_URI: {error}") from error
    return None if root is None else Path(root)


def build_engine(settings: Settings, served: ModelVersion) -> Engine:
    """The engine of one model. Only the torch engine's path imports torch."""
    description = served.description
    if settings.engine == "emulated" or (description and description.engine == "emulated"):
        return _emulated(settings, description.emulated if description else None)
    from headroom_server.torch_engine import TorchEngine  # noqa: PLC0415
    from headroom_server.torch_engine.loading import (  # noqa: PLC0415
        ClassModel,
        DescribedModel,
        Load,
    )

    load: Load = ClassModel(settings.model_class, served.directory)
    if description is not None:
        assert served.root is not None
        assert served.directory is not None
        load = DescribedModel(
            served.root, served.directory, description, settings.repository_trusted
        )
    return TorchEngine(
        load,
        threads=settings.torch_threads,
        compile_cache=Path(settings.compile_cache) if settings.compile_cache else None,
    )


def _emulated(settings: Settings, described: Emulated | None) -> Engine:
    from headroom_server.emulated_engine import EmulatedEngine  # noqa: PLC0415

    cost = described or Emulated(
        fixed_cost_s=settings.emulated_fixed_cost_s,
        per_item_cost_s=settings.emulated_per_item_cost_s,
        load_s=settings.emulated_load_s,
        input_size=settings.emulated_input_size,
        per_token_cost_s=settings.emulated_per_token_cost_s,
        lengths=settings.emulated_lengths,
    )
    return EmulatedEngine(
        fixed_cost_s=cost.fixed_cost_s,
        per_item_cost_s=cost.per_item_cost_s,
        load_s=cost.load_s,
        input_size=cost.input_size,
        per_token_cost_s=cost.per_token_cost_s,
        lengths=cost.lengths,
    )


def build_runner(settings: Settings, served: ModelVersion) -> Runner:
    """The inside of one model's server, as settings and description say."""
    largest = largest_batch(settings, served.description)
    return Runner(
        served.name,
        build_engine(settings, served),
        WarmUpPlan(
            max_batch_size=largest,
            requests=settings.warmup_requests,
            max_latency_s=settings.warmup_max_latency_s,
            timeout_s=settings.warmup_timeout_s,
            samples=partial(
                samples.works, served.description.warm_up if served.description else ()
            ),
        ),
        Limits(
            max_batch_size=largest,
            max_waiting=settings.max_waiting or 8 * largest,
            stall_timeout_s=settings.stall_timeout_s,
        ),
    )


def largest_batch(settings: Settings, description: Description | None) -> int:
    """Items in a model's largest batch: what its description says goes before the settings."""
    if description is None:
        return settings.max_batch_size
    if description.max_batch_size is not None:
        return description.max_batch_size
    return description.batches[-1] if description.batches else settings.max_batch_size


async def _run(runner: Runner, settings: Settings, listener: socket.socket) -> int:
    """The exit code. The model loads while the web framework is imported: 0.7 s of every start."""
    prompt_device_thread()
    runner.start()
    from headroom_server.serving import serve  # noqa: PLC0415

    quiet_garbage_collector()
    return await serve(runner, settings, listener)


def run(settings: Settings) -> int:
    """Serve until stopped; the exit code."""
    try:
        served = to_serve(settings)
        listener = listen(settings.host, settings.port)
    except LoadError as error:
        log.error("%s", error)
        return 2
    except OSError as error:
        log.error(
            "HEADROOM_HOST=%s, HEADROOM_PORT=%d: no listening there: %s",
            settings.host,
            settings.port,
            error.strerror or error,
        )
        return 2
    try:
        runner = build_runner(settings, served[0])
    except ModuleNotFoundError as error:
        log.error(
            "HEADROOM_ENGINE=%s needs %s, which this image lacks", settings.engine, error.name
        )
        return 2
    code = uvloop.run(_run(runner, settings, listener))
    if not runner.join(DEVICE_END_S):
        # A native call that hangs (a load, a kernel) cannot be ended from here, and would meet an
        # interpreter that is being taken down: that may hang again, or abort.
        logging.shutdown()
        os._exit(code)
    return code
