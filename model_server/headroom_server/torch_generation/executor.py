"""Our executor: a decoder from a Hugging Face folder on a torch device."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch

from headroom_server.engine import LoadError
from headroom_server.generation.values import (
    GenerationLimits,
    Iteration,
    IterationResult,
    SequenceView,
)
from headroom_server.torch_engine.errors import translated
from headroom_server.torch_generation.adjustments import KeptAdjustments
from headroom_server.torch_generation.checkpoint import Checkpoint
from headroom_server.torch_generation.decode_graphs import (
    DecodeGraphs,
    Kernels,
    cuda_kernels,
    obstacle,
)
from headroom_server.torch_generation.decoder import Decoder
from headroom_server.torch_generation.drafting import DraftModel
from headroom_server.torch_generation.dtypes import DTYPES
from headroom_server.torch_generation.linear import packs
from headroom_server.torch_generation.memory import (
    available_bytes,
    check_weights,
    count_blocks,
    usual_block_tokens,
)
from headroom_server.torch_generation.model_shape import ModelShape, read_shape
from headroom_server.torch_generation.rope import rope_tables
from headroom_server.torch_generation.sampling import NOT_FINITE, sample
from headroom_server.torch_generation.weights import read_weights

log = logging.getLogger("headroom_server")

DRAFT_KV_SHARE = 0.1
"""Highest share of the memory available at the start that the draft model's keys and values
take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorOptions:
    """How a model is loaded. None: from the model, or from what this machine has."""

    dtype: str | None = None
    int8: bool = False
    """Whether the layers' weights are kept as int8 with a scale per channel."""
    context_tokens: int | None = None
    block_tokens: int | None = None
    kv_bytes: int | None = None
    max_sequences: int = 64
    max_iteration_tokens: int = 512
    threads: int | None = None
    decode_graphs: bool = True
    """Whether decodes are recorded, where the device can."""


class _Loaded(NamedTuple):
    decoder: Decoder
    limits: GenerationLimits


