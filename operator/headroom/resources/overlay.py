"""Lays what a user wrote over what was generated.

Maps merge. Lists whose entries all carry a name (containers, volumes, env, ports) merge by it:
entries of the same name merge, others are appended in their order. So do volume mounts, by
mountPath, and tolerations and image pull secrets follow the rule for other lists: the user's
replaces the generated one. An explicit null removes. Where the two sides have different shapes the
user's stands, and the API server says what is wrong with it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

_KEYS = {"volumeMounts": "mountPath"}


def lay_over(generated: Any, overlay: Any, *, key: str = "name") -> Any:
    """Merge `overlay` into `generated` and give back a new value; neither argument is changed."""
    if isinstance(generated, Mapping) and isinstance(overlay, Mapping):
        return _maps(generated, overlay)
    if _keyed(generated, key) and _keyed(overlay, key):
        return _lists(generated, overlay, key)
    return _without_nulls(overlay)


def _maps(generated: Mapping[str, Any], overlay: Mapping[str, Any]) -> dict[str, Any]:
    merged = {k: copy.deepcopy(v) for k, v in generated.items() if k not in overlay}
    result: dict[str, Any] = {}
    for name in [*generated, *(k for k in overlay if k not in generated)]:
        if name in merged:
            result[name] = merged[name]
        elif overlay[name] is not None:
            result[name] = lay_over(generated.get(name), overlay[name], key=_KEYS.get(name, "name"))
    return result


def _lists(generated: list[Any], overlay: list[Any], key: str) -> list[Any]:
    theirs = {entry[key]: entry for entry in overlay}
    ours = {entry[key] for entry in generated}
    merged = [
        lay_over(entry, theirs[entry[key]]) if entry[key] in theirs else copy.deepcopy(entry)
        for entry in generated
    ]
    return merged + [_without_nulls(entry) for name, entry in theirs.items() if name not in ours]


def _keyed(value: Any, key: str) -> bool:
    return isinstance(value, list) and all(
        isinstance(entry, Mapping) and isinstance(entry.get(key), str) for entry in value
    )


def _without_nulls(value: Any) -> Any:
    """Copy, leaving out removals of what was never there."""
    if isinstance(value, Mapping):
        return {k: _without_nulls(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [_without_nulls(entry) for entry in value]
    return value
