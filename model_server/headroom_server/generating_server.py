"""Builds a server of generated text from its settings: engine, tokenizer, listener."""

from __future__ import annotations

import logging
import os
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING

import uvloop

from headroom_server.engine import LoadError
from headroom_server.generation.loop.engine import LoopEngine
from headroom_server.generation.loop.startup import WarmUpLimits
from headroom_server.generation.ports import Executor, ManagedEngine
from headroom_server.generation.scheduling.options import SchedulingOptions
from headroom_server.generation.text.chat import PlainChat
from headroom_server.generation.text.model_text import ModelText
from headroom_server.generation.text.tokenizer import BYTE_TOKENS, ByteTokenizer
from headroom_server.generation.values import GenerationLimits
from headroom_server.process import listen, prompt_device_thread, quiet_garbage_collector
from headroom_server.repository import huggingface
from headroom_server.runtime.generator import Generator, GeneratorOptions
from headroom_server.scheduling.request_options import DEFAULT_CLASS, SloClass
from headroom_server.settings import Settings
from headroom_server.tracing.setup import telemetry_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from headroom_server.openai_api.application import GenerationApplication

log = logging.getLogger("headroom_server")

JOIN_S = 0.2
JOIN_VLLM_S = 15.0
"""vLLM has processes to end."""
EMULATED_CONTEXT_TOKENS = 8192
EMULATED_BLOCKS = 4096
EMULATED_VOCABULARY = BYTE_TOKENS + 2
EMULATED_LETTERS = range(ord("a"), ord("z") + 1)
"""Tokens that an emulated model generates."""


def build_text(settings: Settings) -> ModelText:
    """Return how the model reads and writes.

    Raises:
        LoadError: its files are missing or invalid.
    """
    if settings.engine == "generation-emulated":
        return ModelText(tokenizer=ByteTokenizer(), chat=PlainChat())
    from headroom_server.generation.text.huggingface_folder import load_text  # noqa: PLC0415

    return load_text(_required_folder(settings))


def _required_folder(settings: Settings) -> Path:
    folder = huggingface.configured_folder(settings)
    if folder is None:
        raise LoadError(
            "HEADROOM_MODEL_URI must be a Hugging Face folder with config.json and tokenizer.json; "
            f"got {settings.model_uri!r:.200}"
        )
    return folder


def build_executor(settings: Settings) -> Executor:
    """Return what computes iterations. Only the path of our torch engine imports torch.

    Raises:
        LoadError: the folder is no model.
    """
    if settings.engine == "generation-emulated":
        return _emulated(settings)
    from headroom_server.torch_generation.executor import (  # noqa: PLC0415
        ExecutorOptions,
        TorchExecutor,
    )

    options = ExecutorOptions(
        context_tokens=settings.context_tokens,
        block_tokens=settings.block_tokens,
        kv_bytes=settings.kv_cache_bytes,
        max_sequences=settings.max_sequences,
        max_iteration_tokens=settings.max_iteration_tokens,
        threads=settings.torch_threads,
    )
    return TorchExecutor(_required_folder(settings), options)


def _emulated(settings: Settings) -> Executor:
    from headroom_server.generation.emulated import (  # noqa: PLC0415
        EmulatedCosts,
        EmulatedExecutor,
    )

    limits = GenerationLimits(
        context_tokens=settings.context_tokens or EMULATED_CONTEXT_TOKENS,
        vocabulary=EMULATED_VOCABULARY,
        blocks=EMULATED_BLOCKS,
        block_tokens=settings.block_tokens,
        max_sequences=settings.max_sequences,
        max_iteration_tokens=settings.max_iteration_tokens,
    )
    costs = EmulatedCosts(
        fixed_s=settings.emulated_fixed_cost_s,
        prompt_token_s=settings.emulated_per_token_cost_s,
        decode_s=settings.emulated_per_item_cost_s,
    )
    return EmulatedExecutor(limits, costs, tokens=EMULATED_LETTERS, load_s=settings.emulated_load_s)


def build_engine(settings: Settings) -> ManagedEngine:
    """Return the engine.

    Raises:
        LoadError: the folder is no model, or the engine's arguments are invalid.
        ModuleNotFoundError: a library of the engine is not installed.
    """
    options = SchedulingOptions(
        max_waiting_requests=settings.max_waiting_requests,
        max_waiting_tokens=settings.max_waiting_tokens,
        time_per_token_s=settings.time_per_token_s,
        prefix_cache=settings.prefix_cache,
        max_drafts=settings.max_drafts,
    )
    warm_up = WarmUpLimits(
        max_latency_s=settings.warmup_max_latency_s,
        timeout_s=settings.warmup_timeout_s,
        max_drafts=settings.max_drafts,
    )
    if settings.engine == "vllm":
        from headroom_server.generation.foreign.engine import ForeignEngine  # noqa: PLC0415
        from headroom_server.vllm_engine.model import VllmModel  # noqa: PLC0415
        from headroom_server.vllm_engine.opening import opening  # noqa: PLC0415

        model = VllmModel(opening(_required_folder(settings), settings.vllm_args))
        return ForeignEngine("vllm", model, clock=time.monotonic, options=options, warm_up=warm_up)
    return LoopEngine(
        settings.engine,
        build_executor(settings),
        clock=time.monotonic,
        options=options,
        warm_up=warm_up,
        emulated=settings.engine == "generation-emulated",
    )


def build_generator(settings: Settings, engine: ManagedEngine) -> Generator:
    """Return the model's runtime around an engine."""
    classes = (
        {}
        if settings.deadline_s is None
        else {DEFAULT_CLASS: SloClass(deadline_s=settings.deadline_s)}
    )
    return Generator(
        settings.model_name,
        engine,
        GeneratorOptions(
            stall_timeout_s=settings.stall_timeout_s,
            warmup_timeout_s=settings.warmup_timeout_s,
            classes=classes,
        ),
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
    )


def run(settings: Settings) -> int:
    """Serve until stopped and return the exit code."""
    try:
        text = build_text(settings)
        engine = build_engine(settings)
        listener = listen(settings.host, settings.port)
    except LoadError as error:
        log.error("%s", error)
        return 2
    except OSError as error:
        log.error(
            "cannot listen on HEADROOM_HOST=%s, HEADROOM_PORT=%d: %s",
            settings.host,
            settings.port,
            error.strerror or error,
        )
        return 2
    except ModuleNotFoundError as error:
        log.error(
            "HEADROOM_ENGINE=%s requires %s, which is not installed in this image",
            settings.engine,
            error.name,
        )
        return 2
    generator = build_generator(settings, engine)
    code = uvloop.run(_serve(settings, generator, text, listener))
    if not generator.join(JOIN_VLLM_S if settings.engine == "vllm" else JOIN_S):
        # a native call that hangs cannot be ended from here
        logging.shutdown()
        os._exit(code)
    return code


async def _serve(
    settings: Settings, generator: Generator, text: ModelText, listener: socket.socket
) -> int:
    """Serve and return the exit code. The model loads while the web framework is imported."""
    prompt_device_thread()
    generator.start()
    from headroom_server.server import http_options, run_server  # noqa: PLC0415

    application = build_application(settings, generator, text)
    quiet_garbage_collector()
    telemetry = telemetry_of(os.environ)
    traced: ASGIApp = application
    if telemetry is not None:
        from headroom_server.tracing.over_http import TracedHttp  # noqa: PLC0415

        traced = TracedHttp(application, telemetry)
    options = http_options(settings, application.receiving)
    return await run_server(generator, traced, options, settings, listener, telemetry)
