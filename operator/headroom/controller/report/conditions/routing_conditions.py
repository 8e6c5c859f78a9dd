"""The condition RoutingReady: how requests reach the replicas. Pure."""

from __future__ import annotations

from headroom.api import InferenceService
from headroom.api.reasons import StatusReason
from headroom.controller.report.conditions.condition_result import (
    FALSE,
    TRUE,
    Judgement,
    TickResult,
    join,
)
from headroom.resources.names import client_port, client_service


def routing_ready(tick: TickResult) -> Judgement:
    """Say whether requests pass through a gateway, and why not where they should."""
    route, scaling = tick.route, tick.service.spec.scaling
    if route.trouble:
        return FALSE, StatusReason.ROUTING_UPDATE_FAILED, route.trouble
    if tick.service.spec.routing.mode == "Service":
        if route.gateways:
            message = f"requests still pass through the gateway {', '.join(route.gateways)}"
            return TRUE, StatusReason.VIA_GATEWAY, message
        message = "clients connect to the replicas, because routing.mode is Service"
        return TRUE, StatusReason.DIRECT_TO_PODS, message
    if route.refused or route.left_out:
        message = f"clients connect to the replicas, because {route.refused or route.left_out}"
        full = StatusReason.GATEWAY_CONFIGURATION_FULL
        return FALSE, StatusReason.NO_PORT_LEFT if route.refused else full, message
    if not route.gateways:
        message = (
            "no gateway accepts connections for the service, so clients connect to the replicas"
        )
        return FALSE, StatusReason.NO_GATEWAY, message
    if tick.gateway.bypassed:
        return FALSE, StatusReason.GATEWAY_BYPASSED, _bypassed(tick)
    message = f"{_clients(tick.service)} pass through the gateway {', '.join(route.gateways)}"
    if route.activators:
        held = f"{route.activators} activators hold them while no replica is ready"
        return TRUE, StatusReason.VIA_GATEWAY, join(message, held)
    if scaling.min_replicas == 0:
        none = "no activator can hold them while no replica is ready"
        if scaling.mode == "Auto":
            none += ", so the last replica is kept"
        return FALSE, StatusReason.NO_ACTIVATOR, join(message, none)
    return TRUE, StatusReason.VIA_GATEWAY, message


def _bypassed(tick: TickResult) -> str:
    """Say how many requests come through the gateway, and where clients should connect."""
    seen, arrived = tick.gateway.signals.arrival_rps, tick.decision.signals.arrival_rps
    service, port = client_service(tick.service), client_port(tick.service)
    return (
        f"{seen.value or 0.0:.3g} of {arrived.value or 0.0:.3g} requests/s come through the "
        f"gateway, the others through another Service; point clients to Service {service}, "
        f"port {port}"
    )


def _clients(service: InferenceService) -> str:
    """Name the requests that a gateway receives; a target has other Services too."""
    if service.spec.target_ref is None:
        return "requests"
    return f"requests to Service {client_service(service)}"
