"""A decode step's tensors of static sizes, and its block mask for FlexAttention.

A step has `n` rows of one token each. Its input is one vector of numbers: n tokens, n positions
(-1: a row of padding), and the rows' block tables one after the other. Everything else is computed
from it on the device, so that a recorded step needs one copy to run again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch.nn.attention.flex_attention import BlockMask

from headroom_server.generation.values import Chunk

QUERY_BLOCK = 128
"""Rows of queries per entry of the block mask. A decode has one."""


class TableSizes(NamedTuple):
    """Sizes that are the same in all steps of a decoder."""

    block_tokens: int
    blocks: int
    """Blocks of memory in use; one more, the last, takes the keys and values of padding."""
    width: int
    """Blocks of the longest context."""

    def inputs(self, rows: int) -> int:
        """Return the most numbers that describe a step."""
        return rows * (2 + self.width)


class DecodeTables(NamedTuple):
    """Places that the rows of a step read and write."""

    sizes: TableSizes
    tokens: torch.Tensor
    positions: torch.Tensor
    """-1 in padding."""
    tables: torch.Tensor
    """[rows, width]: blocks in the order of the sequence; behind them the block of padding."""
    counts: torch.Tensor
    """Blocks per row; 0 in padding."""
    order: torch.Tensor
    """[rows, blocks + 1]: which of the row's blocks a block of memory is; -1: none."""

    @property
    def slots(self) -> torch.Tensor:
        """Places to which the keys and values of each row are written."""
        size, places = self.sizes.block_tokens, self.places
        blocks = self.tables.gather(1, (places // size).unsqueeze(1)).squeeze(1)
        return blocks * size + places % size

    @property
    def places(self) -> torch.Tensor:
        """The positions; 0 in padding."""
        return self.positions.clamp(min=0)


def numbers_of(chunks: Sequence[Chunk], rows: int, block_tokens: int) -> list[int]:
    """Describe a step of these decodes, padded to `rows`."""
    padding = rows - len(chunks)
    tokens = [chunk.tokens[0] for chunk in chunks]
    positions = [chunk.start for chunk in chunks]
    numbers = tokens + [0] * padding + positions + [-1] * padding
    for chunk in chunks:
        numbers += chunk.blocks[: chunk.start // block_tokens + 1]
    return numbers


def tables_of(inputs: torch.Tensor, rows: int, sizes: TableSizes) -> DecodeTables:
    """Return the tensors of the step that `inputs` describes."""
    tokens, positions, blocks = inputs[:rows], inputs[rows : 2 * rows], inputs[2 * rows :]
    counts = (positions + sizes.block_tokens) // sizes.block_tokens
    starts = counts.cumsum(0) - counts
    columns = torch.arange(sizes.width, device=inputs.device)
    used = columns < counts.unsqueeze(1)
    where = (starts.unsqueeze(1) + columns).clamp(max=len(blocks) - 1)
    tables = torch.where(used, blocks[where], sizes.blocks)
    order = torch.full((rows, sizes.blocks + 1), -1, device=inputs.device)
    order.scatter_(1, tables, torch.where(used, columns, -1))
    return DecodeTables(sizes, tokens, positions, tables, counts, order)


def block_mask(step: DecodeTables, window: int | None) -> BlockMask:
    """Return which blocks each row reads, and which of their tokens it attends to.

    The mask is right for every block of memory, not only for those it lists.
    """
    sizes, size = step.sizes, step.sizes.block_tokens
    rows, order, positions = len(step.tokens), step.order, step.positions
    counts, listed = step.counts, step.tables
    if window is not None:
        first = (positions - window + 1).clamp(min=0) // size
        columns = first.unsqueeze(1) + torch.arange(sizes.width, device=counts.device)
        counts, listed = counts - first, listed.gather(1, columns.clamp(max=sizes.width - 1))
    indices = torch.zeros(
        rows, 1, 1, sizes.blocks + 1, dtype=torch.int32, device=step.tables.device
    )
    indices[:, 0, 0, : sizes.width] = listed

    def attends(
        row: torch.Tensor, _head: torch.Tensor, _query: torch.Tensor, key: torch.Tensor
    ) -> torch.Tensor:
        block = order[row, key // size]
        token = block * size + key % size
        seen = (block >= 0) & (token <= positions[row])
        return seen if window is None else seen & (token > positions[row] - window)

    return BlockMask.from_kv_blocks(
        counts.to(torch.int32).view(rows, 1, 1),
        indices,
        BLOCK_SIZE=(QUERY_BLOCK, size),
        mask_mod=attends,
        seq_lengths=(1, (sizes.blocks + 1) * size),
        compute_q_blocks=False,
    )
