"""The port on which the model server of a pod listens.

During a rollout that changes `runtime.port`, pods of the earlier template listen on the earlier
port, so a pod that the operator created is asked for its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headroom.resources.names import CONTAINER, PORT_NAME

if TYPE_CHECKING:
    from headroom.api import InferenceService


def declared_port(pod: Mapping[str, Any]) -> int | None:
    """Return the number of port `http` of container `server`; None if there is none."""
    for container in (pod.get("spec") or {}).get("containers") or ():
        for port in (container.get("ports") or ()) if container.get("name") == CONTAINER else ():
            if port.get("name") == PORT_NAME:
                number: int = port["containerPort"]
                return number
    return None


def server_port(service: InferenceService, declared: int | None) -> int:
    """Return the port of a pod that declares this one; for a target's pods the spec decides."""
    if declared is None or service.spec.target_ref is not None:
        return service.spec.runtime.port
    return declared
