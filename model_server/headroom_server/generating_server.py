"""Builds a server of generated text from its settings: engine, tokenizer, listener."""

from __future__ import annotations

import logging
import os
import socket
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import uvloop

from headroom_server.caching.features import CachedEmbedder, FeatureCache
from headroom_server.caching.generation_cache import Embed, GenerationCache
from headroom_server.caching.store import GuardedStore
from headroom_server.engine import LoadError
from headroom_server.generation.loop.engine import LoopEngine
from headroom_server.generation.loop.startup import WarmUpLimits
from headroom_server.generation.ports import Executor, ManagedEngine
from headroom_server.generation.scheduling.options import SchedulingOptions
from headroom_server.generation.text.chat import PlainChat
from headroom_server.generation.text.model_text import ModelText
from headroom_server.generation.text.tokenizer import BYTE_TOKENS, ByteTokenizer
from headroom_server.generation.values import GenerationLimits
from headroom_server.open_inference_grpc.wire_bounds import LARGEST_TEXT_BYTES
from headroom_server.process import (
    StartError,
    explained,
    listen,
    prompt_device_thread,
    quiet_garbage_collector,
)
from headroom_server.repository import huggingface, model_uri
from headroom_server.runtime.caches import (
    embedding_identity,
    feature_cache_of,
    generation_cache_of,
    generation_identity,
    second_level_of,
)
from headroom_server.runtime.generator import Generator, GeneratorOptions
from headroom_server.scheduling.request_options import (
    BATCH_CLASS,
    DEFAULT_CLASS,
    SloClass,
    SloClasses,
)
from headroom_server.settings import Settings
from headroom_server.tracing.setup import telemetry_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from headroom_server.open_inference_grpc.server import MakeHandler
    from headroom_server.openai_api.application import GenerationApplication
    from headroom_server.openai_api.direct import DirectGeneration

log = logging.getLogger("headroom_server")

JOIN_S = 0.2
JOIN_VLLM_S = 15.0
"""vLLM has processes to end."""
FOREIGN = {
    "generation-emulated": "an emulated model has no weights; remove it",
    "vllm": "give vLLM's own argument in HEADROOM_VLLM_ARGS",
}
"""Engines whose weights are not ours, and what to do instead of setting their form."""
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
    from headroom_server.torch_engine.choosing_devices import chosen  # noqa: PLC0415
    from headroom_server.torch_generation.executor import (  # noqa: PLC0415
        ExecutorOptions,
        TorchExecutor,
    )

    options = ExecutorOptions(
        dtype=settings.dtype,
        int8=settings.int8_weights,
        context_tokens=settings.context_tokens,
        block_tokens=settings.block_tokens,
        kv_bytes=settings.kv_cache_bytes,
        max_sequences=most_sequences(settings),
        max_iteration_tokens=settings.max_iteration_tokens,
        threads=settings.torch_threads,
        decode_graphs=settings.decode_graphs,
    )
    device, *others = chosen(settings.devices)
    if others:
        raise LoadError(
            f"HEADROOM_DEVICES must name one device for generated text; got {1 + len(others)}: run "
            "a replica per device"
        )
    return TorchExecutor(
        _required_folder(settings), options, draft_folder=_draft_folder(settings), device=device
    )


def most_sequences(settings: Settings) -> int:
    """Return the bound on sequences per iteration; a largest batch that is set is one too."""
    if "max_batch_size" not in settings.model_fields_set:
        return settings.max_sequences
    return min(settings.max_sequences, settings.max_batch_size)


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
        max_sequences=most_sequences(settings),
        max_iteration_tokens=settings.max_iteration_tokens,
    )
    costs = EmulatedCosts(
        fixed_s=settings.emulated_fixed_cost_s,
        prompt_token_s=settings.emulated_per_token_cost_s,
        decode_s=settings.emulated_per_item_cost_s,
    )
    return EmulatedExecutor(limits, costs, tokens=EMULATED_LETTERS, load_s=settings.emulated_load_s)


