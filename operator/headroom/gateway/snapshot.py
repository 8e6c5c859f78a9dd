"""Everything that the gateways are told at one moment, by kind and name, each with its version.

A version is a digest of the content: an operator that starts anew, or another one, tells the
gateways nothing that they know already.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from headroom.gateway import clusters, endpoints, listeners, runtime, tenant_in_flight
from headroom.gateway.type_urls import CLUSTER, ENDPOINTS, LISTENER, RUNTIME, Json
from headroom.gateway.values import Endpoint, Route

KINDS = {
    "clusters": CLUSTER,
    "endpoints": ENDPOINTS,
    "listeners": LISTENER,
    "runtime": RUNTIME,
}
TOLD_IN_ORDER = tuple(KINDS)
"""A listener that is told leads to a cluster that is known."""
ROUTES_KEPT = 4096


@dataclass(frozen=True, slots=True)
class Resource:
    """One thing that is told."""

    version: str
    body: bytes
    """As JSON, with its type."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the gateways are told."""

    resources: Mapping[str, Mapping[str, Resource]] = field(
        default_factory=lambda: {kind: {} for kind in KINDS}
    )
    """By kind and name."""


def snapshot(
    routes: Iterable[Route],
    replicas: Mapping[str, Iterable[Endpoint]],
    in_flight: Mapping[str, int],
    gateways: Iterable[str] = (),
    busy: Mapping[str, int] | None = None,
) -> Snapshot:
    """Build what is told from routes, warm replicas and bounds by a route's key, and gateways.

    `busy` has the requests with which all replicas of a route are busy, where that is known.
    """
    routes = tuple(routes)
    bounds = dict(in_flight) | tenant_in_flight.bounds(routes, in_flight, busy or {})
    listeners_told: dict[str, Resource] = {}
    clusters_told: dict[str, Resource] = {}
    endpoints_told: dict[str, Resource] = {}
    for route in routes:
        listeners_told |= _listeners(route)
        clusters_told |= _clusters(route)
        endpoints_told |= _endpoints(route, frozenset(replicas.get(route.key, ())))
    return Snapshot(
        {
            "clusters": clusters_told,
            "endpoints": endpoints_told,
            "listeners": listeners_told,
            "runtime": {runtime.LAYER: _resource(runtime.build(bounds, gateways))},
        }
    )


@lru_cache(maxsize=ROUTES_KEPT)
def _listeners(route: Route) -> Mapping[str, Resource]:
    """A route changes with its resource only; replicas change all the time, but few at once."""
    return {listener["name"]: _resource(listener) for listener in listeners.build(route)}


@lru_cache(maxsize=ROUTES_KEPT)
def _clusters(route: Route) -> Mapping[str, Resource]:
    told = [*clusters.build(route), *tenant_in_flight.clusters(route)]
    return {cluster["name"]: _resource(cluster) for cluster in told}


@lru_cache(maxsize=ROUTES_KEPT)
def _endpoints(route: Route, replicas: frozenset[Endpoint]) -> Mapping[str, Resource]:
    return {one["cluster_name"]: _resource(one) for one in endpoints.build(route, replicas)}


def _resource(value: Json) -> Resource:
    body = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    return Resource(hashlib.sha256(body).hexdigest()[:16], body)
