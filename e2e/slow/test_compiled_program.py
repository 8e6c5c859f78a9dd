"""An AOTInductor package, compiled here (about a minute), loaded and served as declared."""

from __future__ import annotations

import hashlib
from array import array
from pathlib import Path

import pytest
import torch

from headroom_server.batching_composition.engines import build_engines
from headroom_server.engine import LoadError, Work
from headroom_server.repository import folder
from headroom_server.repository.checking import check
from headroom_server.runtime.store import ModelSource
from headroom_server.settings import Settings

pytestmark = pytest.mark.clock


@pytest.fixture(scope="module")
def module() -> torch.nn.Module:
    torch.manual_seed(7)
    return torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))


@pytest.fixture(scope="module")
def repository(module: torch.nn.Module, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("repository")
    batch = torch.export.Dim("batch", min=1, max=64)
    program = torch.export.export(module.eval(), (torch.zeros(2, 4),), dynamic_shapes=({0: batch},))
    package = Path(
        torch._inductor.aoti_compile_and_package(program, package_path=str(root / "model.pt2"))
    )
    (root / "model.toml").write_text(
        "format = 'aotinductor'\n"
        f"sha256 = '{hashlib.sha256(package.read_bytes()).hexdigest()}'\n"
        "inputs = [{name='x', datatype='FP32', shape=[4]}]\n"
        "outputs = [{name='y', datatype='FP32', shape=[3]}]\n"
    )
    return root


def test_a_compiled_package_answers_as_the_module_it_was(
    module: torch.nn.Module, repository: Path
) -> None:
    assert [str(one) for one in check(repository, trusted=True)] == [
        "ok     model/1: format aotinductor"
    ]
    source = ModelSource("m", 1, repository, repository, folder.describe(repository, repository))
    (engine,) = build_engines(Settings(repository_trusted=True), source)
    engine.load()
    rows = torch.randn(5, 4)
    works = [Work(5, {"x": array("f", rows.flatten().tolist())})]
    staged = engine.stage(works, 0)
    (answer,) = engine.finish(staged, engine.execute(staged))
    with torch.inference_mode():
        expected = module(rows).flatten()
    torch.testing.assert_close(torch.tensor(list(answer["y"])), expected)
    engine.unload()


def test_compiled_package_is_loaded_only_if_allowed(repository: Path) -> None:
    source = ModelSource("m", 1, repository, repository, folder.describe(repository, repository))
    with pytest.raises(LoadError, match="runs code when it is loaded"):
        build_engines(Settings(), source)[0].load()