def check_applicable(settings: Settings) -> None:
    """Check that no setting is given that would have no effect on generated text.

    Raises:
        LoadError: there is one; it says what to do instead.
    """
    foreign = FOREIGN.get(settings.engine, "")
    wrong = [
        (len(settings.devices) > 1, "DEVICES", "name one device", "run a replica per device"),
        (settings.model_class, "MODEL_CLASS", "be empty", "HEADROOM_MODEL_URI names the model"),
        (settings.models, "MODELS", "be empty", "HEADROOM_MODEL_URI names the only model"),
        (
            settings.model_control == "explicit",
            "MODEL_CONTROL",
            "be none",
            "restart to load others",
        ),
        (
            settings.engine == "vllm" and "max_batch_size" in settings.model_fields_set,
            "MAX_BATCH_SIZE",
            "be unset",
            "give --max-num-seqs in HEADROOM_VLLM_ARGS",
        ),
        (foreign and settings.devices, "DEVICES", "be unset", foreign),
        (foreign and settings.dtype, "DTYPE", "be unset", foreign),
        (foreign and settings.int8_weights, "INT8_WEIGHTS", "be unset", foreign),
        (foreign and not settings.decode_graphs, "DECODE_GRAPHS", "be unset", foreign),
        (foreign and settings.draft_model_uri, "DRAFT_MODEL_URI", "be unset", foreign),
    ]
    for given, key, rule, instead in wrong:
        if given:
            value = getattr(settings, key.lower())
            shown = ",".join(value) if isinstance(value, tuple) else value
            raise LoadError(
                f"HEADROOM_{key} must {rule} with HEADROOM_ENGINE={settings.engine}; got "
                f"{shown!s:.200}: {instead}"
            )


def classes_of(settings: Settings) -> SloClasses:
    """Return the classes that requests may name."""
    usual = SloClass(deadline_s=settings.deadline_s)
    classes = {"interactive": usual, BATCH_CLASS: SloClass(batch=True)}
    if settings.deadline_s is not None:
        classes[DEFAULT_CLASS] = usual
    for name, given in (settings.slo_classes or {}).items():
        classes[name] = SloClass(**given.model_dump())
    return classes


def _draft_folder(settings: Settings) -> Path | None:
    if not settings.draft_model_uri:
        return None
    try:
        folder = model_uri.directory(settings.draft_model_uri)
    except ValueError as error:
        raise LoadError(f"HEADROOM_DRAFT_MODEL_URI: {error}") from error
    if folder is None or not (Path(folder) / huggingface.CONFIG).is_file():
        raise LoadError(
            "HEADROOM_DRAFT_MODEL_URI must be a Hugging Face folder with config.json; got "
            f"{settings.draft_model_uri!r:.200}"
        )
    return Path(folder)


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
        draft_model=bool(settings.draft_model_uri),
    )
    warm_up = WarmUpLimits(
        max_latency_s=settings.warmup_max_latency_s,
        timeout_s=settings.warmup_timeout_s,
        max_drafts=settings.max_drafts,
        draft_model=bool(settings.draft_model_uri),
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


class Caches(NamedTuple):
    """The caches of a generating model, and the second level that they share."""

    answers: GenerationCache | None
    features: FeatureCache | None
    second_level: GuardedStore | None


def build_caches(settings: Settings) -> Caches:
    """Return the caches.

    Raises:
        LoadError: a setting of the cache is invalid.
        ModuleNotFoundError: a library that it needs is not installed.
    """
    if settings.semantic_cache_url and not settings.cache_bytes:
        raise LoadError(
            "HEADROOM_CACHE_BYTES must be above 0 with HEADROOM_SEMANTIC_CACHE_URL; got 0"
        )
    second_level = second_level_of(settings)
    features = feature_cache_of(settings, second_level)
    answers = generation_cache_of(settings, second_level, _embedder(settings, features))
    return Caches(answers, features, second_level)


def _embedder(settings: Settings, features: FeatureCache | None) -> Embed | None:
    if not settings.semantic_cache_url:
        return None
    from headroom_server.generation.text.huggingface_tokenizer import (  # noqa: PLC0415
        load_tokenizer,
    )
    from headroom_server.runtime.embedding import RemoteEmbedder  # noqa: PLC0415

    tokenizer = load_tokenizer(Path(settings.semantic_cache_tokenizer))
    try:
        remote = RemoteEmbedder(
            settings.semantic_cache_url, partial(tokenizer.encode, special=True)
        )
    except ValueError as error:
        raise LoadError(str(error)) from error
    if features is not None:
        return CachedEmbedder(features, embedding_identity(settings), remote)
    return lambda text, _tenant: remote(text)


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
            bounds_fillers=settings.engine != "vllm" and settings.time_per_token_s is not None,
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
    from headroom_server.server import (  # noqa: PLC0415
        GrpcAddressError,
        http_options,
        listen_for_grpc,
        run_server,
    )

    application = build_application(settings, generator, text)
    quiet_garbage_collector()
    telemetry = telemetry_of(os.environ)
    traced: ASGIApp = application
    direct: DirectGeneration | None = application.direct()
    if telemetry is not None:
        direct = None  # spans are made around ASGI
        from headroom_server.tracing.over_http import TracedHttp  # noqa: PLC0415

        traced = TracedHttp(application, telemetry)
    options = http_options(settings, application.receiving, direct)
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


def _text_handler(application: GenerationApplication) -> MakeHandler:
    from headroom_server.open_inference_grpc.server import text_handler  # noqa: PLC0415

    return text_handler(application.service)
