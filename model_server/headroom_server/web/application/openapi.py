"""The OpenAPI paths of loaded models, with their names and schemas."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from headroom_server.protocols.schemas import infer_examples, json_body
from headroom_server.runtime.served_model import ModelCodecs, ServedModel

Paths = dict[str, dict[str, Any]]


def paths_of(general: Paths, models: Iterable[ServedModel]) -> Paths:
    """Return every generic path for each loaded model; unchanged if none is loaded."""
    loaded = [(one, one.codecs) for one in models if one.codecs is not None]
    paths: Paths = {}
    for path, operations in general.items():
        if "{model}" not in path or not loaded:
            paths[path] = operations
            continue
        for one, codecs in loaded:
            named = path.replace("{model}", one.name).replace("{version}", one.version)
            paths[named] = {
                method: _written(operation, path, codecs)
                for method, operation in operations.items()
            }
    return paths


def _written(operation: dict[str, Any], path: str, codecs: ModelCodecs) -> dict[str, Any]:
    written = dict(operation)
    if path.endswith(":predict"):
        written |= json_body(codecs.typed.request_schema())
        written["responses"] = written["responses"] | {
            "200": _answer(operation, codecs.typed.answer_schema())
        }
    elif path.endswith("/infer"):
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        written |= json_body(schema | {"examples": infer_examples(codecs.contract.signature)})
    return written


def _answer(operation: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = operation["responses"]["200"]
    return answer | {"content": {"application/json": {"schema": schema}}}
