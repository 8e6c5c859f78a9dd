"""torch.export programs and AOTInductor packages: both trust and digest, or nothing is read."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import zipfile
from array import array
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from headroom_server.engine import LoadError, Work
from headroom_server.repository import folder
from headroom_server.signature import Signature
from headroom_server.torch_engine import TorchEngine
from headroom_server.torch_engine.loading import DescribedModel
from support.server_world import run

pytestmark = pytest.mark.clock


class Scaled(torch.nn.Module):
    """Two inputs, two outputs, and a constant that must be included."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)
        self.register_buffer("offset", torch.ones(3))

    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.linear(x) * scale.unsqueeze(1) + self.offset, x.sum(1) > 0


@pytest.fixture(scope="module")
def module() -> torch.nn.Module:
    torch.manual_seed(7)
    return Scaled().eval()


@pytest.fixture(scope="module")
def exported(module: torch.nn.Module) -> bytes:
    batch = torch.export.Dim("batch", min=1, max=64)
    program = torch.export.export(
        module,
        (torch.zeros(2, 4), torch.zeros(2)),
        dynamic_shapes={"x": {0: batch}, "scale": {0: batch}},
    )
    file = io.BytesIO()
    torch.export.save(program, file)
    return file.getvalue()


Make = Callable[..., TorchEngine]


@pytest.fixture
def engine_of(tmp_path: Path) -> Make:
    def make(
        data: bytes, *, kind: str = "export", trusted: bool = True, pinned: str | None = None
    ) -> TorchEngine:
        (tmp_path / "model.pt2").write_bytes(data)
        (tmp_path / "model.toml").write_text(
            f"format = '{kind}'\nsha256 = '{pinned or hashlib.sha256(data).hexdigest()}'\n"
            "inputs = [{name='x', datatype='FP32', shape=[4]}, {name='scale', datatype='FP32'}]\n"
            "outputs = [{name='y', datatype='FP32', shape=[3]}, {name='up', datatype='BOOL'}]\n"
        )
        description = folder.describe(tmp_path, tmp_path)
        return TorchEngine(DescribedModel(tmp_path, tmp_path, description, trusted), threads=1)

    return make


def test_trusted_and_pinned_program_answers_like_its_module(
    module: torch.nn.Module, exported: bytes, engine_of: Make
) -> None:
    engine = engine_of(exported)
    signature = engine.load()
    assert isinstance(signature, Signature)
    assert [spec.name for spec in signature.outputs] == ["y", "up"]
    x, scale = torch.randn(3, 4), torch.randn(3)
    with torch.inference_mode():
        y, up = module(x, scale)
    rows = [(0, 1), (1, 3)]
    outputs = run(
        engine,
        [
            Work(
                end - begin,
                {
                    "x": array("f", x[begin:end].flatten().tolist()),
                    "scale": array("f", scale[begin:end].tolist()),
                },
            )
            for begin, end in rows
        ],
    )
    for (begin, end), answer in zip(rows, outputs, strict=True):
        expected = y[begin:end].flatten()
        torch.testing.assert_close(torch.tensor(list(answer["y"])), expected)
        assert list(answer["up"]) == up[begin:end].int().tolist()


class Touch:
    """A pickle that creates a file when it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return os.mkdir, (str(self.path),)


def crafted(exported: bytes, proof: Path) -> bytes:
    """The program with its unused sample inputs replaced by a pickle that runs code."""
    sample = io.BytesIO()
    torch.save(Touch(proof), sample)
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(exported)) as old, zipfile.ZipFile(file, "w") as new:
        for member in old.namelist():
            acts = member.endswith("sample_inputs/model.pt")
            new.writestr(member, sample.getvalue() if acts else old.read(member))
    return file.getvalue()


@pytest.mark.parametrize(
    ("trusted", "pinned", "words"),
    [
        (False, None, "format export runs code when it is loaded: .*HEADROOM_REPOSITORY_TRUSTED"),
        (True, "0" * 64, "model.pt2: its sha256 is .*pins 0000"),
        (False, "0" * 64, "runs code"),
    ],
    ids=["not trusted", "not pinned", "neither"],
)
def test_program_without_trust_or_digest_does_not_run(
    *,
    trusted: bool,
    pinned: str | None,
    words: str,
    exported: bytes,
    engine_of: Make,
    tmp_path: Path,
) -> None:
    proof = tmp_path / "ran"
    engine = engine_of(crafted(exported, proof), trusted=trusted, pinned=pinned)
    with pytest.raises(LoadError, match=words):
        engine.load()
    assert not proof.exists()


def test_crafted_program_runs_code_despite_weights_only(
    exported: bytes, engine_of: Make, tmp_path: Path
) -> None:
    proof = tmp_path / "ran"
    with contextlib.suppress(LoadError):
        engine_of(crafted(exported, proof)).load()
    assert proof.is_dir()


@pytest.mark.parametrize(
    ("kind", "data", "words"),
    [
        ("export", b"no archive", "model.pt2 is not a .pt2 archive"),
        ("aotinductor", b"no archive", "model.pt2 is not a .pt2 archive"),
        ("aotinductor", None, "contains a program of format 'export'; got format = 'aotinductor'"),
    ],
)
def test_wrong_kind_of_program_is_refused_before_torch(
    kind: str, data: bytes | None, words: str, exported: bytes, engine_of: Make
) -> None:
    with pytest.raises(LoadError, match=words):
        engine_of(exported if data is None else data, kind=kind).load()


def test_unreadable_archive_is_named(engine_of: Make) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/models/model.json", "{}")
    with pytest.raises(LoadError, match=r"model\.pt2: torch cannot load it: "):
        engine_of(file.getvalue()).load()
