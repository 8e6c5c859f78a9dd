"""Real torch models on the CPU: the same numbers over HTTP as from torch itself."""

from __future__ import annotations

import asyncio
import json
import pickle
import re
import sys
from array import array
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch
from safetensors.torch import save_file

from headroom_server.batching_composition.engines import build_engines
from headroom_server.device.startup import WarmUpPlan
from headroom_server.engine import LoadError, Work
from headroom_server.repository import folder
from headroom_server.runtime.batching.model_queue import Limits
from headroom_server.runtime.batching.runner import Runner
from headroom_server.runtime.registry import Models
from headroom_server.runtime.store import ModelSource
from headroom_server.settings import Settings
from headroom_server.signature import Signature
from headroom_server.tensors import TensorSpec
from headroom_server.torch_engine import TorchEngine
from headroom_server.torch_engine.architectures import build
from headroom_server.torch_engine.loading import ClassModel, DescribedModel, Loaded
from headroom_server.web.application.app import Application
from support.server_world import run, until

pytestmark = pytest.mark.clock

ARCHITECTURES = [
    pytest.param("mlp", {"sizes": [4, 16, 3]}, (4,), id="mlp"),
    pytest.param(
        "convnet", {"channels": [3, 8], "image": [8, 6], "classes": 5}, (3, 8, 6), id="convnet"
    ),
]


def engine_at(directory: Path, *, trusted: bool = False) -> TorchEngine:
    def load(device: torch.device) -> Loaded:
        description = folder.describe(directory, directory)
        return DescribedModel(directory, directory, description, trusted)(device)

    return TorchEngine(load, threads=1)


def write_model(directory: Path, name: str, parameters: dict[str, Any]) -> torch.nn.Module:
    torch.manual_seed(7)
    module, _ = build(name, parameters)
    save_file(module.state_dict(), directory / "model.safetensors")
    fields = "\n".join(f"{key} = {json.dumps(value)}" for key, value in parameters.items())
    (directory / "model.toml").write_text(f'architecture = "{name}"\n[parameters]\n{fields}\n')
    return module


@pytest.mark.parametrize(("name", "parameters", "shape"), ARCHITECTURES)
async def test_served_model_equals_torch_called_directly(
    tmp_path: Path, name: str, parameters: dict[str, Any], shape: tuple[int, ...]
) -> None:
    module = write_model(tmp_path, name, parameters)
    runner = Runner(
        "m",
        [engine_at(tmp_path), engine_at(tmp_path)],
        WarmUpPlan(max_batch_size=4, requests=8, max_latency_s=5.0, timeout_s=60.0),
        Limits(max_batch_size=4, max_waiting=32, stall_timeout_s=60.0),
    )
    transport = httpx.ASGITransport(app=Application(Models.of(runner), max_body_bytes=10**6))
    async with httpx.AsyncClient(transport=transport, base_url="http://server") as http:
        runner.start()
        await until(lambda: runner.ready)
        batch = torch.randn(9, *shape)
        with torch.inference_mode():
            expected = module.eval()(batch)
        # three requests of 2, 3 and 4 rows at once, in both protocols
        parts = torch.split(batch, [2, 3, 4])
        v2 = {"name": runner.signature and runner.signature.inputs[0].name, "datatype": "FP32"}
        answers = await asyncio.gather(
            http.post("/v1/models/m:predict", json={"instances": parts[0].tolist()}),
            http.post("/v1/models/m:predict", json={"instances": parts[1].tolist()}),
            http.post(
                "/v2/models/m/infer",
                json={
                    "inputs": [
                        v2 | {"shape": list(parts[2].shape), "data": parts[2].flatten().tolist()}
                    ]
                },
            ),
        )
        ready = (await http.get("/v2/health/ready")).json()
        runner.stop()
    output = answers[2].json()["outputs"][0]
    got = torch.cat(
        [
            torch.tensor(answers[0].json()["predictions"]),
            torch.tensor(answers[1].json()["predictions"]),
            torch.tensor(output["data"]).reshape(output["shape"]),
        ]
    )
    torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-6)
    assert (ready["engine"], ready["emulated"]) == ("torch", False)


