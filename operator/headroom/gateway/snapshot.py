"""The whole configuration of the gateways by kind and name, each resource with its version.

A version is a digest of the content, so a restarted operator or another one sends nothing that the
gateways already have.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from headroom.gateway import (
    client_tokens,
    clusters,
    endpoints,
    key_sets,
    listeners,
    runtime,
    tenant_in_flight,
)
from headroom.gateway.type_urls import CLUSTER, ENDPOINTS, LISTENER, RUNTIME, Json
from headroom.gateway.values import Endpoint, Route, is_kept

KINDS = {
    "clusters": CLUSTER,
    "endpoints": ENDPOINTS,
    "listeners": LISTENER,
    "runtime": RUNTIME,
}
SEND_ORDER = tuple(KINDS)
"""Clusters before listeners, so that a listener refers only to known clusters."""
ROUTES_KEPT = 4096


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource with its version."""

    version: str
    body: bytes
    """JSON with the type URL."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The resources of all kinds."""

    resources: Mapping[str, Mapping[str, Resource]] = field(
        default_factory=lambda: {kind: {} for kind in KINDS}
    )
    """By kind and name."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Why a route is left out, by its key: an error of this program, which costs no
    other route."""
    kept: frozenset[str] = frozenset()
    """Namespaces and keys of routes that are not known now: gateways keep these as they are."""
    leads_to: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By the name of a listener: the endpoints without which it would answer 503."""

    def keeps(self, name: str) -> bool:
        """Whether a gateway keeps a resource of this name that the snapshot has not."""
        return (bool(self.kept) and name == key_sets.NAME) or is_kept(name, self.kept)


def snapshot(
    routes: Iterable[Route],
    replicas: Mapping[str, Iterable[Endpoint]],
    in_flight: Mapping[str, int],
    gateways: Iterable[str] = (),
    busy: Mapping[str, int] | None = None,
    *,
    kept: frozenset[str] = frozenset(),
    kept_listeners: Iterable[str] = (),
) -> Snapshot:
    """Build the snapshot from routes, and warm replicas and in-flight bounds by route key.

    `busy` has the number of requests that keeps all replicas of a route busy, if known;
    `kept_listeners` are those of `kept` routes whose names are known.
    """
    routes = tuple(routes)
    bounds = dict(in_flight) | tenant_in_flight.bounds(routes, in_flight, busy or {})
    listener_resources: dict[str, Resource] = {}
    cluster_resources: dict[str, Resource] = {}
    endpoint_resources: dict[str, Resource] = {}
    leads_to: dict[str, frozenset[str]] = {}
    failed: dict[str, str] = {}
    for route in routes:
        try:
            listeners_of, clusters_of = _listeners(route), _clusters(route)
            endpoints_of = _endpoints(route, frozenset(replicas.get(route.key, ())))
        except Exception as error:  # noqa: BLE001  (whatever it is, the others are routed)
            failed[route.key] = f"{type(error).__name__}: {error}"
            continue
        listener_resources |= listeners_of
        cluster_resources |= clusters_of
        endpoint_resources |= endpoints_of
        leads_to |= dict.fromkeys(listeners_of, route.leads_to)
    if any(client_tokens.fetches(route) for route in routes):
        listener_resources[key_sets.NAME] = _resource(key_sets.listener())
        cluster_resources[key_sets.NAME] = _resource(key_sets.cluster())
    return Snapshot(
        {
            "clusters": cluster_resources,
            "endpoints": endpoint_resources,
            "listeners": listener_resources,
            "runtime": {
                runtime.LAYER: _resource(
                    runtime.build(
                        bounds,
                        gateways,
                        sorted({*kept_listeners, *(route.key for route in routes)}),
                    )
                )
            },
        },
        failed,
        kept,
        {name: leads & endpoint_resources.keys() for name, leads in leads_to.items()},
    )


def configured_bytes(route: Route) -> int:
    """Return the bytes of a route's listeners and clusters; 0 for one that cannot be built."""
    try:
        built = [*_listeners(route).values(), *_clusters(route).values()]
    except Exception:  # noqa: BLE001  (`snapshot` says why)
        return 0
    return sum(len(one.body) for one in built)


@lru_cache(maxsize=ROUTES_KEPT)
def _listeners(route: Route) -> Mapping[str, Resource]:
    """Cached: a route changes only with its resource, replicas change often but few at once."""
    return {listener["name"]: _resource(listener) for listener in listeners.build(route)}


@lru_cache(maxsize=ROUTES_KEPT)
def _clusters(route: Route) -> Mapping[str, Resource]:
    built = [
        *clusters.build(route),
        *tenant_in_flight.clusters(route),
        *client_tokens.clusters(route),
    ]
    return {cluster["name"]: _resource(cluster) for cluster in built}


@lru_cache(maxsize=ROUTES_KEPT)
def _endpoints(route: Route, replicas: frozenset[Endpoint]) -> Mapping[str, Resource]:
    return {one["cluster_name"]: _resource(one) for one in endpoints.build(route, replicas)}


def _resource(value: Json) -> Resource:
    # Text that is no Unicode fails here, for its route alone, and not for all at the gateways.
    body = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    return Resource(hashlib.sha256(body).hexdigest()[:16], body)
