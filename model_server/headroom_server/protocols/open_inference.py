"""Open Inference Protocol v2 over HTTP: request bodies to work, outputs to bodies. Pure.

JSON tensors, and the binary data extension: after the JSON, whose length a header gives, come the
bytes of the inputs with a `binary_data_size`, in their order, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from headroom_server.datatypes import DATATYPES
from headroom_server.engine import Work
from headroom_server.errors import InvalidRequestError
from headroom_server.json_values import kind
from headroom_server.protocols.binary_tensors import to_bytes
from headroom_server.protocols.contract import Contract, Wanted
from headroom_server.protocols.json_fields import (
    flag_of,
    loaded,
    object_of,
    objects_of,
    parameters_of,
)
from headroom_server.protocols.json_tensors import read
from headroom_server.protocols.parameters import refuse_sequences, timeout_s
from headroom_server.tensors import TensorSpec
from headroom_server.typed_arrays import Numbers

MAX_ID_CHARACTERS = 1024

HEAD_LENGTH = "inference-header-content-length"
"""The header with the length of the JSON, if tensors follow it."""


class Inference(NamedTuple):
    """One request."""

    work: Work
    wanted: tuple[Wanted, ...]
    request_id: str | None
    timeout_s: float | None
    """The request's parameter `timeout`, which is in microseconds."""


class Body(NamedTuple):
    """A response body; the first `head_bytes` are JSON if tensors follow."""

    content: bytes
    head_bytes: int | None = None


def parse(contract: Contract, body: bytes, head_bytes: int | None = None) -> Inference:
    """Parse a request body whose first `head_bytes` are JSON; all of it if that is None.

    Raises:
        InvalidRequestError: with the field, the rule and what was found.
    """
    head, tail = (body, b"") if head_bytes is None else _split(body, head_bytes)
    request = object_of(loaded(head), "the body")
    tensors = request.get("inputs")
    work = None if tail else contract.flat.read(tensors)
    if work is None:
        work = read(contract, objects_of(tensors, "inputs"), tail)
    elif len(request) == 1:
        return Inference(work, contract.all_outputs[False], None, None)
    parameters = parameters_of(request, "parameters")
    refuse_sequences(parameters.get("sequence_id"))
    return Inference(
        work,
        _wanted(contract, request.get("outputs"), parameters),
        _request_id(request.get("id")),
        timeout_s(parameters.get("timeout")),
    )


def render(model: str, version: str, inference: Inference, outputs: Mapping[str, Numbers]) -> Body:
    """Render the response: flat JSON data, then the bytes of the outputs requested as binary."""
    items, length = inference.work.items, inference.work.length
    tensors: list[dict[str, Any]] = []
    tails: list[bytes] = []
    for spec, binary in inference.wanted:
        tensor: dict[str, Any] = {
            "name": spec.name,
            "shape": [items, *spec.sized(length)],
            "datatype": spec.datatype,
        }
        if binary:
            tails.append(to_bytes(outputs[spec.name]))
            tensor["parameters"] = {"binary_data_size": len(tails[-1])}
        else:
            tensor["data"] = json_values(spec, outputs[spec.name])
        tensors.append(tensor)
    answer: dict[str, Any] = {"model_name": model, "model_version": version, "outputs": tensors}
    if inference.request_id is not None:
        answer["id"] = inference.request_id
    head = orjson.dumps(answer)
    return Body(b"".join((head, *tails)), len(head)) if tails else Body(head)


def json_values(spec: TensorSpec, numbers: Numbers) -> list[Any]:
    """Return a tensor's elements as flat JSON values."""
    return DATATYPES[spec.datatype].values(numbers)


def _split(body: bytes, head_bytes: int) -> tuple[bytes, bytes]:
    if not 0 <= head_bytes <= len(body):
        raise InvalidRequestError(
            f"{HEAD_LENGTH} must be from 0 to the {len(body)} bytes of the body; got {head_bytes}"
        )
    return body[:head_bytes], body[head_bytes:]


def _wanted(contract: Contract, outputs: object, parameters: dict[str, Any]) -> tuple[Wanted, ...]:
    usual = flag_of(parameters, "binary_data_output", "parameters", default=False)
    if outputs is None or outputs == []:
        return contract.all_outputs[usual]
    wanted = []
    for index, output in enumerate(objects_of(outputs, "outputs")):
        where, name = f"outputs.{index}", output.get("name")
        if type(name) is not str:
            raise InvalidRequestError(f"{where}.name must be a string; got {kind(name)}")
        options = parameters_of(output, f"{where}.parameters")
        for unserved in ("classification", "shared_memory_region"):
            if options.get(unserved):
                raise InvalidRequestError(f"{where}.parameters.{unserved} is not supported")
        binary = flag_of(options, "binary_data", f"{where}.parameters", default=usual)
        wanted.append(Wanted(contract.output(name), binary))
    if len({spec.name for spec, _ in wanted}) < len(wanted):
        raise InvalidRequestError("outputs must be distinct; one is named twice")
    return tuple(wanted)


def _request_id(value: object) -> str | None:
    if value is None:
        return None
    if type(value) is not str or len(value) > MAX_ID_CHARACTERS:
        raise InvalidRequestError(f"id must be a string of at most {MAX_ID_CHARACTERS} characters")
    return value
