"""Finds the fields of a manifest that the resource does not have. Pure.

The operator ignores them, because a newer version may have written them. In a manifest that someone
is writing they are misspelled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from headroom.api.schema.crd import custom_resource_definition
from headroom.api.schema.structural_schema import PRESERVE

_FREE = ("metadata",)
"""Described by Kubernetes, not by the resource."""


def unknown_fields(manifest: Mapping[str, Any]) -> list[str]:
    """Return one message for each field that the resource does not have."""
    (version,) = custom_resource_definition()["spec"]["versions"]
    described = {key: value for key, value in manifest.items() if key not in _FREE}
    return list(_unknown(described, version["schema"]["openAPIV3Schema"], ""))


def _unknown(value: object, schema: Mapping[str, Any], path: str) -> Iterator[str]:
    if schema.get(PRESERVE):
        return
    if isinstance(value, list):
        for number, entry in enumerate(value):
            yield from _unknown(entry, schema.get("items", {}), f"{path}[{number}]")
    if not isinstance(value, Mapping):
        return
    known, others = schema.get("properties", {}), schema.get("additionalProperties")
    for name, inner in value.items():
        at = f"{path}.{name}" if path else str(name)
        if name in known:
            yield from _unknown(inner, known[name], at)
        elif others is not None:
            yield from _unknown(inner, others, at)
        elif known:
            yield f"{at}: unknown field{_meant(str(name), known)}"


def _meant(name: str, known: Mapping[str, Any]) -> str:
    close = get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]}?" if close else f"; known are {', '.join(known)}"
