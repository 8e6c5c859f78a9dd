"""Loads a Hugging Face folder: the weights, and memory for as many keys and values as fit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch

from headroom_server.engine import LoadError
from headroom_server.generation.values import GenerationLimits
from headroom_server.torch_generation.drafting import DraftModel
from headroom_server.torch_generation.forward.decoder import Decoder
from headroom_server.torch_generation.model.checkpoint import Checkpoint
from headroom_server.torch_generation.model.dtypes import DTYPES
from headroom_server.torch_generation.model.linear import packs
from headroom_server.torch_generation.model.memory import (
    available_bytes,
    check_weights,
    count_blocks,
    usual_block_tokens,
)
from headroom_server.torch_generation.model.model_shape import ModelShape, read_shape
from headroom_server.torch_generation.model.rope import rope_tables
from headroom_server.torch_generation.model.weights import read_weights

DRAFT_KV_SHARE = 0.1
"""Highest share of the memory available at the start that the draft model's keys and values
take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorOptions:
    """Options of loading a model. None: from the model, or from what this machine has."""

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


class LoadedDecoder(NamedTuple):
    """A decoder in the device's memory, and what it admits."""

    decoder: Decoder
    limits: GenerationLimits


def load_decoder(
    folder: Path, options: ExecutorOptions, device: torch.device, kv_bytes: int | None
) -> LoadedDecoder:
    """Read the weights and reserve the memory of keys and values; None: what is left.

    Raises:
        LoadError: the folder, its model or the memory is not what it must be.
    """
    shape = read_shape(folder)
    dtype = _dtype(options.dtype or shape.dtype)
    context = _context(shape, options.context_tokens)
    available = available_bytes(device)
    copied = shape.vocabulary * shape.hidden if shape.tied and packs(dtype, device) else 0
    check_weights(shape, 1 if options.int8 else dtype.itemsize, available, copied)
    checkpoint = Checkpoint(folder, dtype, device)
    weights = read_weights(shape, checkpoint, int8=options.int8)
    size = options.block_tokens or usual_block_tokens(device.type)
    blocks = count_blocks(
        shape,
        block_tokens=size,
        bytes_per_number=dtype.itemsize,
        kv_bytes=kv_bytes,
        available=available_bytes(device),
        context_tokens=context,
    )
    # more than all sequences at their longest is never used
    blocks = min(blocks, options.max_sequences * -(-context // size))
    tables = rope_tables(shape, context, dtype, device)
    limits = GenerationLimits(
        context_tokens=context,
        vocabulary=shape.vocabulary,
        blocks=blocks,
        block_tokens=size,
        max_sequences=options.max_sequences,
        max_iteration_tokens=max(options.max_iteration_tokens, options.max_sequences),
    )
    # one block more takes what the padding of recorded decodes writes
    return LoadedDecoder(Decoder(shape, weights, tables, blocks + 1, size), limits)


def load_drafts(
    folder: Path, model_folder: Path, options: ExecutorOptions, device: torch.device
) -> DraftModel:
    """Load the small model in `folder`, which drafts for the one in `model_folder`.

    Raises:
        LoadError: it is no model, or has another vocabulary.
    """
    wanted, found = read_shape(model_folder).vocabulary, read_shape(folder).vocabulary
    if wanted != found:
        raise LoadError(
            f"the draft model's vocabulary must be that of the model, {wanted}; got {found}"
        )
    kv_bytes = options.kv_bytes
    if kv_bytes is None:
        kv_bytes = int(available_bytes(device) * DRAFT_KV_SHARE)
    decoder, limits = load_decoder(folder, options, device, kv_bytes)
    return DraftModel(decoder, limits.blocks, limits.context_tokens, limits.max_iteration_tokens)


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
