"""Builders of invalid specs: one change to a minimal object."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

MINIMAL: dict[str, Any] = {
    "apiVersion": "headroom.dev/v1alpha1",
    "kind": "InferenceService",
    "metadata": {"name": "minimal", "namespace": "default"},
    "spec": {
        "runtime": {"image": "registry.example/server:1"},
        "slo": {"latency": {"target": "250ms"}},
    },
}
"""A spec with the required fields, and nothing else."""

ABSENT = object()


@dataclass(frozen=True, kw_only=True)
class InvalidSpec:
    """One change to the minimal object that breaks a rule."""

    why: str
    path: str
    """Path of the changed field, dots between keys."""
    value: Any
    """Value that is put there; ABSENT removes."""
    field: str = ""
    """The field that is named; without it the path."""
    says: str
    """The rule, as the API server states it."""
    parser_says: str = ""
    """The rule, as the operator states it; without it the same."""

    @property
    def named_field(self) -> str:
        """The field that a message has to name."""
        return self.field or self.path

    def body(self) -> dict[str, Any]:
        """Return the object with the change."""
        return changed(MINIMAL, self.path, self.value)


def changed(body: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Copy an object and put a value at a path, or remove what is there."""
    copied = copy.deepcopy(body)
    *parents, last = path.split(".")
    inner = copied
    for key in parents:
        inner = inner.setdefault(key, {})
    if value is ABSENT:
        inner.pop(last, None)
    else:
        inner[last] = value
    return copied


def refused(
    why: str, path: str, value: Any, says: str, parser_says: str = "", *, field: str = ""
) -> InvalidSpec:
    """Return a spec that breaks the rule which `says` states."""
    return InvalidSpec(
        why=why, path=path, value=value, field=field, says=says, parser_says=parser_says
    )


def missing(why: str, path: str, value: Any = ABSENT, *, field: str = "") -> InvalidSpec:
    """Return a spec without a required field."""
    return refused(why, path, value, "Required value", "is required", field=field)


def bounds(path: str, below: Any, least: str, above: Any, most: str) -> list[InvalidSpec]:
    """Return one number below what is allowed and one above."""
    low = InvalidSpec(why=f"{path} {below}", path=path, value=below, says=f"greater than {least}")
    high = InvalidSpec(why=f"{path} {above}", path=path, value=above, says=f"less than {most}")
    return [low, high]


def no_duration(text: Any) -> InvalidSpec:
    """Return a target that is not a duration."""
    return InvalidSpec(
        why=f"duration {text!r}",
        path="spec.slo.latency.target",
        value=text,
        says="must be a duration from 1ms to 10m, with units (ms, s, m or h)",
    )


def duration_bounds(path: str, shortest: str, longest: str, *outside: str) -> list[InvalidSpec]:
    """Return durations outside the two bounds."""
    return [
        InvalidSpec(
            why=f"{path} {text}",
            path=path,
            value=text,
            says=f"must be a duration from {shortest} to {longest}",
        )
        for text in outside
    ]


def too_many(path: str, most: int, value: list[Any] | dict[str, Any]) -> InvalidSpec:
    """Return a list or map with more items than allowed."""
    unit = "items" if isinstance(value, list) else "properties"
    return InvalidSpec(
        why=f"{path} with {len(value)} {unit}",
        path=path,
        value=value,
        says=f"must have at most {most} items",
        parser_says=f"must have at most {most} items",
    )


def wrong_enum(path: str, value: Any, supported: str, parser_says: str) -> InvalidSpec:
    """Return an unknown enumeration value."""
    return InvalidSpec(
        why=f"{path} {value}",
        path=path,
        value=value,
        says=f"supported values: {supported}",
        parser_says=parser_says,
    )
