"""Recorded decodes: the same tokens as transformers, whatever the padding, the tables, the replay.

No CUDA here: graphs are replayed by a tape of torch's own operations over the recorded buffers, and
FlexAttention runs on the CPU, as torch's reference and as its compiled kernel.
"""

from __future__ import annotations

import dataclasses
import logging
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional
from torch.nn.attention.flex_attention import BlockMask, create_block_mask
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from headroom_server.engine import DeviceLostError, OutOfMemoryError
from headroom_server.generation.loop.warming import warm_up_iterations
from headroom_server.generation.values import Chunk
from headroom_server.torch_generation.executor import TorchExecutor
from headroom_server.torch_generation.forward.decode_graphs import obstacle
from headroom_server.torch_generation.forward.decode_kernels import (
    Flex,
    Kernels,
    Recorded,
    compiled_flex,
)
from headroom_server.torch_generation.forward.decode_tables import (
    TableSizes,
    block_mask,
    numbers_of,
    tables_of,
)
from headroom_server.torch_generation.loading import ExecutorOptions
from headroom_server.torch_generation.model.model_shape import shape_of
from support.generation_chunks import Grown
from support.torch_generation_world import (
    OPTIONS,
    SIZES,
    Loop,
    expected_tokens,
    make_model,
    prompt_of,
    request_of,
)

Compute = Callable[[], torch.Tensor]
SMALL = dataclasses.replace(OPTIONS, kv_bytes=3 << 20, block_tokens=16)


