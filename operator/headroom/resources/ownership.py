"""Who owns which field of a Deployment, after it was created together with its replicas.

A Deployment is created by POST under the scaler's name, so that it starts with the replicas that
are wanted. The API server then holds the scaler for the owner of every field, and a field that a
later apply leaves out would linger, since an apply removes only what its own manager owned. So
ownership is split once: replicas stay the scaler's, everything else goes to the manager that
applies.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from headroom.api.timestamps import rfc3339
from headroom.resources.names import FIELD_MANAGER, SCALER_FIELD_MANAGER

_REPLICAS: dict[str, Any] = {"f:spec": {"f:replicas": {}}}


def split_ownership(
    managed_fields: Sequence[Mapping[str, Any]], now_s: float
) -> list[dict[str, Any]] | None:
    """Give metadata.managedFields as they should be, or None where nothing is to be done.

    Only entries of the scaler's Update operations on the object itself are touched; what it owns
    through the scale subresource, and what any other manager owns, stays as it is.
    """
    if not any(_to_split(entry) for entry in managed_fields):
        return None
    result: list[dict[str, Any]] = []
    for entry in managed_fields:
        kept = copy.deepcopy(dict(entry))
        if _to_split(entry):
            fields = kept["fieldsV1"]
            given = _without_replicas(fields)
            if "f:replicas" in fields.get("f:spec", {}):
                result.append(kept | {"fieldsV1": copy.deepcopy(_REPLICAS)})
            _give(result, kept, given, now_s)
        elif _is_applier(entry, entry.get("apiVersion")):
            _give(result, kept, kept["fieldsV1"], now_s)
        else:
            result.append(kept)
    return result


def _to_split(entry: Mapping[str, Any]) -> bool:
    return (
        entry.get("manager") == SCALER_FIELD_MANAGER
        and entry.get("operation") == "Update"
        and not entry.get("subresource")
        and isinstance(entry.get("fieldsV1"), Mapping)
        and bool(_without_replicas(entry["fieldsV1"]))
    )


def _is_applier(entry: Mapping[str, Any], api_version: Any) -> bool:
    return (
        entry.get("manager") == FIELD_MANAGER
        and entry.get("operation") == "Apply"
        and not entry.get("subresource")
        and entry.get("apiVersion") == api_version
        and isinstance(entry.get("fieldsV1"), Mapping)
    )


def _without_replicas(fields: Mapping[str, Any]) -> dict[str, Any]:
    rest = copy.deepcopy(dict(fields))
    spec = rest.get("f:spec")
    if isinstance(spec, dict) and "f:replicas" in spec:
        del spec["f:replicas"]
        if not spec:
            del rest["f:spec"]
    return rest


def _give(
    entries: list[dict[str, Any]], like: Mapping[str, Any], fields: Mapping[str, Any], now_s: float
) -> None:
    """Add `fields` to the applier's entry of the same API version, or make that entry."""
    for entry in entries:
        if _is_applier(entry, like.get("apiVersion")):
            entry["fieldsV1"] = _union(entry["fieldsV1"], fields)
            entry["time"] = rfc3339(now_s)
            return
    entries.append(
        {
            **like,
            "manager": FIELD_MANAGER,
            "operation": "Apply",
            "time": rfc3339(now_s),
            "fieldsV1": fields,
        }
    )


def _union(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(one)
    for key, inner in other.items():
        merged[key] = _union(merged[key], inner) if key in merged else inner
    return merged
