"""PURE. Open Inference Protocol v2 over HTTP: request bodies to work, outputs to bodies.

JSON tensors, and the binary data extension: after the JSON, whose length a header gives, come the
bytes of the inputs with a `binary_data_size`, in their order, and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from headroom_server.engine import Work
from headroom_server.errors import InvalidRequestError, NotJsonError
from headroom_server.protocols.binary_tensors import from_bytes, to_bytes
from headroom_server.protocols.contract import Contract, Given, Wanted
from headroom_server.tensors import DATATYPES, Numbers, TensorSpec, flatten, kind

MAX_ID_CHARACTERS = 1024
LONGEST_TIMEOUT_US = 86_400_000_000

HEAD_LENGTH = "inference-header-content-length"
"""The header with the length of the JSON, if tensors follow it."""


_NO_OPTIONS: dict[str, Any] = {}


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
    request = _object(_loaded(head), "the body")
    tensors = request.get("inputs")
    work = None if tail else contract.flat.read(tensors)
    if work is None:
        work = _read(contract, _objects(tensors, "inputs"), tail)
    elif len(request) == 1:
        return Inference(work, contract.all_outputs[False], None, None)
    parameters = _options(request, "parameters")
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


def _read(contract: Contract, tensors: list[dict[str, Any]], tail: bytes) -> Work:
    """Read tensors in any form; `tail` are the bytes after the JSON."""
    given = [_given(tensor, index) for index, tensor in enumerate(tensors)]
    items, length = contract.extent(given)
    inputs, at = {}, 0
    for tensor in tensors:
        name = tensor["name"]
        spec, size = contract.inputs[name], _binary_size(tensor, len(tail) - at)
        if size is None:
            inputs[name] = _numbers(spec, tensor)
        else:
            piece = tail[at : at + size]
            inputs[name] = from_bytes(spec, piece, math.prod(tensor["shape"]), f"inputs.{name}")
            at += size
    if at != len(tail):
        raise InvalidRequestError(
            "the binary_data_size of all inputs must sum to the bytes after the JSON, "
            f"{len(tail)}; got {at}"
        )
    return Work(items, inputs, length)


def _split(body: bytes, head_bytes: int) -> tuple[bytes, bytes]:
    if not 0 <= head_bytes <= len(body):
        raise InvalidRequestError(
            f"{HEAD_LENGTH} must be from 0 to the {len(body)} bytes of the body; got {head_bytes}"
        )
    return body[:head_bytes], body[head_bytes:]


def _loaded(text: bytes) -> object:
    try:
        value: object = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise NotJsonError(f"the body is not JSON: {error}") from error
    return value


def _object(value: object, where: str) -> dict[str, Any]:
    if type(value) is not dict:
        raise InvalidRequestError(f"{where} must be a JSON object; got {kind(value)}")
    return value


def _options(owner: dict[str, Any], where: str) -> dict[str, Any]:
    value = owner.get("parameters")
    return _NO_OPTIONS if value is None else _object(value, where)


def _objects(value: object, where: str) -> list[dict[str, Any]]:
    if type(value) is not list:
        raise InvalidRequestError(f"{where} must be a list of objects; got {kind(value)}")
    for index, one in enumerate(value):
        if type(one) is not dict:
            raise InvalidRequestError(f"{where}.{index} must be a JSON object; got {kind(one)}")
    return value


def _given(tensor: dict[str, Any], index: int) -> Given:
    name, datatype, shape = tensor.get("name"), tensor.get("datatype"), tensor.get("shape")
    if type(name) is not str or type(datatype) is not str:
        field, value = ("datatype", datatype) if type(name) is str else ("name", name)
        raise InvalidRequestError(f"inputs.{index}.{field} must be a string; got {kind(value)}")
    # True == 1 and 1.0 == 1: comparing the shapes would accept them
    if type(shape) is not list or {*map(type, shape)} - {int}:
        raise InvalidRequestError(f"inputs.{index}.shape must be a list of integers")
    return Given(name, datatype, shape)


def _binary_size(tensor: dict[str, Any], left: int) -> int | None:
    if "parameters" not in tensor:
        return None
    where = f"inputs.{tensor['name']}.parameters"
    parameters = _options(tensor, where)
    size = parameters.get("binary_data_size")
    if "shared_memory_region" in parameters:
        raise InvalidRequestError(f"{where}: shared memory is not supported; send the data")
    if size is None:
        return None
    if "data" in tensor:
        raise InvalidRequestError(f"{where} must have binary_data_size or data; got both")
    if type(size) is not int or not 0 <= size <= left:
        raise InvalidRequestError(
            f"{where}.binary_data_size must be from 0 to the {left} remaining bytes; got "
            f"{size!s:.40}"
        )
    return size


def _numbers(spec: TensorSpec, tensor: dict[str, Any]) -> Numbers:
    data, shape, where = tensor.get("data"), tensor["shape"], f"inputs.{spec.name}.data"
    if type(data) is not list:
        raise InvalidRequestError(f"{where} must be a list, flat or nested; got {kind(data)}")
    if data and type(data[0]) is list:
        data = flatten(data, shape, where)
    elif len(data) != math.prod(shape):
        raise InvalidRequestError(
            f"{where} must have {math.prod(shape)} elements for shape {shape}; got {len(data)}"
        )
    return spec.numbers(data, where)


def _wanted(contract: Contract, outputs: object, parameters: dict[str, Any]) -> tuple[Wanted, ...]:
    usual = _flag(parameters, "binary_data_output", "parameters", default=False)
    if outputs is None or outputs == []:
        return contract.all_outputs[usual]
    wanted = []
    for index, output in enumerate(_objects(outputs, "outputs")):
        where, name = f"outputs.{index}", output.get("name")
        if type(name) is not str:
            raise InvalidRequestError(f"{where}.name must be a string; got {kind(name)}")
        options = _options(output, f"{where}.parameters")
        for unserved in ("classification", "shared_memory_region"):
            if options.get(unserved):
                raise InvalidRequestError(f"{where}.parameters.{unserved} is not supported")
        binary = _flag(options, "binary_data", f"{where}.parameters", default=usual)
        wanted.append(Wanted(contract.output(name), binary))
    if len({spec.name for spec, _ in wanted}) < len(wanted):
        raise InvalidRequestError("outputs must be distinct; one is named twice")
    return tuple(wanted)


def _flag(options: dict[str, Any], name: str, where: str, *, default: bool) -> bool:
    value = options.get(name, default)
    if type(value) is not bool:
        raise InvalidRequestError(f"{where}.{name} must be true or false; got {kind(value)}")
    return value


def _request_id(value: object) -> str | None:
    if value is None:
        return None
    if type(value) is not str or len(value) > MAX_ID_CHARACTERS:
        raise InvalidRequestError(f"id must be a string of at most {MAX_ID_CHARACTERS} characters")
    return value


def timeout_s(microseconds: object) -> float | None:
    """Return a request's parameter `timeout` in seconds; None if it has none, or 0."""
    if microseconds is None or microseconds == 0:
        return None
    if type(microseconds) is not int or not 0 < microseconds <= LONGEST_TIMEOUT_US:
        raise InvalidRequestError(
            f"parameters.timeout must be microseconds from 0 (none) to {LONGEST_TIMEOUT_US}; got "
            f"{microseconds!s:.40}"
        )
    return microseconds / 1e6


def refuse_sequences(sequence_id: object) -> None:
    """Refuse a request of a sequence: it would be answered as if none had come before it.

    0 and "" are Triton's values for no sequence.

    Raises:
        InvalidRequestError: it belongs to one.
    """
    if sequence_id:
        raise InvalidRequestError(
            "parameters.sequence_id must be absent or 0: models keep no state between requests; "
            f"got {sequence_id!s:.40}"
        )
