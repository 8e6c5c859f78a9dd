"""Typed JSON: bodies validated in one pass by pydantic schemas derived from the model. Pure.

    {"instances": [<item>, ...]}  ->  {"predictions": [<item>, ...]}

An item is an object of inputs by name or, if the model has one input, its plain value; a prediction
is likewise an object of outputs by name, or the plain value of the only output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Annotated, Any

import orjson
from pydantic import ConfigDict, FailFast, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from headroom_server.datatypes import DATATYPES
from headroom_server.engine import Work
from headroom_server.errors import InvalidRequestError, NotJsonError, RequestError, TooWideError
from headroom_server.json_values import kind, nest
from headroom_server.protocols.contract import Contract
from headroom_server.protocols.open_inference import json_values
from headroom_server.protocols.schemas import inlined
from headroom_server.rule_words import items_of, rule_of
from headroom_server.tensors import DYNAMIC, TensorSpec
from headroom_server.typed_arrays import Numbers

_TYPED_DICT: Any = TypedDict
"""Called with fields that are known only after the model is loaded; type checkers reject that."""


class TypedJsonCodec:
    """Parses requests to one model and renders the responses."""

    def __init__(self, contract: Contract) -> None:
        inputs, outputs = contract.signature.inputs, contract.signature.outputs
        named = _named("Instance", inputs, contract.max_length)
        plain = _value(inputs[0], contract.max_length) if len(inputs) == 1 else None
        prediction = _named("Prediction", outputs, contract.max_length)
        if len(outputs) == 1:
            prediction = _value(outputs[0], contract.max_length)
        self._contract = contract
        self._named = _adapter("instances", named, contract.max_items)
        self._plain = plain and _adapter("instances", plain, contract.max_items)
        self._answer = _adapter("predictions", prediction, contract.max_items)

    def request_schema(self) -> dict[str, Any]:
        """Return the JSON schema of a request body."""
        schema = inlined(self._named.json_schema())
        if self._plain is not None:
            plain = inlined(self._plain.json_schema())
            either = [one["properties"]["instances"] for one in (plain, schema)]
            schema["properties"] = {"instances": {"anyOf": either}}
        return schema

    def answer_schema(self) -> dict[str, Any]:
        """Return the JSON schema of a response body."""
        return inlined(self._answer.json_schema())

    def parse(self, body: bytes) -> Work:
        """Parse a request body.

        Raises:
            InvalidRequestError: with the field, the rule and what was found.
        """
        specs = self._contract.signature.inputs
        instances = self._validated(body)
        if isinstance(instances[0], dict):
            columns = {spec.name: [one[spec.name] for one in instances] for spec in specs}
        else:
            columns = {specs[0].name: instances}
        length = _length(specs, columns) if self._contract.max_length else 0
        inputs = {spec.name: _numbers(spec, columns[spec.name], length) for spec in specs}
        self._contract.signature.check_ranges(inputs)
        return Work(len(instances), inputs, length)

    def render(self, work: Work, outputs: Mapping[str, Numbers]) -> bytes:
        """Render the response body."""
        specs = self._contract.signature.outputs
        columns = {spec.name: _rows(spec, work, outputs[spec.name]) for spec in specs}
        if len(columns) == 1:
            (predictions,) = columns.values()
        else:
            predictions = [
                dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
            ]
        return orjson.dumps({"predictions": predictions})

    def _validated(self, body: bytes) -> list[Any]:
        try:
            return _instances(self._plain or self._named, body)
        except ValidationError as error:
            if self._plain is None or not _has_objects(body):
                raise _request_error(error) from error
        try:
            return _instances(self._named, body)
        except ValidationError as error:
            raise _request_error(error) from error


def _instances(adapter: TypeAdapter[Any], body: bytes) -> list[Any]:
    instances: list[Any] = adapter.validate_json(body, strict=True)["instances"]
    return instances


def _has_objects(body: bytes) -> bool:
    try:
        return isinstance(orjson.loads(body)["instances"][0], dict)
    except (orjson.JSONDecodeError, TypeError, LookupError):
        return False


def _request_error(error: ValidationError) -> RequestError:
    problem = error.errors(include_url=False)[0]
    field, rule = ".".join(map(str, problem["loc"])), rule_of(problem)
    if problem["type"] == "json_invalid":
        return NotJsonError(f"the body is not JSON: {rule}")
    if problem["type"] == "too_long" and field == "instances":
        return TooWideError(
            f"instances must be at most {problem['ctx']['max_length']} items, the largest "
            "batch; got "
            f"{problem['ctx']['actual_length']}"
        )
    got = items_of(problem) or kind(problem["input"])
    return InvalidRequestError(f"{field or 'the body'}: {rule}; got {got}"[:200])


def _number(datatype: str) -> object:
    kind = DATATYPES[datatype]
    for plain in (bool, str):
        if plain in kind.kinds:
            return plain
    if datatype == "FP64":
        # JSON's own numbers: any that rounds to a finite one fits, also those above the largest.
        return Annotated[float, Field(allow_inf_nan=False)]
    if float in kind.kinds:
        return Annotated[float, Field(ge=kind.lowest, le=kind.highest, allow_inf_nan=False)]
    return Annotated[int, Field(ge=int(kind.lowest), le=int(kind.highest))]


def _value(spec: TensorSpec, longest: int) -> Any:
    """Return the type of one item of a tensor: nested lists of its numbers."""
    value: Any = _number(spec.datatype)
    for size in reversed(spec.shape):
        bounds = (1, longest) if size == DYNAMIC else (size, size)
        value = Annotated[
            list[value], Field(min_length=bounds[0], max_length=bounds[1]), FailFast()
        ]
    return value


def _named(name: str, specs: Sequence[TensorSpec], longest: int) -> Any:
    fields = {spec.name: _value(spec, longest) for spec in specs}
    made = _TYPED_DICT(name, fields)
    made.__pydantic_config__ = ConfigDict(extra="forbid")
    return made


def _adapter(field: str, item: Any, max_items: int) -> TypeAdapter[Any]:
    items = Annotated[list[item], Field(min_length=1, max_length=max_items), FailFast()]
    return TypeAdapter(_TYPED_DICT(field.title(), {field: items}))


def _length(specs: Sequence[TensorSpec], columns: Mapping[str, Sequence[Any]]) -> int:
    first = next(spec for spec in specs if spec.dynamic)
    level = columns[first.name][0]
    for _ in range(first.shape.index(DYNAMIC)):
        level = level[0]
    return len(level)


def _numbers(spec: TensorSpec, rows: Sequence[Any], length: int) -> Numbers:
    # The schema has checked everything except that all lists along the dynamic dimension are equal.
    level: Sequence[Any] = rows
    for size in spec.shape:
        if size == DYNAMIC and any(len(one) != length for one in level):
            found = next(len(one) for one in level if len(one) != length)
            raise InvalidRequestError(
                f"instances must all have one length, here {length}; {spec.name} has one of {found}"
            )
        level = list(chain.from_iterable(level))
    return DATATYPES[spec.datatype].packed(level)


def _rows(spec: TensorSpec, work: Work, numbers: Numbers) -> list[Any]:
    rows = nest(json_values(spec, numbers), (work.items, *spec.sized(work.length)))
    assert isinstance(rows, list)
    return rows
