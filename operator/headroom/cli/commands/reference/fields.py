"""Turns the schema of the resource into rows: field, type, default, meaning. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from headroom.api.durations import PATTERN as DURATION

Schema = Mapping[str, Any]

_RULES = "x-kubernetes-validations"
_OPEN = "x-kubernetes-preserve-unknown-fields"
_LONGEST_DEFAULT = 40


class Field(NamedTuple):
    """One row."""

    path: str
    """Dotted from the top of the object; `[]` is each item, `{}` each value."""
    kind: str
    default: str
    """Default as JSON; `required` if the field must be set."""
    meaning: str


def fields_of(schema: Schema, path: str) -> Iterator[Field]:
    """Yield every field below a structural schema, parents before children.

    An object without its own schema (a Kubernetes type) is one row.
    """
    required = set(schema.get("required", ()))
    for name, part in schema.get("properties", {}).items():
        yield from _field(part, f"{path}.{name}", required=name in required)


def rules_of(schema: Schema, path: str) -> Iterator[tuple[str, str]]:
    """Yield every rule across fields as (path of the field, text of the rule)."""
    for rule in schema.get(_RULES, ()):
        yield path + rule.get("fieldPath", ""), rule["message"]
    for name, part in schema.get("properties", {}).items():
        yield from rules_of(part, f"{path}.{name}")
    for suffix, part in _inner(schema):
        yield from rules_of(part, path + suffix)


def _field(schema: Schema, path: str, *, required: bool) -> Iterator[Field]:
    yield Field(path, _kind(schema), _default(schema, required), schema.get("description", ""))
    yield from fields_of(schema, path)
    for suffix, part in _inner(schema):
        yield from fields_of(part, path + suffix)


def _inner(schema: Schema) -> Iterator[tuple[str, Schema]]:
    """Yield the schema of the items of a list or of the values of a map."""
    if "items" in schema:
        yield "[]", schema["items"]
    if isinstance(schema.get("additionalProperties"), Mapping):
        yield "{}", schema["additionalProperties"]


def _kind(schema: Schema) -> str:
    if "enum" in schema:
        return " or ".join(str(value) for value in schema["enum"])
    if any(DURATION in rule["rule"] for rule in schema.get(_RULES, ())):
        return "duration"
    name = str(schema.get("type", "integer or string"))
    if name == "array":
        return f"list of {_kind(schema['items'])}"
    if isinstance(schema.get("additionalProperties"), Mapping):
        return f"map of {_kind(schema['additionalProperties'])}"
    if name == "object" and schema.get(_OPEN):
        return "any object"
    return name


def _default(schema: Schema, required: bool) -> str:
    if "default" not in schema:
        return "required" if required else ""
    text = json.dumps(schema["default"])
    return text if len(text) <= _LONGEST_DEFAULT else "see its fields"
