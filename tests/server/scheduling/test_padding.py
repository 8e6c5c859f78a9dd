"""Requests of any length in padded batches: the model's inputs, and each request's outputs."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headroom_server.engine import DeviceLostError, OutOfMemoryError, Work
from headroom_server.signature import Signature
from headroom_server.tensors import TensorSpec
from headroom_server.torch_engine import TorchEngine, compilation
from headroom_server.torch_engine.collecting import LARGE_ROW_BYTES
from headroom_server.torch_engine.loading import Loaded
from headroom_server.torch_engine.transfers import CpuTransfers, each_tensor
from support.server_world import run

pytestmark = pytest.mark.clock

TOKENS = TensorSpec("tokens", "INT64", (-1,))
PLANES = TensorSpec("planes", "FP32", (2, -1))
BIAS = TensorSpec("bias", "FP64")
SIGNATURE = Signature(
    inputs=(TOKENS, PLANES, BIAS),
    outputs=(TensorSpec("mean", "FP64"), TensorSpec("same", "FP32", (2, -1))),
    lengths=(4, 8),
    batches=(1, 2, 4, 8),
    mask=TensorSpec("mask", "BOOL", (-1,)),
)


class Means:
    """The mean of the tokens that the mask shows, plus the bias; the planes as they came."""

    signature = SIGNATURE
    wants_compile = False

    def __init__(self) -> None:
        self.seen: list[dict[str, torch.Tensor]] = []

    def load(self, directory: Path | None, device: torch.device) -> None:
        pass

    def preprocess(self, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        self.seen.append({name: tensor.clone() for name, tensor in inputs.items()})
        return inputs

    def forward(self, batch: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        total = (batch["tokens"] * batch["mask"]).sum(1).double()
        return total / batch["mask"].sum(1).clamp(min=1) + batch["bias"], batch["planes"]

    def postprocess(self, result: tuple[torch.Tensor, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {"mean": result[0], "same": result[1]}


def engine_of(model: Any) -> TorchEngine:
    engine = TorchEngine(lambda _: Loaded(model, model.signature), threads=1)
    engine.load()
    return engine


def work(length: int, *rows: int) -> Work:
    """One item per row: tokens all of that number, and planes that count on from it."""
    planes = [float(row * 100 + at) for row in rows for at in range(2 * length)]
    return Work(
        len(rows),
        {
            "tokens": array("q", [row for row in rows for _ in range(length)]),
            "planes": array("f", planes),
            "bias": array("d", [0.5] * len(rows)),
        },
        length,
    )


def check(engine: TorchEngine, batch: list[Work], length: int) -> None:
    for one, answer in zip(batch, run(engine, batch, length), strict=True):
        tokens = list(one.inputs["tokens"])[:: one.length]
        assert list(answer["mean"]) == [token + 0.5 for token in tokens]
        assert answer["same"] == one.inputs["planes"]


def test_batch_is_padded_to_warmed_shapes_and_outputs_are_cut() -> None:
    model = Means()
    check(engine_of(model), [work(3, 7), work(5, 1, 2)], 8)
    seen = model.seen[-1]
    assert seen["tokens"].tolist() == [
        [7, 7, 7, 0, 0, 0, 0, 0],
        [1, 1, 1, 1, 1, 0, 0, 0],
        [2, 2, 2, 2, 2, 0, 0, 0],
        [0, 0, 0, 0, 0, 0, 0, 0],
    ]
    assert seen["mask"].long().sum(1).tolist() == [3, 5, 5, 0]
    assert seen["planes"].shape == (4, 2, 8)


def test_batch_memory_keeps_nothing_of_earlier_batches() -> None:
    model = Means()
    engine = engine_of(model)
    check(engine, [work(8, *range(1, 9))], 8)
    check(engine, [work(2, 5)], 8)
    assert model.seen[-1]["tokens"].tolist() == [[5, 5, 0, 0, 0, 0, 0, 0]]
    check(engine, [work(8, 1), work(1, 2), work(3, 3)], 8)
    assert model.seen[-1]["tokens"].sum(1).tolist() == [8, 2, 9, 0]
    assert [tensor[3].any().item() for tensor in model.seen[-1].values()] == [False] * 4


@settings(max_examples=60)
@given(
    st.lists(
        st.lists(st.tuples(st.integers(1, 8), st.integers(1, 3)), min_size=1, max_size=5).filter(
            lambda batch: sum(items for _, items in batch) <= 8
        ),
        min_size=1,
        max_size=4,
    )
)
def test_consecutive_batches_give_correct_outputs(batches: list[list[tuple[int, int]]]) -> None:
    engine = engine_of(Means())
    for batch in batches:
        works = [work(length, *range(1, items + 1)) for length, items in batch]
        check(engine, works, SIGNATURE.padded_length(max(one.length for one in works)))


@pytest.mark.parametrize(
    "now",
    [
        pytest.param(lambda a, b, c: [a, b], id="as it was staged"),
        pytest.param(lambda a, b, c: [a, b, c], id="one joined"),
        pytest.param(lambda a, b, c: [b, c], id="the first left"),
        pytest.param(lambda a, b, c: [c], id="another"),
        pytest.param(lambda a, b, c: [a, b, c, c, c, c, c, c], id="more than there is room"),
    ],
)
def test_staged_ahead_batch_can_differ_from_the_final_one(now: Callable[..., list[Work]]) -> None:
    engine = engine_of(Means())
    ahead = engine.stage([one := work(3, 7), two := work(5, 1)], 8)
    batch = now(one, two, work(8, 4))
    staged = engine.stage(batch, 8, ahead)
    assert (staged is ahead) == (batch == [one, two])
    answers = engine.finish(staged, engine.execute(staged))
    for work_, answer in zip(batch, answers, strict=True):
        assert answer["same"] == work_.inputs["planes"]


def test_staged_batch_of_another_length_returns_its_memory() -> None:
    engine = engine_of(Means())
    ahead = engine.stage([one := work(3, 7)], 4)
    check(engine, [one], 8)
    staged = engine.stage([one, work(6, 2)], 8, ahead)
    assert staged.length == 8
    engine.finish(staged, engine.execute(staged))


class Large:
    """Rows that are copied one by one."""

    elements = LARGE_ROW_BYTES // 4
    signature = Signature(
        inputs=(TensorSpec("x", "FP32", (elements,)),), outputs=(TensorSpec("y", "FP32"),)
    )

    def load(self, directory: Path | None, device: torch.device) -> None:
        pass

    def preprocess(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        return inputs["x"]

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return batch.sum(1)

    def postprocess(self, result: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"y": result}


def test_large_rows_are_collected() -> None:
    works = [Work(n, {"x": array("f", [float(n)] * n * Large.elements)}) for n in (1, 2)]
    answers = run(engine_of(Large()), works)
    assert [list(one["y"]) for one in answers] == [
        [float(Large.elements)],
        [2.0 * Large.elements] * 2,
    ]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
            OutOfMemoryError,
        ),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), OutOfMemoryError),
        (MemoryError(), OutOfMemoryError),
        # of pinned memory, and of the workspaces of libraries: the device works on
        (RuntimeError("CUDA error: out of memory\nmore"), OutOfMemoryError),
        (
            RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(h)`"),
            OutOfMemoryError,
        ),
        (RuntimeError("CUDA error: device-side assert triggered\nmore"), DeviceLostError),
        (
            RuntimeError("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm`"),
            DeviceLostError,
        ),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), RuntimeError),
    ],
)
def test_torch_errors_are_classified(error: Exception, expected: type[Exception]) -> None:
    class Failing(Large):
        def forward(self, batch: torch.Tensor) -> torch.Tensor:
            raise error

    with pytest.raises(expected) as raised:
        run(engine_of(Failing()), [Work(1, {"x": array("f", [0.0] * Large.elements)})])
    assert type(raised.value) is expected
    assert "\n" not in str(raised.value)


def test_cpu_out_of_memory_fails_the_batch() -> None:
    class Huge(Large):
        def forward(self, batch: torch.Tensor) -> torch.Tensor:
            return torch.empty(1 << 60)

    with pytest.raises(OutOfMemoryError):
        run(engine_of(Huge()), [Work(1, {"x": array("f", [0.0] * Large.elements)})])


def test_tensors_are_found_in_nested_results() -> None:
    one = torch.ones(1)
    twice = each_tensor({"a": [one, (one, "text")], "b": None}, lambda tensor: tensor + 1)
    assert twice == {"a": [one + 1, (one + 1, "text")], "b": None}
    assert CpuTransfers().fetch(one) is one


@pytest.mark.parametrize(
    ("found", "environ", "missing"),
    [
        ({"g++"}, {}, None),
        ({"clang++"}, {}, None),
        (set(), {}, "no C++ compiler (g++ or clang++) in this image"),
        ({"g++"}, {"CXX": "icpx"}, "no C++ compiler (icpx) in this image"),
    ],
)
def test_missing_compiler_is_named(
    found: set[str], environ: dict[str, str], missing: str | None
) -> None:
    which = {name: f"/usr/bin/{name}" for name in found}.get
    assert compilation.obstacle("cpu", which=which, environ=environ) == missing


def test_compile_cache_is_per_model_torch_and_device(tmp_path: Path) -> None:
    digest = compilation.digest(Means(), SIGNATURE)
    assert digest == compilation.digest(Means(), SIGNATURE)
    assert digest != compilation.digest(Large(), Large.signature)
    assert digest != compilation.digest(Means(), Large.signature)
    folder = compilation.cache_folder(tmp_path, digest, "NVIDIA H200/x")
    assert folder.name == f"{digest}-{torch.__version__}-NVIDIA_H200_x"
    environ: dict[str, str] = {}
    assert compilation.use_cache(folder, environ) is False
    (folder / "inductor").mkdir()
    assert compilation.use_cache(folder, environ) is True
    assert environ["TORCHINDUCTOR_CACHE_DIR"] == str(folder / "inductor")


def test_compile_cache_differs_for_other_shapes() -> None:
    class Holder:
        def __init__(self, width: int) -> None:
            self.module = torch.nn.Linear(width, 1)

    one, other, same = (compilation.digest(Holder(n), SIGNATURE) for n in (2, 3, 2))
    assert one == same != other