class Halver:
    """A user's model: integers in, their halves and signs out."""

    signature = Signature(
        inputs=(TensorSpec("a", "INT64", (2,)), TensorSpec("flip", "BOOL")),
        outputs=(TensorSpec("half", "FP32", (2,)), TensorSpec("positive", "BOOL", (2,))),
    )

    def load(self, directory: Path | None, device: torch.device) -> None:
        self.device = device

    def preprocess(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        sign = 1 - 2 * inputs["flip"].long().unsqueeze(1)
        return (inputs["a"] * sign).to(self.device)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return batch / 2

    def postprocess(self, result: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"half": result, "positive": result > 0}


def test_user_class_is_loaded_and_executed() -> None:
    engine = TorchEngine(ClassModel(f"{__name__}:Halver", None), threads=1)
    assert engine.load() == Halver.signature
    first = Work(1, {"a": array("q", [3, -4]), "flip": array("B", [1])})
    second = Work(2, {"a": array("q", [1, 2, 0, -6]), "flip": array("B", [0, 0])})
    outputs = run(engine, [first, second])
    assert [list(one["half"]) for one in outputs] == [[-1.5, 2.0], [0.5, 1.0, 0.0, -3.0]]
    assert [list(one["positive"]) for one in outputs] == [[0, 1], [1, 1, 0, 0]]


class Careless(Halver):
    """A user's model that returns something else than tensors."""

    def __init__(self, returned: object = None) -> None:
        self.returned = returned

    def postprocess(self, result: torch.Tensor) -> Any:
        return self.returned


class Unsigned(Halver):
    """A user's model whose signature is missing."""

    signature = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (None, "postprocess must return a dict by name; got NoneType"),
        ({"half": [1.0]}, "output half must be a torch.Tensor; got list"),
        ({"half": torch.zeros(1, 2).numpy()}, "output half must be a torch.Tensor; got ndarray"),
    ],
)
def test_output_that_is_no_tensor_is_named(returned: object, words: str) -> None:
    engine = TorchEngine(
        lambda device: Loaded(_loaded(Careless(returned), device), Halver.signature), threads=1
    )
    engine.load()
    with pytest.raises(ValueError, match=re.escape(words)):
        run(engine, [Work(1, {"a": array("q", [3, -4]), "flip": array("B", [1])})])


def _loaded(model: Halver, device: torch.device) -> Halver:
    model.load(None, device)
    return model


def test_class_without_a_signature_is_refused() -> None:
    engine = TorchEngine(ClassModel(f"{__name__}:Unsigned", None), threads=1)
    with pytest.raises(LoadError, match=r"must have a `signature`, .* after `load`; got NoneType"):
        engine.load()


def test_undeclared_output_shape_fails_the_batch(tmp_path: Path) -> None:
    write_model(tmp_path, "mlp", {"sizes": [4, 3]})
    engine = engine_at(tmp_path)
    engine.load()
    with pytest.raises(RuntimeError, match="shape"):
        run(engine, [Work(1, {"x": array("f", [1.0] * 5)})])


