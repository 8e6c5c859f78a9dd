"""Any description of a model is read or refused with its reason."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import strategies as st

from headroom_server.engine import LoadError
from headroom_server.repository.checking import check as check_repository
from headroom_server.repository.description_file import parse as read
from support.bent_values import LEAVES, bent, mangled
from support.fuzzing import fuzz

pytestmark = pytest.mark.clock


DESCRIPTION: dict[str, Any] = {
    "engine": "torch",
    "architecture": "mlp",
    "format": "safetensors",
    "weights": "model.safetensors",
    "sha256": "0" * 64,
    "max_batch_size": 8,
    "batches": [1, 8],
    "compile": False,
    "parameters": {"sizes": [2, 3]},
    "inputs": [{"name": "x", "datatype": "FP32", "shape": [2]}],
    "outputs": [{"name": "y", "datatype": "FP32", "shape": [3]}],
    "classes": {"quick": {"priority": 1, "deadline_s": 0.1}},
    "cache": {"bytes": 1000, "ttl_s": 60},
    "warm_up": [{"inputs": {"x": [1.5, 2.0]}}],
}


PROGRAM = {
    key: one for key, one in DESCRIPTION.items() if key not in {"architecture", "parameters"}
}


CLASS = {key: one for key, one in DESCRIPTION.items() if key not in {"weights", "sha256"}} | {
    "architecture": "json:Model",
    "lengths": [4, 8],
    "inputs": [{"name": "t", "datatype": "INT64", "shape": [-1]}],
    "mask": {"name": "mask", "datatype": "BOOL"},
    "warm_up": [{"inputs": {"t": [1, 2, 3]}}],
}


EMULATED = {"engine": "emulated", "emulated": {"fixed_cost_s": 0.006, "lengths": [4]}}


NAMES = ["__main__:Model", "builtins:int", "a.b.c:D", "convnet", "BYTES", "UINT64", -1, 2**70]


def as_toml(value: Any) -> str:
    """On one line, as after a key."""
    if isinstance(value, dict):
        return (
            "{" + ", ".join(f"{as_toml(key)} = {as_toml(one)}" for key, one in value.items()) + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    if isinstance(value, str):
        return orjson.dumps(value).decode().replace("\x7f", "\\u007f")
    if isinstance(value, bool) or value is None:
        return str(bool(value)).lower()
    return repr(value)


def described(value: Any) -> bytes:
    lines = [f"{as_toml(key)} = {as_toml(one)}\n" for key, one in value.items()]
    return "".join(lines).encode()


def test_fuzzed_descriptions_are_handled(tmp_path: Path) -> None:
    whole = [DESCRIPTION, PROGRAM | {"format": "export", "weights": "m.pt2"}, CLASS, EMULATED]
    for one in whole:
        if "compile" in one and "architecture" not in one:
            del one["compile"]
        read(described(one), "model.toml")
    file = tmp_path / "m" / "model.toml"
    file.parent.mkdir()

    def check(data: bytes) -> None:
        try:
            read(data, "model.toml")
        except LoadError as error:
            lines = str(error).splitlines()
            assert lines
            assert all(line.startswith("model.toml: ") for line in lines)
        file.write_bytes(data)
        for trusted in (False, True):
            (finding,) = check_repository(tmp_path, trusted=trusted)
            assert "\n" not in str(finding)
            assert finding.model.startswith("m")

    bents = st.sampled_from(whole).flatmap(partial(bent, leaves=LEAVES | st.sampled_from(NAMES)))
    bytes_ = st.sampled_from(whole).map(described).flatmap(mangled)
    fuzz(bents.map(described) | bytes_, check, examples=100)
