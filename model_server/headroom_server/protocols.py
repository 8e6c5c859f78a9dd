"""PURE. Bodies of the two protocols to the numbers of a request, and outputs back to bodies.

A request of n items is one entry of the queue and takes n rows of a batch; it is never split.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import orjson
from pydantic import BaseModel, ValidationError

from headroom_server.engine import Work
from headroom_server.errors import InvalidRequestError, NotJsonError, TooWideError
from headroom_server.schemas import InferRequest, InputTensor, PredictRequest
from headroom_server.tensors import DATATYPES, Numbers, Signature, TensorSpec, flatten, nest

VERSION = "1"

M = TypeVar("M", bound=BaseModel)


def parse_predict(body: bytes, signature: Signature, max_items: int) -> Work:
    """A typed JSON body.

    Raises:
        InvalidRequestError: naming the field, the rule and what was found.
    """
    instances = _parse(PredictRequest, body).instances
    items = _items(len(instances), max_items, "instances")
    specs = signature.inputs
    if len(specs) == 1 and not isinstance(instances[0], dict):
        return Work(items, {specs[0].name: _column(instances, specs[0], "instances")})
    names = {spec.name for spec in specs}
    for index, instance in enumerate(instances):
        if not isinstance(instance, dict) or instance.keys() != names:
            raise InvalidRequestError(
                f"instances[{index}]: an object with exactly the inputs {sorted(names)}"
            )
    return Work(
        items,
        {
            spec.name: _column(
                [one[spec.name] for one in instances], spec, f"instances.{spec.name}"
            )
            for spec in specs
        },
    )


def render_predict(signature: Signature, items: int, outputs: Mapping[str, Numbers]) -> bytes:
    """The typed JSON answer: plain values where the model has one output, else objects by name."""
    columns = {spec.name: _rows(spec, items, outputs[spec.name]) for spec in signature.outputs}
    if len(columns) == 1:
        (predictions,) = columns.values()
    else:
        predictions = [
            dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
        ]
    return orjson.dumps({"predictions": predictions})


def parse_infer(
    body: bytes, signature: Signature, max_items: int
) -> tuple[Work, str | None, tuple[str, ...]]:
    """An Open Inference Protocol v2 body: the work, the client's id, and the outputs it asks for.

    Raises:
        InvalidRequestError: naming the field, the rule and what was found.
    """
    request = _parse(InferRequest, body)
    declared = {spec.name: spec for spec in signature.inputs}
    given = [tensor.name for tensor in request.inputs]
    if sorted(given) != sorted(declared):
        raise InvalidRequestError(f"inputs: exactly {sorted(declared)}; got {sorted(given)!s:.100}")
    items = _items(request.inputs[0].shape[0], max_items, f"inputs.{given[0]}.shape")
    inputs = {t.name: _tensor(t, declared[t.name], items) for t in request.inputs}
    offered = tuple(spec.name for spec in signature.outputs)
    wanted = tuple(one.name for one in request.outputs or ()) or offered
    for name in wanted:
        if name not in offered:
            raise InvalidRequestError(f"outputs: some of {list(offered)}; got {name!r:.100}")
    return Work(items, inputs), request.id, wanted


def render_infer(
    model: str,
    signature: Signature,
    items: int,
    outputs: Mapping[str, Numbers],
    *,
    request_id: str | None,
    wanted: tuple[str, ...],
) -> bytes:
    """The Open Inference Protocol v2 answer, data flat."""
    tensors = [
        {
            "name": spec.name,
            "shape": [items, *spec.shape],
            "datatype": spec.datatype,
            "data": _values(spec, outputs[spec.name]),
        }
        for spec in signature.outputs
        if spec.name in wanted
    ]
    answer: dict[str, Any] = {"model_name": model, "model_version": VERSION, "outputs": tensors}
    if request_id is not None:
        answer["id"] = request_id
    return orjson.dumps(answer)


def describe(spec: TensorSpec) -> dict[str, object]:
    """A declared tensor in model metadata; -1 is the batch dimension."""
    return {"name": spec.name, "datatype": spec.datatype, "shape": [-1, *spec.shape]}


def _parse(schema: type[M], body: bytes) -> M:
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise NotJsonError(f"the body is not JSON: {error}") from error
    try:
        return schema.model_validate(value)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False, include_context=False)[0]
        if not problem["loc"]:
            raise InvalidRequestError("the body: a JSON object") from error
        field = ".".join(map(str, problem["loc"]))
        raise InvalidRequestError(f"{field}: {problem['msg']}") from error


def _items(items: int, max_items: int, where: str) -> int:
    if items > max_items:
        raise TooWideError(f"{where}: at most {max_items} items, the largest batch; got {items}")
    if items < 1:
        raise InvalidRequestError(f"{where}: at least 1 item; got {items}")
    return items


def _column(rows: list[Any], spec: TensorSpec, where: str) -> Numbers:
    return spec.numbers(flatten(rows, (len(rows), *spec.shape), where), where)


def _tensor(tensor: InputTensor, spec: TensorSpec, items: int) -> Numbers:
    where = f"inputs.{spec.name}"
    shape = [items, *spec.shape]
    if tensor.datatype != spec.datatype:
        raise InvalidRequestError(
            f"{where}.datatype: {spec.datatype}; got {tensor.datatype!r:.100}"
        )
    if tensor.shape != shape:
        raise InvalidRequestError(f"{where}.shape: {shape}; got {tensor.shape!s:.100}")
    data, where = tensor.data, f"{where}.data"
    if data and isinstance(data[0], list):
        return spec.numbers(flatten(data, shape, where), where)
    if len(data) != items * spec.elements:
        raise InvalidRequestError(
            f"{where}: {items * spec.elements} elements for shape {shape}; got {len(data)}"
        )
    return spec.numbers(data, where)


def _values(spec: TensorSpec, numbers: Numbers) -> list[Any]:
    if bool in DATATYPES[spec.datatype].kinds:
        return [value != 0 for value in numbers]
    return numbers.tolist()


def _rows(spec: TensorSpec, items: int, numbers: Numbers) -> list[Any]:
    rows = nest(_values(spec, numbers), (items, *spec.shape))
    assert isinstance(rows, list)
    return rows
