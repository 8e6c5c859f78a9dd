"""Decides whose a child object is: the service's, an orphan that it may adopt, or another's.

`kubectl delete --cascade=orphan` leaves children without an owner, and they go on serving. The next
InferenceService of the name adopts them, as workload controllers adopt their pods. Like them it
first reads its own object again: an owner that is being deleted must adopt nothing, since garbage
collection would then delete it, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headroom.api import InferenceService
from headroom.api.kind import API_VERSION, KIND
from headroom.controller.act.field_ownership import is_applied_by_us, is_controlled_by
from headroom.controller.ports import Cluster
from headroom.errors import Conflict, Rejected
from headroom.resources import names


class ForeignObject(Rejected):
    """An object with a child's name exists, and the service does not control it."""


def is_orphan(live: Mapping[str, Any], service: InferenceService) -> bool:
    """Return whether an operator applied the object for this name and nothing owns it now.

    Labels alone can be copied; the API server keeps who applied fields.
    """
    metadata = live["metadata"]
    worn = metadata.get("labels") or {}
    return (
        not any(owner.get("controller") for owner in metadata.get("ownerReferences") or ())
        and all(worn.get(key) == value for key, value in names.labels(service.name).items())
        and is_applied_by_us(live)
    )


def check_owner(live: Mapping[str, Any], service: InferenceService) -> None:
    """Raise ForeignObject unless the service controls the object, or may take it back."""
    if is_controlled_by(live, service.uid) or is_orphan(live, service):
        return
    metadata = live["metadata"]
    kind = live.get("kind", "object")
    name = f"{metadata.get('namespace', service.namespace)}/{metadata.get('name')}"
    if _is_of_predecessor(metadata, service):
        raise ForeignObject(
            f"{kind} {name} belongs to an earlier InferenceService of this name, and garbage "
            "collection removes it; if it stays for minutes, delete it"
        )
    additional = kind == "Service" and service.spec.target_ref is not None
    step = (
        "set routing.serviceName to another name"
        if additional
        else "delete it, or give the InferenceService another name"
    )
    raise ForeignObject(
        f"{kind} {name} exists and is not controlled by this InferenceService: {step}"
    )


async def recheck(cluster: Cluster, service: InferenceService) -> None:
    """Before an orphan is adopted: raise Conflict unless the service exists and is to stay.

    Raises ClusterError.
    """
    live = await cluster.get(API_VERSION, KIND, service.namespace, service.name)
    metadata = live["metadata"]
    if metadata.get("uid") != service.uid or metadata.get("deletionTimestamp"):
        raise Conflict(f"{KIND} {service.namespace}/{service.name} is being deleted")


def _is_of_predecessor(metadata: Mapping[str, Any], service: InferenceService) -> bool:
    return any(
        owner.get("controller") and owner.get("kind") == KIND and owner.get("name") == service.name
        for owner in metadata.get("ownerReferences") or ()
    )
