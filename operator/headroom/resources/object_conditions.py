"""The conditions in the status of a Kubernetes object, such as a pod or a Deployment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headroom.api.timestamps import epoch_s


def condition(manifest: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """Return the object's condition of a type; empty where it has none."""
    for one in (manifest.get("status") or {}).get("conditions") or ():
        if one["type"] == kind:
            found: Mapping[str, Any] = one
            return found
    return {}


def is_true(manifest: Mapping[str, Any], kind: str) -> bool:
    """Return whether the object has a condition of a type, and its status is True."""
    return bool(condition(manifest, kind).get("status") == "True")


def since_s(condition: Mapping[str, Any]) -> float | None:
    """Return when a condition took its status, in Unix time; None where it does not say."""
    moment = condition.get("lastTransitionTime")
    return epoch_s(moment) if moment else None


def reason_and_message(reason: str | None, message: str | None) -> str:
    """Return a reason and its message as one text, without the one that is missing."""
    return ": ".join(part for part in (reason, message) if part)
