"""Runs a server of generated text: builds its parts, serves, and ends."""

from __future__ import annotations

import logging
import os
import socket
from functools import partial
from typing import TYPE_CHECKING

import uvloop

from headroom_server.caching.features import FeatureCache
from headroom_server.caching.generation_cache import GenerationCache
from headroom_server.caching.store import GuardedStore
from headroom_server.generation.ports import ManagedEngine
from headroom_server.generation.text.model_text import ModelText
from headroom_server.generation_composition.caches import build_caches
from headroom_server.generation_composition.engines import build_engine, build_text
from headroom_server.generation_composition.settings_rules import check_applicable, classes_of
from headroom_server.open_inference_grpc.wire_bounds import LARGEST_TEXT_BYTES
from headroom_server.openai_api.errors import refusal
from headroom_server.process import (
    StartError,
    explained,
    listen,
    prompt_device_thread,
    quiet_garbage_collector,
    quiet_panics,
)
from headroom_server.repository import huggingface
from headroom_server.runtime.caches import generation_identity
from headroom_server.runtime.generating.generation_requests import GeneratorOptions
from headroom_server.runtime.generating.generator import Generator
from headroom_server.settings import Settings
from headroom_server.tracing.setup import telemetry_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from headroom_server.open_inference_grpc.server import GrpcServices
    from headroom_server.openai_api.application import GenerationApplication
    from headroom_server.openai_api.direct import DirectGeneration

log = logging.getLogger("headroom_server")

JOIN_S = 0.2
JOIN_VLLM_S = 15.0
"""vLLM has processes to end."""


def build_generator(
    settings: Settings,
    engine: ManagedEngine,
    cache: GenerationCache | None = None,
    features: FeatureCache | None = None,
) -> Generator:
    """Return the model's runtime around an engine."""
    return Generator(
        settings.model_name,
        engine,
        GeneratorOptions(
            stall_timeout_s=settings.stall_timeout_s,
            warmup_timeout_s=settings.warmup_timeout_s,
            classes=classes_of(settings),
            bounds_batch_classes=settings.engine != "vllm"
            and settings.time_per_token_s is not None,
        ),
        cache=cache,
        features=features,
    )


def build_application(
    settings: Settings, generator: Generator, text: ModelText
) -> GenerationApplication:
    """Return the HTTP application."""
    from headroom_server.openai_api.application import GenerationApplication  # noqa: PLC0415

    return GenerationApplication(
        generator,
        text,
        max_body_bytes=settings.max_body_bytes,
        max_receiving_bytes=settings.max_receiving_bytes,
        max_unread_bytes=settings.max_unread_bytes,
        unread_timeout_s=settings.unread_timeout_s,
        identity=generation_identity(settings, huggingface.configured_folder(settings)),
    )


def run(settings: Settings) -> int:
    """Serve until stopped and return the exit code."""
    quiet_panics()
    try:
        with explained(settings, f"HEADROOM_ENGINE={settings.engine}"):
            check_applicable(settings)
            text = build_text(settings)
            engine = build_engine(settings)
            caches = build_caches(settings)
            listener = listen(settings.host, settings.port)
    except StartError as error:
        log.error("%s", error)
        return 2
    generator = build_generator(settings, engine, caches.answers, caches.features)
    code = uvloop.run(_serve(settings, generator, text, listener, caches.second_level))
    if not generator.join(JOIN_VLLM_S if settings.engine == "vllm" else JOIN_S):
        # a native call that hangs cannot be ended from here
        logging.shutdown()
        os._exit(code)
    return code


async def _serve(
    settings: Settings,
    generator: Generator,
    text: ModelText,
    listener: socket.socket,
    second_level: GuardedStore | None,
) -> int:
    """Serve and return the exit code. The model loads while the web framework is imported."""
    prompt_device_thread()
    generator.start()
    from headroom_server.server.grpc_listener import (  # noqa: PLC0415
        GrpcAddressError,
        listen_for_grpc,
    )
    from headroom_server.server.running import run_server  # noqa: PLC0415
    from headroom_server.server.uvicorn_server import http_options  # noqa: PLC0415

    application = build_application(settings, generator, text)
    quiet_garbage_collector()
    telemetry = telemetry_of(os.environ)
    traced: ASGIApp = application
    direct: DirectGeneration | None = application.direct()
    if telemetry is not None:
        direct = None  # spans are made around ASGI
        from headroom_server.tracing.over_http import TracedHttp  # noqa: PLC0415

        traced = TracedHttp(application, telemetry)
    options = http_options(settings, application.receiving, direct, refusal)
    handler, receiving = partial(_text_handler, application), application.receiving
    try:
        grpc = await listen_for_grpc(handler, settings, telemetry, receiving, LARGEST_TEXT_BYTES)
        return await run_server(generator, traced, options, settings, listener, telemetry, grpc)
    except GrpcAddressError as error:
        log.error("%s", error)
        generator.stop()
        return 2
    finally:
        if second_level is not None:
            await second_level.close()


def _text_handler(application: GenerationApplication) -> GrpcServices:
    from headroom_server.open_inference_grpc.server import served_text  # noqa: PLC0415

    return served_text(application.service)
