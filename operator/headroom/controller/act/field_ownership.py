"""Split field ownership of created objects between the two field managers. Pure.

A Deployment is created with its replicas by POST, which fails if one exists. That makes the
creating manager the owner of every field, and a field that a later apply omits would never be
removed. So ownership is handed over once: everything but the replicas to the manager that applies,
the replicas to the one that scales.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headroom.controller.gather.other_writers.replica_writers import owns_replicas
from headroom.resources.names import FIELD_MANAGER, SCALER_FIELD_MANAGER

_Fields = dict[str, Any]
_REPLICAS: _Fields = {"f:spec": {"f:replicas": {}}}


def is_controlled_by(manifest: Mapping[str, Any], uid: str) -> bool:
    """Return whether the service controls the object; another owner's may have the same name."""
    owners = manifest["metadata"].get("ownerReferences") or ()
    return any(owner.get("controller") and owner.get("uid") == uid for owner in owners)


def is_applied_by_us(manifest: Mapping[str, Any]) -> bool:
    """Return whether an operator created or applied the object, this one or an earlier one.

    What it created is handed over at a later tick where another client wrote in between, as the
    controller of PodDisruptionBudgets does at once.
    """
    entries = manifest["metadata"].get("managedFields") or ()
    return any(_applies(entry) or _is_unsplit(entry) for entry in entries)


def handover(deployment: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the JSON patch that splits the fields of the POST; empty where they are split.

    It carries the resourceVersion that was read, so that a change in between makes it a conflict;
    a `test` operation that fails is answered with 422 without a reason.
    """
    metadata = deployment["metadata"]
    entries: list[dict[str, Any]] = metadata.get("managedFields") or []
    created = next((entry for entry in entries if _is_unsplit(entry)), None)
    if created is None:
        return []
    children = next((entry for entry in entries if _applies(entry)), None)
    kept = [entry for entry in entries if entry is not created and entry is not children]
    fields = _without(created["fieldsV1"], _REPLICAS)
    handed = created | {
        "manager": FIELD_MANAGER,
        "operation": "Apply",
        "fieldsV1": _union(children["fieldsV1"], fields) if children else fields,
    }
    scaled = [created | {"fieldsV1": _REPLICAS}] if owns_replicas(created["fieldsV1"]) else []
    return [
        {"op": "replace", "path": "/metadata/managedFields", "value": [*kept, handed, *scaled]},
        {
            "op": "replace",
            "path": "/metadata/resourceVersion",
            "value": metadata["resourceVersion"],
        },
    ]


def last_other_writer(live: Mapping[str, Any]) -> str:
    """Name the field manager, other than the operator, that wrote last; empty if none is known."""
    others = [
        (str(entry.get("time", "")), str(entry.get("manager", "")))
        for entry in live["metadata"].get("managedFields") or ()
        if not entry.get("subresource")
        and entry.get("manager") not in (FIELD_MANAGER, SCALER_FIELD_MANAGER)
    ]
    return max(others, default=("", ""))[1]


def _is_unsplit(entry: Mapping[str, Any]) -> bool:
    return bool(
        entry.get("manager") == SCALER_FIELD_MANAGER
        and entry.get("operation") == "Update"
        and not entry.get("subresource")
        and entry.get("fieldsV1") != _REPLICAS
    )


def _applies(entry: Mapping[str, Any]) -> bool:
    return bool(
        entry.get("manager") == FIELD_MANAGER
        and entry.get("operation") == "Apply"
        and not entry.get("subresource")
    )


def _without(fields: _Fields, removed: _Fields) -> _Fields:
    """Fields less those removed; a removed leaf takes everything below it."""
    left: _Fields = {}
    for key, value in fields.items():
        if key not in removed:
            left[key] = value
        elif removed[key] and (rest := _without(value, removed[key])):
            left[key] = rest
    return left


def _union(one: _Fields, other: _Fields) -> _Fields:
    union = dict(one)
    for key, value in other.items():
        union[key] = _union(union[key], value) if key in union else value
    return union
