"""Reads raw objects whose fields may be missing or of another type. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Manifest = dict[str, Any]


def only(one: Mapping[str, Any], *names: str) -> Manifest:
    """Return the fields of these names that are there."""
    return {name: one[name] for name in names if name in one}


def map_at(parent: Mapping[str, Any], name: str) -> Manifest:
    """Return the map of this name; empty if it is none."""
    found = parent.get(name)
    return found if isinstance(found, dict) else {}


def list_at(parent: Mapping[str, Any], name: str) -> list[Any]:
    """Return the list of this name; empty if it is none."""
    found = parent.get(name)
    return found if isinstance(found, list) else []


def maps_at(parent: Mapping[str, Any], name: str, most: int | None = None) -> Iterator[Manifest]:
    """Yield the maps of the list of this name, of its first `most` items."""
    return (one for one in list_at(parent, name)[:most] if isinstance(one, dict))
