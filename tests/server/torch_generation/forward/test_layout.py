"""Groups of decodes that are computed together, on a CPU and on a GPU."""

from __future__ import annotations

import pytest

from headroom_server.generation.values import Chunk
from headroom_server.torch_generation.forward.layout import group_bounds, lay_out
from support.generation_chunks import Grown
from support.torch_generation_world import request_of

BLOCK = 16


def decodes(*contexts: int) -> list[Chunk]:
    chunks = []
    for key, context in enumerate(contexts):
        sequence = Grown(request_of((1,), 1, key=key), [1])
        blocks = tuple(range(-(-context // BLOCK)))
        chunks.append(Chunk(sequence, context - 1, (1,), blocks, True))
    return chunks


@pytest.mark.parametrize(
    ("device", "contexts", "sizes"),
    [
        ("cpu", [1000] * 9, [4, 4, 1]),  # 4096 tokens stay in the caches
        ("cpu", [5000, 5000], [1, 1]),
        ("cuda", [1000] * 9, [9]),
        ("cuda", [8000] * 17, [16, 1]),  # 131,072 tokens bound the memory
        # longer contexts would pad the ten others by 40,000 tokens
        ("cuda", [4000] * 10 + [8000], [10, 1]),
        ("cuda", [100, 8000], [2]),  # and here by 7900
    ],
)
def test_decodes_are_grouped_within_the_bounds(
    device: str, contexts: list[int], sizes: list[int]
) -> None:
    layout = lay_out(decodes(*contexts), BLOCK, group_bounds(device))
    assert [len(group.chunks) for group in layout.groups] == sizes
    assert len(layout.tokens) == len(contexts)
