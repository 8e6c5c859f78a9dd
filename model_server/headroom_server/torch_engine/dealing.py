"""Splits the results of a batch by request."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from headroom_server.datatypes import DATATYPES, STRINGS
from headroom_server.engine import Work
from headroom_server.errors import InvalidRequestError
from headroom_server.json_values import flatten, kind
from headroom_server.tensors import DYNAMIC, TensorSpec
from headroom_server.torch_engine.dtypes import DTYPES
from headroom_server.typed_arrays import Numbers


def deal(
    spec: TensorSpec,
    result: Mapping[str, Any],
    batch: Sequence[Work],
    *,
    rows: int,
    length: int,
) -> list[Numbers]:
    """Split one output by request, each cut to the request's own length.

    Raises:
        ValueError: the output is missing, or has another shape than declared.
    """
    if not isinstance(result, Mapping):
        raise ValueError(f"postprocess must return a dict by name; got {type(result).__name__}")
    if spec.name not in result:
        raise ValueError(f"the model must return its output {spec.name!r}; got {sorted(result)}")
    if spec.is_strings:
        return _dealt_strings(spec, result[spec.name], batch, rows)
    found = result[spec.name]
    if not isinstance(found, torch.Tensor):
        raise ValueError(f"output {spec.name} must be a torch.Tensor; got {type(found).__name__}")
    tensor = found.to("cpu", DTYPES[spec.datatype])
    wanted = (rows, *spec.sized(length))
    if tuple(tensor.shape) != wanted:
        raise ValueError(f"output {spec.name} must have shape {wanted}; got {tuple(tensor.shape)}")
    typecode = DATATYPES[spec.datatype].typecode
    if spec.dynamic:
        return _cut(tensor, spec, batch, typecode)
    numbers = _bytes(tensor)
    at = 0
    dealt: list[Numbers] = []
    width = spec.elements * tensor.dtype.itemsize
    for work in batch:
        one: Numbers = array(typecode)
        one.frombytes(numbers[at : at + work.items * width])
        at += work.items * width
        dealt.append(one)
    return dealt


def _dealt_strings(
    spec: TensorSpec, result: object, batch: Sequence[Work], rows: int
) -> list[Numbers]:
    try:
        flat = flatten(result, (rows, *spec.shape), f"output {spec.name}")
    except InvalidRequestError as error:
        raise ValueError(error.message) from error
    for one in flat:
        if not isinstance(one, str | bytes):
            raise ValueError(f"output {spec.name}: BYTES must be str or bytes; got {kind(one)}")
    at = 0
    dealt: list[Numbers] = []
    for work in batch:
        end = at + work.items * spec.elements
        dealt.append(STRINGS.packed(flat[at:end]))
        at = end
    return dealt


def _bytes(tensor: torch.Tensor) -> memoryview:
    # as bytes, because numpy has no BF16
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data


def _cut(
    tensor: torch.Tensor, spec: TensorSpec, batch: Sequence[Work], typecode: str
) -> list[Numbers]:
    axis, at = 1 + spec.shape.index(DYNAMIC), 0
    dealt: list[Numbers] = []
    for work in batch:
        rows = tensor[at : at + work.items].narrow(axis, 0, work.length)
        dealt.append(array(typecode, bytes(_bytes(rows))))
        at += work.items
    return dealt
