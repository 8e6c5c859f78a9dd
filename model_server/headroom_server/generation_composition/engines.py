"""Builds the text and the engine of a generating model from the settings."""

from __future__ import annotations

import time
from pathlib import Path

from headroom_server.engine import LoadError
from headroom_server.generation.loop.engine import LoopEngine
from headroom_server.generation.loop.startup import WarmUpLimits
from headroom_server.generation.ports import Executor, ManagedEngine
from headroom_server.generation.scheduling.options import SchedulingOptions
from headroom_server.generation.text.chat import PlainChat
from headroom_server.generation.text.model_text import ModelText
from headroom_server.generation.text.tokenizer import BYTE_TOKENS, ByteTokenizer
from headroom_server.generation.values import GenerationLimits
from headroom_server.repository import huggingface, model_uri
from headroom_server.settings import Settings

EMULATED_CONTEXT_TOKENS = 8192
EMULATED_BLOCKS = 4096
EMULATED_BLOCK_TOKENS = 16
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
        from headroom_server.generation.third_party.engine import ThirdPartyEngine  # noqa: PLC0415
        from headroom_server.vllm_engine.model import VllmModel  # noqa: PLC0415
        from headroom_server.vllm_engine.opening import opening  # noqa: PLC0415

        folder = _required_folder(settings)
        huggingface.check_files(folder)
        model = VllmModel(opening(folder, settings.vllm_args))
        return ThirdPartyEngine(
            "vllm", model, clock=time.monotonic, options=options, warm_up=warm_up
        )
    return LoopEngine(
        settings.engine,
        build_executor(settings),
        clock=time.monotonic,
        options=options,
        warm_up=warm_up,
        emulated=settings.engine == "generation-emulated",
    )


def build_executor(settings: Settings) -> Executor:
    """Return the executor of iterations. Only the path of Headroom's torch engine imports torch.

    Raises:
        LoadError: the folder is no model.
    """
    if settings.engine == "generation-emulated":
        return _emulated(settings)
    from headroom_server.torch_engine.choosing_devices import chosen  # noqa: PLC0415
    from headroom_server.torch_generation.executor import TorchExecutor  # noqa: PLC0415
    from headroom_server.torch_generation.loading import ExecutorOptions  # noqa: PLC0415

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


def _emulated(settings: Settings) -> Executor:
    from headroom_server.generation.emulated import (  # noqa: PLC0415
        EmulatedCosts,
        EmulatedExecutor,
    )

    limits = GenerationLimits(
        context_tokens=settings.context_tokens or EMULATED_CONTEXT_TOKENS,
        vocabulary=EMULATED_VOCABULARY,
        blocks=EMULATED_BLOCKS,
        block_tokens=settings.block_tokens or EMULATED_BLOCK_TOKENS,
        max_sequences=most_sequences(settings),
        max_iteration_tokens=settings.max_iteration_tokens,
    )
    costs = EmulatedCosts(
        fixed_s=settings.emulated_fixed_cost_s,
        prompt_token_s=settings.emulated_per_token_cost_s,
        decode_s=settings.emulated_per_item_cost_s,
    )
    return EmulatedExecutor(limits, costs, tokens=EMULATED_LETTERS, load_s=settings.emulated_load_s)


def most_sequences(settings: Settings) -> int:
    """Return the bound on sequences per iteration; a largest batch that is set is one too."""
    if "max_batch_size" not in settings.model_fields_set:
        return settings.max_sequences
    return min(settings.max_sequences, settings.max_batch_size)


def _required_folder(settings: Settings) -> Path:
    folder = huggingface.configured_folder(settings)
    if folder is None:
        raise LoadError(
            "HEADROOM_MODEL_URI must be a Hugging Face folder with config.json and tokenizer.json; "
            f"got {settings.model_uri!r:.200}"
        )
    return folder


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
