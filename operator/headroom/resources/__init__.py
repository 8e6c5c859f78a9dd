"""Manifests of an InferenceService's children: one kind per module, spec in, manifest out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headroom.resources import deployment, pod_disruption_budget, service, service_account
from headroom.resources.settings import DEFAULTS, Settings

if TYPE_CHECKING:
    from headroom.api import InferenceService

__all__ = ["Settings", "desired_children"]


def desired_children(
    inference_service: InferenceService, settings: Settings = DEFAULTS
) -> list[dict[str, Any]]:
    """Build all children in the order of creation; replicas are set by the scaler.

    With a targetRef there are none: the workload belongs to its own creator.
    """
    if inference_service.spec.target_ref is not None:
        return []
    return [
        service_account.build(inference_service),
        _service(inference_service, settings),
        pod_disruption_budget.build(inference_service),
        deployment.build(inference_service, settings),
    ]


def _service(inference_service: InferenceService, settings: Settings) -> dict[str, Any]:
    """In Gateway mode the router owns the Service of this name; replicas get a headless one."""
    if inference_service.spec.routing.mode == "Gateway" and settings.has_gateways:
        return service.build_replicas(inference_service)
    return service.build(inference_service)