class TorchExecutor:
    """Computes iterations on CUDA if there is a device, else on the CPU."""

    def __init__(
        self,
        folder: Path,
        options: ExecutorOptions = ExecutorOptions(),
        *,
        draft_folder: Path | None = None,
        device: torch.device | None = None,
        process_seed: int | None = None,
        kernels: Kernels | None = None,
    ) -> None:
        """Prepare for the model in `folder`, and the model that drafts for it, if there is one.

        `kernels` record decodes; None: those of the device, if it has any.
        `process_seed` decides the draws of requests without a seed; None: a random one.
        """
        self._folder = folder
        self._options = options
        self._draft_folder = draft_folder
        self._device = device or torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.device = (
            torch.cuda.get_device_name(self._device) if self._device.type == "cuda" else "cpu"
        )
        self._process_seed = secrets.randbits(64) if process_seed is None else process_seed
        self._adjustments = KeptAdjustments()
        self._decoder: Decoder | None = None
        self._limits: GenerationLimits | None = None
        self._drafts: DraftModel | None = None
        self._kernels = kernels
        self.graphs: DecodeGraphs | None = None

    @property
    def limits(self) -> GenerationLimits:
        """What `load` returned."""
        assert self._limits is not None, "load comes first"
        return self._limits

    def load(self) -> GenerationLimits:
        """Read the weights and reserve the memory of keys and values.

        Raises:
            LoadError: the folder, its model or the memory is not what it must be.
        """
        if self._options.threads is not None and self._device.type == "cpu":
            torch.set_num_threads(self._options.threads)
        with translated(), torch.inference_mode():
            kv_bytes = self._options.kv_bytes
            if self._draft_folder is not None:
                self._drafts = self._load_drafts(self._draft_folder)
            self._decoder, self._limits = self._load(self._folder, kv_bytes)
        self.graphs = self._recording(self._decoder, self._limits)
        return self._limits

    def _recording(self, decoder: Decoder, limits: GenerationLimits) -> DecodeGraphs | None:
        if not self._options.decode_graphs:
            return None
        kernels, shape = self._kernels, decoder.shape
        if kernels is None:
            missing = obstacle(shape, limits.block_tokens, self._device)
            if missing is not None:
                log.info("decodes are not recorded: %s", missing)
                return None
            programs = len(limits.decode_sizes) * len(set(shape.windows))
            kernels = cuda_kernels(programs, self._device)
        return DecodeGraphs(decoder, limits, kernels)

    def _load(self, folder: Path, kv_bytes: int | None) -> _Loaded:
        options, shape = self._options, read_shape(folder)
        dtype = _dtype(options.dtype or shape.dtype)
        context = _context(shape, options.context_tokens)
        available = available_bytes(self._device)
        copied = shape.vocabulary * shape.hidden if shape.tied and packs(dtype, self._device) else 0
        check_weights(shape, 1 if options.int8 else dtype.itemsize, available, copied)
        checkpoint = Checkpoint(folder, dtype, self._device)
        weights = read_weights(shape, checkpoint, int8=options.int8)
        size = options.block_tokens or usual_block_tokens(self._device.type)
        blocks = count_blocks(
            shape,
            block_tokens=size,
            bytes_per_number=dtype.itemsize,
            kv_bytes=kv_bytes,
            available=available_bytes(self._device),
            context_tokens=context,
        )
        # more than all sequences at their longest is never used
        blocks = min(blocks, options.max_sequences * -(-context // size))
        tables = rope_tables(shape, context, dtype, self._device)
        limits = GenerationLimits(
            context_tokens=context,
            vocabulary=shape.vocabulary,
            blocks=blocks,
            block_tokens=size,
            max_sequences=options.max_sequences,
            max_iteration_tokens=max(options.max_iteration_tokens, options.max_sequences),
        )
        # one block more takes what the padding of recorded decodes writes
        return _Loaded(Decoder(shape, weights, tables, blocks + 1, size), limits)

    def _load_drafts(self, folder: Path) -> DraftModel:
        mine, theirs = read_shape(self._folder).vocabulary, read_shape(folder).vocabulary
        if mine != theirs:
            raise LoadError(
                f"the draft model's vocabulary must be that of the model, {mine}; got {theirs}"
            )
        kv_bytes = self._options.kv_bytes
        if kv_bytes is None:
            kv_bytes = int(available_bytes(self._device) * DRAFT_KV_SHARE)
        decoder, limits = self._load(folder, kv_bytes)
        return DraftModel(
            decoder, limits.blocks, limits.context_tokens, limits.max_iteration_tokens
        )

    def execute(self, iteration: Iteration) -> IterationResult:
        """Compute an iteration in one forward pass, and choose its tokens.

        Raises:
            DeviceLostError: nothing can be executed any more.
            OutOfMemoryError: a smaller iteration may succeed.
            FloatingPointError: a sequence's numbers are not finite.
        """
        decoder = self._decoder
        assert decoder is not None, "load comes first"
        chunks = iteration.chunks
        with translated(), torch.inference_mode():
            logits = None if self.graphs is None else self.graphs.logits(chunks)
            if logits is None:
                logits, finite = decoder.forward(chunks)
                if not finite:
                    raise FloatingPointError(NOT_FINITE)
            return IterationResult(sample(logits, chunks, self._process_seed, self._adjustments))

    def draft(self, sequences: Sequence[SequenceView], count: int) -> Sequence[Sequence[int]]:
        """Propose the draft model's most probable tokens; none without a draft model."""
        if self._drafts is None:
            return [() for _ in sequences]
        with translated(), torch.inference_mode():
            return self._drafts.propose(sequences, count)

    def forget(self, key: int) -> None:
        """Free what adjustments and the draft model keep of a request; draws have no state."""
        self._adjustments.forget(key)
        if self._drafts is not None:
            self._drafts.forget(key)

    def unload(self) -> None:
        """Release the weights and the memory of keys and values."""
        self._decoder = self._drafts = self.graphs = None
        if self._device.type == "cuda":
            torch.cuda.empty_cache()


def _dtype(name: str) -> torch.dtype:
    if name not in DTYPES:
        raise LoadError(f"the number format must be one of {', '.join(DTYPES)}; got {name!r}")
    return DTYPES[name]


def _context(shape: ModelShape, wanted: int | None) -> int:
    if wanted is None:
        return shape.context_tokens
    if not 1 <= wanted <= shape.context_tokens:
        raise LoadError(
            f"the context must be from 1 to the model's {shape.context_tokens} tokens; got {wanted}"
        )
    return wanted
