"""Warm-up samples of a description, as work for the device. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from headroom_server.engine import LoadError, Work
from headroom_server.errors import InvalidRequestError
from headroom_server.json_values import flatten
from headroom_server.repository.tables import Sample
from headroom_server.signature import Signature
from headroom_server.tensors import DYNAMIC, TensorSpec
from headroom_server.typed_arrays import Numbers


def works(samples: Sequence[Sample], signature: Signature) -> list[Work]:
    """Return one request with one item per sample.

    Raises:
        LoadError: with sample and input, the rule, and what was found.
    """
    return [_work(sample, signature, f"warm_up[{i}]") for i, sample in enumerate(samples)]


def _work(sample: Sample, signature: Signature, where: str) -> Work:
    names = {spec.name for spec in signature.inputs}
    if sample.inputs.keys() != names:
        raise LoadError(
            f"{where}.inputs must be exactly {sorted(names)}; got {sorted(sample.inputs)}"
        )
    lengths = {
        _length(sample.inputs[spec.name], spec, f"{where}.inputs.{spec.name}")
        for spec in signature.inputs
        if spec.dynamic
    }
    if len(lengths) > 1:
        raise LoadError(f"{where}.inputs must have one length; got {sorted(lengths)}")
    length = next(iter(lengths), 0)
    if lengths and not 1 <= length <= signature.lengths[-1]:
        raise LoadError(
            f"{where}.inputs must have a length from 1 to {signature.lengths[-1]}; got {length}"
        )
    numbers = {
        spec.name: _numbers(sample.inputs[spec.name], spec, length, f"{where}.inputs.{spec.name}")
        for spec in signature.inputs
    }
    try:
        signature.check_ranges(numbers)
    except InvalidRequestError as error:
        raise LoadError(f"{where}.{error.message}") from error
    return Work(1, numbers, length)


def _length(data: object, spec: TensorSpec, where: str) -> int:
    """Return the sample's size along the dynamic axis, taken from first elements."""
    for _ in range(spec.shape.index(DYNAMIC)):
        data = data[0] if isinstance(data, list) and data else None
    if not isinstance(data, list):
        raise LoadError(f"{where} must be nested lists of shape {list(spec.shape)}")
    return len(data)


def _numbers(data: object, spec: TensorSpec, length: int, where: str) -> Numbers:
    try:
        return spec.numbers(flatten(data, spec.sized(length), where), where)
    except InvalidRequestError as error:
        raise LoadError(error.message) from error
