"""Request and response bodies as pydantic models, for /docs."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, StrictStr, TypeAdapter

from headroom_server.datatypes import DATATYPES
from headroom_server.signature import Signature

MAX_EXAMPLE_ELEMENTS = 64

Strict = ConfigDict(strict=True, frozen=True, protected_namespaces=())


class PredictRequest(BaseModel):
    """Typed JSON: one element per item."""

    model_config = Strict | ConfigDict(
        json_schema_extra={"examples": [{"instances": [[1.0, 2.0, 3.0, 4.0]]}]}
    )

    instances: list[Any] = Field(
        min_length=1,
        description="Per item: the model's input as nested lists, or an object of inputs by name.",
    )


class PredictResponse(BaseModel):
    """One prediction per instance, in order."""

    predictions: list[Any]


class InputTensor(BaseModel):
    """An input of the Open Inference Protocol v2."""

    model_config = Strict

    name: StrictStr
    shape: list[int] = Field(min_length=1, description="The batch dimension comes first.")
    datatype: StrictStr
    data: list[Any] | None = Field(None, description="Flat, or nested according to the shape.")
    parameters: dict[str, Any] | None = Field(
        None,
        description="`binary_data_size`: bytes of this input after the JSON, instead of `data`.",
    )


class RequestedOutput(BaseModel):
    """An output that the client requests."""

    model_config = Strict

    name: StrictStr
    parameters: dict[str, Any] | None = Field(
        None, description="`binary_data`: return bytes after the JSON."
    )


class InferRequest(BaseModel):
    """A request of the Open Inference Protocol v2, JSON tensors."""

    model_config = Strict | ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "1",
                    "inputs": [
                        {"name": "x", "shape": [1, 4], "datatype": "FP64", "data": [1, 2, 3, 4]}
                    ],
                }
            ]
        }
    )

    id: StrictStr | None = Field(None, max_length=1024)
    inputs: list[InputTensor] = Field(min_length=1)
    outputs: list[RequestedOutput] | None = None
    parameters: dict[str, Any] | None = Field(
        None, description="`timeout`: microseconds. `binary_data_output`: for all outputs."
    )


class OutputTensor(BaseModel):
    """An output of the Open Inference Protocol v2."""

    name: str
    shape: list[int]
    datatype: str
    data: list[Any] | None = None
    parameters: dict[str, Any] | None = None


class InferResponse(BaseModel):
    """A response of the Open Inference Protocol v2."""

    model_config = ConfigDict(protected_namespaces=())

    model_name: str
    model_version: str
    id: str | None = None
    outputs: list[OutputTensor]


class ErrorBody(BaseModel):
    """The error, with field and rule."""

    error: str


def infer_examples(signature: Signature) -> list[dict[str, Any]]:
    """Return one item of zeros for this signature, unless that is too long to read."""
    length = signature.lengths[0] if signature.lengths else 0
    if sum(spec.elements_at(length) for spec in signature.inputs) > MAX_EXAMPLE_ELEMENTS:
        return []
    return [
        {
            "inputs": [
                {
                    "name": spec.name,
                    "shape": [1, *spec.sized(length)],
                    "datatype": spec.datatype,
                    "data": DATATYPES[spec.datatype].values(spec.zeros(1, length)),
                }
                for spec in signature.inputs
            ]
        }
    ]


def openapi_body(schema: type[BaseModel]) -> dict[str, Any]:
    """Return an OpenAPI request body, with nested definitions inlined."""
    return json_body(inlined(TypeAdapter(schema).json_schema()))


def json_body(schema: dict[str, Any]) -> dict[str, Any]:
    """Return an OpenAPI request body of this schema."""
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def inlined(schema: dict[str, Any]) -> dict[str, Any]:
    """Inline the definitions of a JSON schema."""
    definitions = schema.get("$defs", {})

    def written(node: Any) -> Any:
        if isinstance(node, dict):
            if "$ref" in node:
                return written(definitions[node["$ref"].rpartition("/")[2]])
            return {key: written(value) for key, value in node.items() if key != "$defs"}
        return [written(value) for value in node] if isinstance(node, list) else node

    plain: dict[str, Any] = written(schema)
    return plain
