"""Names the differences of two pod templates, to explain a rollout. Pure.

Only places are named, no values: they may be secrets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

MOST_NAMED = 3
_KEYS = ("name", "mountPath", "containerPort")
"""Keys that match the entries of two lists: the first that all entries have."""


def described(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Name where the templates of two Deployments differ; empty where they do not."""
    if after is before:
        return ""
    old, new = before["spec"].get("template"), after["spec"].get("template")
    if old == new:
        return ""
    places = sorted(set(_places(old, new, "")))
    more = f" and {len(places) - MOST_NAMED} more" if len(places) > MOST_NAMED else ""
    return ", ".join(places[:MOST_NAMED]) + more


def _places(old: Any, new: Any, path: str) -> Iterator[str]:
    if old == new:
        return
    one, other = _by_key(old), _by_key(new)
    if one is None or other is None:
        yield path
        return
    for key in {**one, **other}:
        inner = f"[{key}]" if isinstance(old, list) else f".{key}" if path else str(key)
        if key in one and key in other:
            yield from _places(one[key], other[key], path + inner)
        else:
            yield path + inner


def _by_key(value: Any) -> dict[Any, Any] | None:
    if isinstance(value, Mapping):
        return dict(value)
    if not isinstance(value, list) or not all(isinstance(one, Mapping) for one in value):
        return None
    key = next((key for key in _KEYS if all(key in one for one in value)), None)
    return None if key is None else {one[key]: one for one in value}