class Tape(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records operations with their tensors; a replay computes them again, into the same memory."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.steps: list[tuple[Any, Sequence[Any], dict[str, Any], Any]] = []

    def __torch_dispatch__(
        self, func: Any, _types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        done = func(*args, **(kwargs or {}))
        self.steps.append((func, args, kwargs or {}, done))
        return done

    def replay(self) -> None:
        with torch.inference_mode():
            for func, args, kwargs, before in self.steps:
                again = func(*args, **kwargs)
                for old, new in zip(tree_leaves(before), tree_leaves(again), strict=True):
                    if isinstance(old, torch.Tensor) and old.data_ptr() != new.data_ptr():
                        old.copy_(new)


def on_cpu(folder: Path, options: ExecutorOptions, kernels: Kernels) -> TorchExecutor:
    """These kernels are of the CPU, also on a machine with a GPU."""
    return TorchExecutor(folder, options, kernels=kernels, device=torch.device("cpu"))


def taped(compute: Compute) -> Recorded:
    with Tape() as tape:
        result = compute()
    return Recorded(result, tape.replay)


def repeated(compute: Compute) -> Recorded:
    result = compute().clone()

    def replay() -> None:
        result.copy_(compute())

    return Recorded(result, replay)


def dense(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    *,
    block_mask: BlockMask,
    enable_gqa: bool,
) -> torch.Tensor:
    """FlexAttention by its definition; rows that see nothing get zeros."""
    rows = torch.arange(len(query)).view(-1, 1, 1, 1)
    none = torch.zeros(1, 1, 1, 1, dtype=torch.int64)
    seen = block_mask.mask_mod(rows, none, none, torch.arange(key.shape[2]).view(1, 1, 1, -1))
    shape = (len(query), *key.shape[1:])
    found = functional.scaled_dot_product_attention(
        query, key.expand(shape), value.expand(shape), seen, enable_gqa=enable_gqa
    )
    return found.nan_to_num()


def compiled(backend: str) -> Flex:
    """FlexAttention, compiled; torch's kernel for CPUs needs a list of full blocks to be there."""
    flex = compiled_flex(20, backend)

    def attend(
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        *,
        block_mask: BlockMask,
        enable_gqa: bool,
    ) -> torch.Tensor:
        listed = BlockMask.from_kv_blocks(
            block_mask.kv_num_blocks,
            block_mask.kv_indices,
            torch.zeros_like(block_mask.kv_num_blocks),
            torch.zeros_like(block_mask.kv_indices),
            BLOCK_SIZE=block_mask.BLOCK_SIZE,
            mask_mod=block_mask.mask_mod,
            seq_lengths=block_mask.seq_lengths,
            compute_q_blocks=False,
        )
        return flex(query, key, value, block_mask=listed, enable_gqa=enable_gqa)

    return attend


@pytest.mark.parametrize("name", ["llama", "llama-tied", "qwen3", "mistral"])
def test_replayed_decodes_answer_as_transformers_does(tmp_path: Path, name: str) -> None:
    model = make_model(tmp_path, name)
    executor = on_cpu(tmp_path, SMALL, Kernels(dense, taped))
    loop, added = Loop(executor), []
    for number, length in enumerate((1, 15, 16, 40, 90)):  # they join and leave
        added.append(loop.add(request_of(prompt_of(length, length), 4 + 2 * number, key=number)))
        loop.step()
    while not all(one.ended for one in added):
        loop.step()
    for one in added:
        request = one.sequence.request
        assert one.answer == expected_tokens(model, request.prompt, request.max_tokens)
    assert executor.graphs is not None
    assert executor.graphs.recorded


@pytest.mark.timeout(300)  # a C++ compiler runs
@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_flex_attention_answers_as_transformers_does(tmp_path: Path, backend: str) -> None:
    """The compiled kernel reads the listed blocks only, the other one goes by the mask alone."""
    model = make_model(tmp_path, "qwen2-window")  # a layer with a window, and one without
    executor = on_cpu(tmp_path, SMALL, Kernels(compiled(backend), repeated))
    requests = [request_of(prompt_of(length, length), 9, key=length) for length in (1, 16, 90)]
    answers = Loop(executor).run(*requests)
    assert answers == [expected_tokens(model, request.prompt, 9) for request in requests]
    assert executor.graphs is not None
    assert executor.graphs.recorded == (4,)


def test_warm_up_records_every_size_and_traffic_none(tmp_path: Path) -> None:
    model = make_model(tmp_path, "llama")
    recorded: list[Recorded] = []

    def record(compute: Compute) -> Recorded:
        recorded.append(taped(compute))
        return recorded[-1]

    options = dataclasses.replace(SMALL, max_sequences=11)
    loop = Loop(on_cpu(tmp_path, options, Kernels(dense, record)))
    for iteration in warm_up_iterations(loop.limits, 3):
        loop.executor.execute(iteration)
    assert loop.executor.graphs is not None
    assert loop.executor.graphs.recorded == (1, 2, 4, 8, 11) == loop.limits.decode_sizes
    for count in range(1, 12):
        requests = [request_of(prompt_of(count + key, key), 3, key=key) for key in range(count)]
        answers = loop.run(*requests)
        assert answers == [expected_tokens(model, request.prompt, 3) for request in requests]
        loop.free += [block for one in loop.running for block in one.blocks]
        loop.running.clear()
    assert len(recorded) == 5


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("no compiler"),
        # what CUDA says of an operation that cannot be recorded; the device works on
        torch.AcceleratorError("CUDA error: operation failed due to a previous error"),
    ],
)
def test_a_decode_that_cannot_be_recorded_is_computed_as_before(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    model = make_model(tmp_path, "llama")
    tried: list[Compute] = []

    def record(compute: Compute) -> Recorded:
        tried.append(compute)
        raise error

    loop = Loop(on_cpu(tmp_path, SMALL, Kernels(dense, record)))
    with caplog.at_level(logging.ERROR, "headroom_server"):
        assert loop.run(request_of(prompt_of(9), 6)) == [expected_tokens(model, prompt_of(9), 6)]
    assert len(tried) == 1
    assert "cannot be recorded" in caplog.text


def test_memory_that_is_short_while_recording_is_reported(tmp_path: Path) -> None:
    make_model(tmp_path, "llama")

    def record(_: Compute) -> Recorded:
        raise torch.OutOfMemoryError("of the device")

    loop = Loop(on_cpu(tmp_path, SMALL, Kernels(dense, record)))
    with pytest.raises(OutOfMemoryError):
        loop.run(request_of(prompt_of(9), 6))


def test_a_device_that_is_lost_while_recording_is_reported(tmp_path: Path) -> None:
    make_model(tmp_path, "llama")

    def lost(*_: Compute) -> Recorded:
        raise RuntimeError("CUDA error: device-side assert triggered")

    def check() -> None:
        lost()

    loop = Loop(on_cpu(tmp_path, SMALL, Kernels(dense, lost, check)))
    with pytest.raises(DeviceLostError):
        loop.run(request_of(prompt_of(9), 6))


def test_recording_can_be_switched_off(tmp_path: Path) -> None:
    make_model(tmp_path, "llama")
    options = dataclasses.replace(SMALL, decode_graphs=False)
    executor = on_cpu(tmp_path, options, Kernels(dense, repeated))
    executor.load()
    assert executor.graphs is None


# ---- the tables and the mask

BLOCK, BLOCKS, WIDTH = 4, 40, 6


def random_chunks(chance: random.Random, count: int) -> list[Chunk]:
    chunks = []
    for key in range(count):
        start = chance.randrange(WIDTH * BLOCK)
        # more blocks than the decode reads, as a sequence with room for drafts has
        blocks = chance.sample(range(BLOCKS), min(WIDTH, start // BLOCK + 1 + chance.randrange(2)))
        sequence = Grown(request_of((1,), 1, key=key), [1])
        chunks.append(Chunk(sequence, start, (chance.randrange(9),), blocks, samples=True))
    return chunks


@pytest.mark.parametrize("window", [None, 1, 3, 9])
@pytest.mark.parametrize("seed", range(6))
def test_a_row_reads_the_tokens_of_its_own_blocks(seed: int, window: int | None) -> None:
    chance = random.Random(seed)
    count, rows = chance.choice([(1, 1), (3, 4), (5, 8), (8, 8)])
    chunks = random_chunks(chance, count)
    sizes = TableSizes(BLOCK, BLOCKS, WIDTH)
    inputs = torch.zeros(sizes.inputs(rows), dtype=torch.int64)
    inputs.random_(0, BLOCKS)  # what an earlier step left
    numbers = numbers_of(chunks, rows, BLOCK)
    inputs[: len(numbers)] = torch.tensor(numbers)

    step = tables_of(inputs, rows, sizes)
    mask = block_mask(step, window)

    padding = rows - count
    assert step.tokens.tolist() == [chunk.tokens[0] for chunk in chunks] + [0] * padding
    assert step.places.tolist() == [chunk.start for chunk in chunks] + [0] * padding
    slots = [one.blocks[one.start // BLOCK] * BLOCK + one.start % BLOCK for one in chunks]
    assert step.slots.tolist() == slots + [BLOCKS * BLOCK] * padding
    for row, chunk in enumerate(chunks):
        first = 0 if window is None else max(0, chunk.start - window + 1)
        seen = {
            chunk.blocks[place // BLOCK] * BLOCK + place % BLOCK
            for place in range(first, chunk.start + 1)
        }
        keys = torch.arange((BLOCKS + 1) * BLOCK)
        zero = torch.tensor(0)
        attended = mask.mask_mod(torch.tensor(row), zero, zero, keys)
        assert set(keys[attended].tolist()) == seen
    # torch's own search for the blocks that a mask needs finds the listed ones
    found = create_block_mask(
        mask.mask_mod, rows, None, 1, (BLOCKS + 1) * BLOCK, "cpu", mask.BLOCK_SIZE
    )
    assert found.full_kv_num_blocks is not None
    assert found.full_kv_indices is not None
    for row in range(rows):
        expected = [
            *found.kv_indices[row, 0, 0, : found.kv_num_blocks[row, 0, 0]].tolist(),
            *found.full_kv_indices[row, 0, 0, : found.full_kv_num_blocks[row, 0, 0]].tolist(),
        ]
        listed = mask.kv_indices[row, 0, 0, : mask.kv_num_blocks[row, 0, 0]].tolist()
        assert sorted(listed) == sorted(expected)


@pytest.mark.parametrize(
    ("device", "block_tokens", "heads", "missing"),
    [
        ("cpu", 16, 4, "only CUDA"),
        ("cuda", 8, 4, "HEADROOM_BLOCK_TOKENS must be a power of two from 16; got 8"),
        ("cuda", 48, 4, "got 48"),
        ("cuda", 16, 6, "query heads per key-value head must be a power of two; got 3"),
        ("cuda", 16, 4, "a head must have at least 16 numbers; got 12"),
    ],
)
def test_what_cannot_be_recorded_is_known_before(
    device: str, block_tokens: int, heads: int, missing: str
) -> None:
    shape = shape_of({**SIZES, "model_type": "llama", "num_attention_heads": heads})
    found = obstacle(shape, block_tokens, torch.device(device))
    assert found is not None
    assert missing in found
