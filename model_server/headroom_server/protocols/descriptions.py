"""Metadata of the server and its models, the same for HTTP and gRPC. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headroom_server import __version__
from headroom_server.signature import Signature
from headroom_server.tensors import TensorSpec

EXTENSIONS = ("binary_tensor_data", "model_configuration", "model_repository")


TEXT_INPUTS = {
    "text_input": "BYTES",
    "sampling_parameters": "BYTES",
    "stream": "BOOL",
    "exclude_input_in_output": "BOOL",
}
"""Inputs of a model that generates text, with the names of Triton's vLLM back end."""
REQUIRED_INPUT = "text_input"
TEXT_OUTPUT = "text_output"


def server_metadata(extensions: Sequence[str] = EXTENSIONS) -> dict[str, Any]:
    """The server: name, version, protocol extensions."""
    return {"name": "headroom", "version": __version__, "extensions": [*extensions]}


def text_metadata(name: str, engine: str) -> dict[str, Any]:
    """The inputs and outputs of a model that generates text: one text each."""
    return {
        "name": name,
        "versions": ["1"],
        "platform": f"headroom_{engine}",
        "inputs": [
            {"name": one, "datatype": kind, "shape": [1]} for one, kind in TEXT_INPUTS.items()
        ],
        "outputs": [{"name": TEXT_OUTPUT, "datatype": "BYTES", "shape": [1]}],
    }


def text_config(name: str, engine: str) -> dict[str, Any]:
    """The applicable part of Triton's model configuration: answers have several parts."""
    return {
        "name": name,
        "platform": f"headroom_{engine}",
        "backend": engine,
        "input": [
            _configured(one, kind, (1,)) | ({} if one == REQUIRED_INPUT else {"optional": True})
            for one, kind in TEXT_INPUTS.items()
        ],
        "output": [_configured(TEXT_OUTPUT, "BYTES", (1,))],
        "model_transaction_policy": {"decoupled": True},
    }


def model_metadata(name: str, version: str, engine: str, signature: Signature) -> dict[str, Any]:
    """A model's inputs and outputs; -1 is the batch dimension, or the dynamic one."""
    return {
        "name": name,
        "versions": [version],
        "platform": f"headroom_{engine}",
        "inputs": [_tensor(spec) for spec in signature.inputs],
        "outputs": [_tensor(spec) for spec in signature.outputs],
    }


def model_config(name: str, engine: str, signature: Signature, max_items: int) -> dict[str, Any]:
    """The applicable part of Triton's model configuration; dims are those of one item."""
    return {
        "name": name,
        "platform": f"headroom_{engine}",
        "backend": engine,
        "max_batch_size": max_items,
        "input": [_configured(one.name, one.datatype, one.shape) for one in signature.inputs],
        "output": [_configured(one.name, one.datatype, one.shape) for one in signature.outputs],
        "dynamic_batching": {
            "preferred_batch_size": [*signature.batches],
            "max_queue_delay_microseconds": 0,
        },
    }


def _tensor(spec: TensorSpec) -> dict[str, Any]:
    return {"name": spec.name, "datatype": spec.datatype, "shape": [-1, *spec.shape]}


def _configured(name: str, datatype: str, dims: Sequence[int]) -> dict[str, Any]:
    kind = "STRING" if datatype == "BYTES" else datatype
    return {"name": name, "data_type": f"TYPE_{kind}", "dims": [*dims]}
