"""Every element type through the torch engine: unchanged, padded, cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from headroom_server.datatypes import DATATYPES
from headroom_server.engine import LoadError, Work, check_outputs
from headroom_server.repository import description_file
from headroom_server.signature import Signature
from headroom_server.tensors import TensorSpec
from headroom_server.torch_engine import TorchEngine
from headroom_server.torch_engine.dealing import deal
from headroom_server.torch_engine.loading import Loaded
from support.server_world import run


class Echo:
    """Returns its input."""

    def __init__(self, signature: Signature) -> None:
        self.signature = signature

    def load(self, directory: Path | None, device: torch.device) -> None:
        """Load nothing."""

    def preprocess(self, inputs: dict[str, Any]) -> dict[str, Any]:
        return {name: one if isinstance(one, list) else one.clone() for name, one in inputs.items()}

    def forward(self, batch: Any) -> Any:
        return batch

    def postprocess(self, result: Any) -> Any:
        return result


def echoing(signature: Signature) -> TorchEngine:
    engine = TorchEngine(lambda _: Loaded(Echo(signature), signature), threads=1)
    engine.load()
    return engine


@pytest.mark.parametrize("datatype", DATATYPES)
def test_every_type_passes_through_torch_unchanged(datatype: str) -> None:
    spec = TensorSpec("x", datatype, (2,))
    pairs: dict[str, list[Any]] = {"BOOL": [True, False], "BYTES": ["é", ""]}
    one = pairs.get(datatype, [3, 0])
    both = Signature((spec,), (spec,), batches=(4,))
    works = [
        Work(1, {"x": spec.numbers(one, "x")}),
        Work(2, {"x": spec.numbers(one[::-1] * 2, "")}),
    ]
    answers = run(echoing(both), works)
    check_outputs(both, works, answers)
    assert [answer["x"] for answer in answers] == [work.inputs["x"] for work in works]


@pytest.mark.parametrize("datatype", sorted({*DATATYPES} - {"BYTES"}))
def test_every_type_is_padded_and_cut(datatype: str) -> None:
    spec = TensorSpec("x", datatype, (-1, 2))
    one: list[Any] = [True] * 12 if datatype == "BOOL" else [1, 2, 3] * 4
    both = Signature((spec,), (spec,), lengths=(4,))
    works = [
        Work(2, {"x": spec.numbers(one[:4], "x")}, 1),
        Work(1, {"x": spec.numbers(one[:6], "")}, 3),
    ]
    answers = run(echoing(both), works, 4)
    assert [answer["x"] for answer in answers] == [work.inputs["x"] for work in works]


@pytest.mark.parametrize(
    ("given_", "words"),
    [
        ([["a"]], r"axis 0 must have 2 elements .*; got 1"),
        ([["a"], ["b", "c"]], "axis 1 must have 1 elements .*; got 2"),
        ([["a"], [3]], "BYTES must be str or bytes; got an integer"),
        (torch.zeros(2), "axis 0 must be a list of 2 .*; got Tensor"),
    ],
)
def test_class_returning_no_strings_is_named(given_: Any, words: str) -> None:
    spec = TensorSpec("x", "BYTES", (1,))
    with pytest.raises(ValueError, match=f"output x: .*{words}"):
        deal(spec, {"x": given_}, [Work(2, {})], rows=2, length=0)


STRINGS = """
architecture = {architecture}
[[inputs]]
name = "text"
datatype = "BYTES"
[[outputs]]
name = "n"
datatype = "UINT16"
"""


def test_strings_require_a_class() -> None:
    toml = STRINGS.format(architecture="'tokens:Model'").encode()
    one = description_file.parse(toml, "model.toml")
    assert one.declared is not None
    assert one.declared.inputs == (TensorSpec("text", "BYTES"),)
    with pytest.raises(
        LoadError, match="datatype must not be BYTES unless architecture = 'module:Class'"
    ):
        description_file.parse(STRINGS.format(architecture="'mlp'").encode(), "model.toml")
