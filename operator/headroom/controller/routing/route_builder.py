"""Build the route of a service from its resource, its pods and its learned cost. Pure."""

from __future__ import annotations

import math
from collections.abc import Container
from dataclasses import dataclass

from headroom.api import InferenceService
from headroom.api.service_spec.client_tokens import Jwt
from headroom.api.service_status.status import Status
from headroom.api.service_status.status_durations import seconds_of
from headroom.controller.routing.ready_pods import ReadyPod
from headroom.gateway import Endpoint, Route
from headroom.gateway.activator_messages import UNKNOWN_IN_FLIGHT, Served
from headroom.gateway.runtime import MOST_PER_REPLICA, busy_per_replica, in_flight_per_replica
from headroom.gateway.values import ClientTokens, Hedge, RemoteKeys, RequestClass, TenantLimit
from headroom.resources.server_port import server_port
from headroom.scaling.values.observation import CostModel


def route(service: InferenceService, port: int, others: Container[str] = ()) -> Route:
    """Return the route of a service; `others` are the keys of all routes."""
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
        max_upgrades=routing.max_upgrades,
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
        trusted_cidrs=routing.trusted_cidrs,
        tokens=_tokens(routing.jwt),
        split=tuple((key, weight) for key, weight in split if key in others and weight),
        models=tuple((model, key) for model, key in models if key in others),
    )


def _tokens(jwt: Jwt | None) -> ClientTokens | None:
    if jwt is None:
        return None
    keys: str | RemoteKeys = jwt.local_jwks or ""
    if jwt.remote_jwks is not None:
        remote = jwt.remote_jwks
        keys = RemoteKeys(service=remote.service, port=remote.port, path=remote.path)
    return ClientTokens(
        issuer=jwt.issuer,
        audiences=jwt.audiences,
        tenant_claim=jwt.tenant_claim,
        keys=keys,
        optional=jwt.optional,
    )


def endpoints(service: InferenceService, pods: tuple[ReadyPod, ...]) -> list[Endpoint]:
    """Return where its warm replicas are reached."""
    return [Endpoint(pod.address, server_port(service, pod.port)) for pod in pods]


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """Figures learned from the service's replicas; None for an unknown one."""

    cost: CostModel | None = None
    cold_start_s: float | None = None
    """90th percentile."""
    sequences: int | None = None
    """In flight at one replica that generates tokens in time."""

    @classmethod
    def of(cls, status: Status) -> Learned:
        """Return the learned values in a service's status."""
        generation = status.generation
        start_s = None if status.cold_start is None else seconds_of(status.cold_start.p90)
        return cls(
            cost=None if status.model is None else status.model.cost,
            cold_start_s=None if start_s == math.inf else start_s,
            sequences=None if generation is None else generation.max_in_flight_per_replica,
        )


def served(
    service: InferenceService, port: int, learned: Learned, pods: tuple[ReadyPod, ...]
) -> Served:
    """Return the configuration of a service for activators."""
    routing = service.spec.routing
    return Served(
        key=f"{service.namespace}/{service.name}",
        port=port,
        timeout_s=routing.request_timeout.seconds,
        max_body_bytes=routing.max_body_bytes,
        cold_start_s=learned.cold_start_s,
        in_flight=in_flight(service, learned, 1) or UNKNOWN_IN_FLIGHT,
        replicas=tuple(sorted(endpoints(service, pods))),
        grpc_port=routing.grpc_port,
    )


def in_flight(service: InferenceService, learned: Learned, replicas: int) -> int | None:
    """Return the maximum number of requests in flight; None if the cost is not known."""
    per_replica = service.spec.routing.max_in_flight or learned.sequences
    if per_replica is None:
        if learned.cost is None:
            return None
        per_replica = in_flight_per_replica(learned.cost, service.spec.slo.whole_answer.seconds)
    return min(max(1, per_replica), MOST_PER_REPLICA) * max(1, replicas)


def busy(cost: CostModel | None, replicas: int) -> int | None:
    """Return the requests in flight at which all replicas are busy; None if not known."""
    return None if cost is None else busy_per_replica(cost) * max(1, replicas)
