"""Decodes as recorded graphs: one per padded number of sequences, replayed over static buffers.

A decode of a few sequences starts hundreds of small kernels; starting them one by one takes longer
than they run. A graph starts all of them at once, at fixed addresses. FlexAttention reads as many
blocks as a row has, so that one graph serves all lengths of contexts.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

import torch

from headroom_server.generation.values import Chunk, GenerationLimits
from headroom_server.torch_engine import compilation
from headroom_server.torch_generation.forward.decode_kernels import Kernels, Recorded
from headroom_server.torch_generation.forward.decode_tables import (
    TableSizes,
    block_mask,
    numbers_of,
    tables_of,
)
from headroom_server.torch_generation.forward.decoder import Decoder
from headroom_server.torch_generation.model.model_shape import ModelShape

log = logging.getLogger("headroom_server")

LEAST_BLOCK_TOKENS = LEAST_HEAD = 16
"""Triton multiplies no smaller matrices."""


def obstacle(shape: ModelShape, block_tokens: int, device: torch.device) -> str | None:
    """Return why decodes cannot be recorded on this device; None if they can."""
    if device.type != "cuda":
        return "only CUDA has graphs"
    if block_tokens < LEAST_BLOCK_TOKENS or block_tokens & (block_tokens - 1):
        return (
            f"HEADROOM_BLOCK_TOKENS must be a power of two from {LEAST_BLOCK_TOKENS}; got "
            f"{block_tokens}"
        )
    shared = shape.heads // shape.kv_heads
    if shared & (shared - 1):
        return f"query heads per key-value head must be a power of two; got {shared}"
    if shape.head_dim < LEAST_HEAD:
        return f"a head must have at least {LEAST_HEAD} numbers; got {shape.head_dim}"
    return compilation.obstacle(device.type)


class _Graph(NamedTuple):
    inputs: torch.Tensor
    recorded: Recorded


class DecodeGraphs:
    """The recorded decodes of a decoder; each size is recorded when it is first executed."""

    def __init__(self, decoder: Decoder, limits: GenerationLimits, kernels: Kernels) -> None:
        """`decoder` has one block more than `limits`, for padding."""
        self._decoder = decoder
        self._sizes = TableSizes(
            limits.block_tokens, limits.blocks, -(-limits.context_tokens // limits.block_tokens)
        )
        self._rows = limits.decode_sizes
        self._kernels = kernels
        self._graphs: dict[int, _Graph] = {}
        self._usable = True

    @property
    def recorded(self) -> tuple[int, ...]:
        """The sizes that are recorded."""
        return tuple(self._graphs)

    def logits(self, chunks: Sequence[Chunk]) -> torch.Tensor | None:
        """Return a row of logits per chunk; None if these chunks are computed without a graph.

        The next call overwrites them.
        """
        if not self._usable or not all(map(_is_decode, chunks)):
            return None
        rows = next((size for size in self._rows if size >= len(chunks)), None)
        if rows is None:
            return None
        numbers = numbers_of(chunks, rows, self._sizes.block_tokens)
        graph = self._graphs.get(rows)
        if graph is None:
            graph = self._record(rows, numbers)
            if graph is None:
                return None
        graph.inputs[: len(numbers)].copy_(torch.tensor(numbers))
        graph.recorded.replay()
        return graph.recorded.result[: len(chunks)]

    def _record(self, rows: int, numbers: list[int]) -> _Graph | None:
        inputs = torch.zeros(
            self._sizes.inputs(rows), dtype=torch.int64, device=self._decoder.device
        )
        inputs[: len(numbers)].copy_(torch.tensor(numbers))
        try:
            recorded = self._kernels.record(lambda: self._compute(inputs, rows))
        except torch.OutOfMemoryError:
            raise
        except Exception:  # whatever a compiler or a recorder raises: they are computed without it
            self._kernels.check()
            log.exception("decodes of %d sequences cannot be recorded: none are", rows)
            self._usable = False
            self._graphs.clear()
            return None
        self._graphs[rows] = _Graph(inputs, recorded)
        return self._graphs[rows]

    def _compute(self, inputs: torch.Tensor, rows: int) -> torch.Tensor:
        decoder, flex = self._decoder, self._kernels.flex
        shape, step = decoder.shape, tables_of(inputs, rows, self._sizes)
        masks = {window: block_mask(step, window) for window in set(shape.windows)}

        def attend(qkv: torch.Tensor, memory: torch.Tensor, window: int | None) -> torch.Tensor:
            both = memory.view(1, -1, 2, shape.kv_heads, shape.head_dim).transpose(1, 3)
            found = flex(
                qkv[:, : shape.heads].unsqueeze(2),
                both[:, :, 0],
                both[:, :, 1],
                block_mask=masks[window],
                enable_gqa=shape.heads != shape.kv_heads,
            )
            return found.reshape(rows, -1)

        return decoder.compute(step.tokens, step.places, step.slots, attend)


def _is_decode(chunk: Chunk) -> bool:
    return chunk.samples and len(chunk.tokens) == 1
