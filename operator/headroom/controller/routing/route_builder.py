"""A service as its route: what the resource, its pods and its status come to. Pure."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

from headroom.api import InferenceService
from headroom.api.durations import Duration
from headroom.controller.routing.ready_pods import WarmPod
from headroom.gateway import Endpoint, Route
from headroom.gateway.activator_messages import UNKNOWN_IN_FLIGHT, Served
from headroom.gateway.runtime import busy_per_replica, in_flight_per_replica
from headroom.gateway.values import Hedge, RequestClass, TenantLimit
from headroom.scaling.values import CostModel


def route(service: InferenceService, port: int, others: Container[str] = ()) -> Route:
    """Give the route of a service; `others` are the keys of the routes that there are."""
    routing = service.spec.routing
    tenants, hedging = routing.tenants, routing.hedging
    split = [(f"{service.namespace}/{one.service}", one.percent) for one in routing.traffic]
    models = [(one.model, f"{service.namespace}/{one.service}") for one in routing.models]
    return Route(
        namespace=service.namespace,
        name=service.name,
        port=port,
        timeout_s=routing.request_timeout.seconds,
        per_try_timeout_s=None,
        max_body_bytes=routing.max_body_bytes,
        slow_start_s=routing.slow_start.seconds if routing.slow_start else None,
        grpc_port=routing.grpc_port,
        hedge=Hedge(after_s=hedging.after.seconds, budget_percent=float(hedging.budget_percent))
        if hedging
        else None,
        classes=tuple(
            RequestClass(
                name=one.name,
                priority=one.priority,
                deadline_s=one.deadline.seconds if one.deadline else None,
            )
            for one in routing.classes
        ),
        tenants=TenantLimit(
            header=tenants.header,
            rate_rps=tenants.requests_per_second,
            burst=tenants.burst or tenants.requests_per_second or 0,
            in_flight_percent=tenants.in_flight_percent,
        )
        if tenants
        else None,
        split=tuple((key, weight) for key, weight in split if key in others and weight),
        models=tuple((model, key) for model, key in models if key in others),
    )


def endpoints(service: InferenceService, pods: tuple[WarmPod, ...]) -> list[Endpoint]:
    """Give where its warm replicas are reached."""
    return [Endpoint(pod.address, service.spec.runtime.port) for pod in pods]


def served(
    service: InferenceService, port: int, status: Mapping[str, Any], pods: tuple[WarmPod, ...]
) -> Served:
    """Give what activators are told of a service."""
    routing = service.spec.routing
    return Served(
        key=f"{service.namespace}/{service.name}",
        port=port,
        timeout_s=routing.request_timeout.seconds,
        max_body_bytes=routing.max_body_bytes,
        cold_start_s=_cold_start_s(status.get("coldStart")),
        in_flight=in_flight(service, status, 1) or UNKNOWN_IN_FLIGHT,
        replicas=tuple(sorted(endpoints(service, pods))),
        grpc_port=routing.grpc_port,
    )


def in_flight(service: InferenceService, status: Mapping[str, Any], replicas: int) -> int | None:
    """Give how many requests may be in flight at all; None where nothing is known of the cost."""
    per_replica = service.spec.routing.max_in_flight
    if per_replica is None:
        cost = _cost(status.get("model"))
        if cost is None:
            return None
        per_replica = in_flight_per_replica(cost, service.spec.slo.latency.target.seconds)
    return per_replica * max(1, replicas)


def busy(status: Mapping[str, Any], replicas: int) -> int | None:
    """Give with how many requests in flight all replicas are busy; None where it is not known."""
    cost = _cost(status.get("model"))
    return None if cost is None else busy_per_replica(cost) * max(1, replicas)


def _cold_start_s(cold_start: Any) -> float | None:
    """Read how long a start takes from the status, as it was written there."""
    try:
        return _seconds(cold_start["p90"])
    except (KeyError, TypeError, ValueError):
        return None


def _cost(model: Any) -> CostModel | None:
    """Read what was learnt from the status, as it was written there."""
    try:
        cost = CostModel(
            fixed_s=_seconds(model["fixedCost"]),
            per_item_s=_seconds(model["perItemCost"]),
            max_batch=int(model["maxBatch"]),
        )
    except (KeyError, TypeError, ValueError):
        return None
    return cost if cost.max_batch > 0 and cost.batch_s(cost.max_batch) > 0 else None


def _seconds(text: str) -> float:
    return Duration.parse(text).seconds
