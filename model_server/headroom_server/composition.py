"""Runs the server that the settings select: for models that batch, or for generated text."""

from __future__ import annotations

import logging
import os
import socket
from functools import partial
from typing import TYPE_CHECKING

import uvloop

from headroom_server.batching_composition.runners import build_runner
from headroom_server.batching_composition.settings_rules import check_applicable
from headroom_server.heap import return_large_blocks
from headroom_server.process import (
    StartError,
    explained,
    listen,
    prompt_device_thread,
    quiet_garbage_collector,
)
from headroom_server.repository.huggingface import generates
from headroom_server.runtime.caches import second_level_of
from headroom_server.runtime.registry import Models
from headroom_server.runtime.store import ModelStore
from headroom_server.settings import Settings
from headroom_server.tracing.setup import telemetry_of

if TYPE_CHECKING:
    from headroom_server.caching.store import GuardedStore

log = logging.getLogger("headroom_server")


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
