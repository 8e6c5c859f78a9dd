"""Puts the server together: settings from the environment, one engine, one runner, one listener."""

from __future__ import annotations

import logging
import os
import socket
import sys

import uvloop

from headroom_server import settings as settings_module
from headroom_server.device import WarmUpPlan
from headroom_server.engine import Engine
from headroom_server.process import listen, prompt_device_thread, quiet_garbage_collector
from headroom_server.runner import Limits, Runner
from headroom_server.settings import InvalidSettingsError, Settings

log = logging.getLogger("headroom_server")

DEVICE_END_S = 0.2
"""How long the device's thread may take to notice that it is over."""


def build_engine(settings: Settings) -> Engine:
    """The engine that the settings name. Only the torch engine's path imports torch."""
    if settings.engine == "emulated":
        from headroom_server.emulated_engine import EmulatedEngine  # noqa: PLC0415

        return EmulatedEngine(
            fixed_cost_s=settings.emulated_fixed_cost_s,
            per_item_cost_s=settings.emulated_per_item_cost_s,
            load_s=settings.emulated_load_s,
            input_size=settings.emulated_input_size,
        )
    from headroom_server.torch_engine import TorchEngine  # noqa: PLC0415

    return TorchEngine(
        uri=settings.model_uri,
        model_class=settings.model_class,
        threads=settings.torch_threads,
    )


def build_runner(settings: Settings) -> Runner:
    """The server's inside, as the settings describe it."""
    return Runner(
        settings.model_name,
        build_engine(settings),
        WarmUpPlan(
            max_batch_size=settings.max_batch_size,
            requests=settings.warmup_requests,
            max_latency_s=settings.warmup_max_latency_s,
            timeout_s=settings.warmup_timeout_s,
        ),
        Limits(
            max_batch_size=settings.max_batch_size,
            max_waiting=settings.waiting_bound,
            stall_timeout_s=settings.stall_timeout_s,
        ),
    )


async def _run(runner: Runner, settings: Settings, listener: socket.socket) -> int:
    """The exit code. The model loads while the web framework is imported: 0.7 s of every start."""
    prompt_device_thread()
    runner.start()
    from headroom_server.serving import serve  # noqa: PLC0415

    quiet_garbage_collector()
    return await serve(runner, settings, listener)


def main() -> int:
    """Serve until stopped; the exit code."""
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s"
    )
    try:
        settings = settings_module.load()
    except InvalidSettingsError as error:
        log.error("%s", error)
        return 2
    for name in settings_module.unknown_variables():
        log.warning("%s means nothing here: is it misspelt?", name)
    try:
        listener = listen(settings.host, settings.port)
    except OSError as error:
        log.error(
            "HEADROOM_HOST=%s, HEADROOM_PORT=%d: no listening there: %s",
            settings.host,
            settings.port,
            error.strerror or error,
        )
        return 2
    try:
        runner = build_runner(settings)
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
