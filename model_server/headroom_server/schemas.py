"""The bodies that the server takes and gives, as pydantic models; shown in /docs."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, StrictStr, TypeAdapter

Strict = ConfigDict(strict=True, frozen=True, protected_namespaces=())


class PredictRequest(BaseModel):
    """Typed JSON: one element per item."""

    model_config = Strict | ConfigDict(
        json_schema_extra={"examples": [{"instances": [[1.0, 2.0, 3.0, 4.0]]}]}
    )

    instances: list[Any] = Field(
        min_length=1,
        description="Per item: the model's input as nested lists, or an object of input names.",
    )


class PredictResponse(BaseModel):
    """One prediction per instance, in order."""

    predictions: list[Any]


class InputTensor(BaseModel):
    """An input of the Open Inference Protocol v2."""

    model_config = Strict

    name: StrictStr
    shape: list[int] = Field(min_length=1, description="The batch dimension stands first.")
    datatype: StrictStr
    data: list[Any] = Field(description="Flat, or nested as the shape says.")


class RequestedOutput(BaseModel):
    """An output that the client asks for."""

    model_config = Strict

    name: StrictStr


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


class OutputTensor(BaseModel):
    """An output of the Open Inference Protocol v2."""

    name: str
    shape: list[int]
    datatype: str
    data: list[Any]


class InferResponse(BaseModel):
    """An answer of the Open Inference Protocol v2."""

    model_config = ConfigDict(protected_namespaces=())

    model_name: str
    model_version: str
    id: str | None = None
    outputs: list[OutputTensor]


class ErrorBody(BaseModel):
    """What went wrong, naming field and rule."""

    error: str


def openapi_body(schema: type[BaseModel]) -> dict[str, Any]:
    """A request body for OpenAPI, its nested definitions written in place."""
    document = TypeAdapter(schema).json_schema()
    definitions = document.pop("$defs", {})
    return {
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": _inlined(document, definitions)}},
        }
    }


def _inlined(node: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(node, dict):
        if "$ref" in node:
            return _inlined(definitions[node["$ref"].rpartition("/")[2]], definitions)
        return {key: _inlined(value, definitions) for key, value in node.items()}
    return [_inlined(value, definitions) for value in node] if isinstance(node, list) else node
