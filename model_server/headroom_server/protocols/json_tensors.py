"""The inputs of a request in any form that JSON allows: flat, nested, or bytes after it. Pure."""

from __future__ import annotations

import math
from typing import Any

from headroom_server.engine import Work
from headroom_server.errors import InvalidRequestError
from headroom_server.json_values import flatten, kind
from headroom_server.protocols.binary_tensors import from_bytes
from headroom_server.protocols.contract import Contract, Given
from headroom_server.protocols.json_fields import parameters_of
from headroom_server.tensors import TensorSpec
from headroom_server.typed_arrays import Numbers


def read(contract: Contract, tensors: list[dict[str, Any]], tail: bytes) -> Work:
    """Read tensors; `tail` are the bytes after the JSON.

    Raises:
        InvalidRequestError: with the field, the rule and what was found.
    """
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
    contract.signature.check_ranges(inputs)
    return Work(items, inputs, length)


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
    parameters = parameters_of(tensor, where)
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
