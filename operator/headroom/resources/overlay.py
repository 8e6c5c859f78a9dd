"""Merges a user's overlay into a generated manifest.

Maps merge. Lists whose entries have distinct names (containers, volumes, env, ports) merge by name,
volume mounts by mountPath: entries with the same name merge, others are appended in order. Other
lists are replaced. An explicit null removes. If the types differ, the user's value wins and the API
server reports what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def lay_over(generated: Any, overlay: Any, field: str = "") -> Any:
    """Merge `overlay` into `generated`, both values of `field`; the arguments are not changed.

    A null removes, so the result has none.
    """
    if isinstance(generated, Mapping) and isinstance(overlay, Mapping):
        return _maps(generated, overlay)
    key = _merge_key(field, generated)
    if key and _merge_key(field, overlay):
        return _lists(generated, overlay, key)
    return _without_nulls(overlay)


def _merge_key(field: str, value: Any) -> str | None:
    """Return the property that identifies the entries of a list; None if there is none."""
    key = "mountPath" if field == "volumeMounts" else "name"
    if not isinstance(value, list):
        return None
    names = [entry.get(key) if isinstance(entry, Mapping) else None for entry in value]
    named = all(isinstance(name, str) for name in names)
    return key if named and len(set(names)) == len(names) else None


def _maps(generated: Mapping[str, Any], overlay: Mapping[str, Any]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for name in [*generated, *(k for k in overlay if k not in generated)]:
        if name not in overlay:
            merged[name] = _without_nulls(generated[name])
        elif overlay[name] is not None:
            merged[name] = lay_over(generated.get(name), overlay[name], name)
    return merged


def _lists(generated: list[Any], overlay: list[Any], key: str) -> list[Any]:
    theirs = {entry[key]: entry for entry in overlay}
    ours = {entry[key] for entry in generated}
    merged = [lay_over(entry, theirs.get(entry[key], {})) for entry in generated]
    return merged + [_without_nulls(entry) for name, entry in theirs.items() if name not in ours]


def _without_nulls(value: Any) -> Any:
    """Copy a value without nulls."""
    if isinstance(value, Mapping):
        return {k: _without_nulls(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [_without_nulls(entry) for entry in value]
    return value