@pytest.mark.parametrize(
    ("files", "words"),
    [
        pytest.param({}, "model.toml", id="no description"),
        pytest.param({"model.toml": b"="}, "model.toml", id="no TOML"),
        pytest.param({"model.toml": b"\xff"}, "model.toml", id="no text"),
        pytest.param({"model.toml": b"weights='w.safetensors'"}, "required", id="no architecture"),
        pytest.param(
            {"model.toml": b"architecture='gpt'"}, r"must be one of \[.*; got 'gpt'", id="unknown"
        ),
        pytest.param({"model.toml": b"architecture='mlp'\nx=1"}, "x: unknown field", id="typo"),
        pytest.param({"model.toml": b"architecture=1"}, "architecture: .*string; got 1", id="type"),
        pytest.param(
            {"model.toml": b"architecture='mlp'\n[parameters]\nwidth=3"},
            "mlp takes",
            id="parameter",
        ),
        pytest.param(
            {"model.toml": b"architecture='mlp'\n[parameters]\nsizes=[4,0]"}, "widths", id="bounds"
        ),
        pytest.param(
            {
                "model.toml": b"architecture='mlp'\nweights='model.pt'\n[parameters]\nsizes=[4,3]",
                "model.pt": pickle.dumps({"evil": 1}),
            },
            "must not be a pickle",
            id="a pickle",
        ),
        pytest.param(
            {
                "model.toml": b"architecture='mlp'\n[parameters]\nsizes=[4,3]",
                "model.safetensors": pickle.dumps({"evil": 1}),
            },
            "model.safetensors",
            id="a pickle in disguise",
        ),
        pytest.param(
            {
                "model.toml": b"architecture='mlp'\nweights='../w.safetensors'\n[parameters]\n"
                b"sizes=[4,3]"
            },
            "next to model.toml",
            id="weights elsewhere",
        ),
    ],
)
def test_model_that_cannot_be_loaded_is_reported(
    tmp_path: Path, files: dict[str, bytes], words: str
) -> None:
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(LoadError, match=words):
        engine_at(tmp_path).load()


def test_weights_of_another_shape_are_refused(tmp_path: Path) -> None:
    write_model(tmp_path, "mlp", {"sizes": [4, 3]})
    description = tmp_path / "model.toml"
    description.write_text(description.read_text().replace("[4, 3]", "[4, 5]"))
    with pytest.raises(LoadError, match="size mismatch"):
        engine_at(tmp_path).load()


@pytest.mark.parametrize(
    ("model_class", "words"),
    [
        ("no_such_module:Class", "HEADROOM_MODEL_CLASS: .* cannot be imported"),
        ("json:Class", "HEADROOM_MODEL_CLASS: .* cannot be imported"),
        ("json:JSONDecoder", r"a class with load, preprocess, .*; it lacks \['load'"),
        ("json:dumps", "a class with load"),
    ],
)
def test_class_without_the_models_methods_is_not_called(model_class: str, words: str) -> None:
    with pytest.raises(LoadError, match=words):
        TorchEngine(ClassModel(model_class, None), threads=1).load()


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("architecture", ["mlp", f"{__name__}:Halver"])
def test_description_can_request_compilation(
    tmp_path: Path, architecture: str, *, compiled: bool
) -> None:
    write_model(tmp_path, "mlp", {"sizes": [4, 3]})
    if architecture != "mlp":
        (tmp_path / "model.toml").write_text(f"architecture = '{architecture}'\n")
    text = (tmp_path / "model.toml").read_text()
    (tmp_path / "model.toml").write_text(f"compile = {str(compiled).lower()}\n{text}")
    description = folder.describe(tmp_path, tmp_path)
    source = ModelSource("m", 1, tmp_path, tmp_path, description)
    (engine,) = build_engines(Settings(repository_trusted=True), source)
    engine.load()
    assert engine.compiles is compiled


def test_untrusted_repository_imports_no_module(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Importing `this` prints a poem; importing venv.__main__ ends the process."""
    for architecture in ("this:s", "venv.__main__:X"):
        sys.modules.pop(architecture.partition(":")[0], None)
        (tmp_path / "model.toml").write_text(f"architecture = '{architecture}'")
        engine = engine_at(tmp_path)
        with pytest.raises(LoadError, match="HEADROOM_REPOSITORY_TRUSTED"):
            engine.load()
    assert "this" not in sys.modules
    assert capsys.readouterr().out == ""


def test_module_that_ends_the_program_fails_the_load_alone(tmp_path: Path) -> None:
    (tmp_path / "model.toml").write_text("architecture = 'venv.__main__:X'")
    engine = engine_at(tmp_path, trusted=True)
    with pytest.raises(LoadError, match="its module raised SystemExit"):
        engine.load()
