"""Compares the schema that an API server serves with this version's. Pure.

An API server drops unknown fields of spec and status silently, and refuses an object with a value
that its enumeration does not have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_Schema = Mapping[str, Any]


def served_schema(document: Any, kind: str) -> _Schema:
    """Find the schema of a kind in an OpenAPI v3 document; empty where it is not served.

    Raises ValueError for any other document.
    """
    try:
        schemas = document["components"]["schemas"].values()
        for schema in schemas:
            for named in schema.get("x-kubernetes-group-version-kind", ()):
                if named["kind"] == kind:
                    return dict(schema)
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"no OpenAPI document: {error!r}") from error
    return {}


def missing_fields(own: _Schema, served: _Schema) -> list[str]:
    """Return the outermost fields, and the values (`path=value`), that `served` does not have."""
    return list(_missing(own, served, ""))


def _missing(own: _Schema, served: _Schema, path: str) -> Iterator[str]:
    if served.get("x-kubernetes-preserve-unknown-fields"):
        return
    if "enum" in served:
        yield from (f"{path}={one}" for one in own.get("enum", ()) if one not in served["enum"])
    properties = served.get("properties") or {}
    for name, schema in (own.get("properties") or {}).items():
        inner = f"{path}.{name}" if path else name
        if name not in properties:
            if inner not in ("apiVersion", "kind", "metadata"):
                yield inner
            continue
        yield from _missing(schema, properties[name], inner)
    for key, suffix in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(own.get(key), Mapping) and isinstance(served.get(key), Mapping):
            yield from _missing(own[key], served[key], f"{path}{suffix}")
