"""Merges a user's overlay into a generated manifest.

Maps merge. Lists whose entries have distinct names (containers, volumes, env) merge by name, volume
mounts by mountPath, ports by name or else by number and protocol: the same entries merge, others
are appended in order. Other lists are replaced. An explicit null removes. If the types differ, the
user's value wins and the API server reports what is wrong.
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
    if field == "ports" and _are_maps(generated) and _are_maps(overlay):
        return _ports(generated, overlay)
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


def _are_maps(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(entry, Mapping) for entry in value)


def _ports(generated: list[Any], overlay: list[Any]) -> list[Any]:
    """Merge the ports of a container, whose names are optional.

    A generated port keeps its name, by which probes and Services refer to it.
    """
    left, merged = list(overlay), []
    for ours in generated:
        name = {"name": ours["name"]} if "name" in ours else {}
        named = [one for one in left if name and one.get("name") == ours["name"]]
        numbered = [one for one in left if _number(one) == _number(ours)]
        theirs: Mapping[str, Any] = next(iter(named + numbered), {})
        left = [one for one in left if one is not theirs]
        merged.append(lay_over(ours, {**theirs, **name}))
    return merged + [_without_nulls(one) for one in left]


def _number(port: Mapping[str, Any]) -> tuple[Any, Any]:
    return port.get("containerPort"), port.get("protocol") or "TCP"


def _without_nulls(value: Any) -> Any:
    """Copy a value without nulls."""
    if isinstance(value, Mapping):
        return {k: _without_nulls(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [_without_nulls(entry) for entry in value]
    return value
