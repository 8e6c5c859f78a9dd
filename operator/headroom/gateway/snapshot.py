"""The whole configuration of the gateways by kind and name, each resource with its version.

A version is a digest of the content, so a restarted operator or another one sends nothing that the
gateways already have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from headroom.gateway import key_sets, runtime
from headroom.gateway.built_routes import BuiltEndpoints, BuiltRoute, Resource, build, resource
from headroom.gateway.listener import client_tokens, tenant_in_flight
from headroom.gateway.type_urls import CLUSTER, ENDPOINTS, LISTENER, RUNTIME
from headroom.gateway.values import Endpoint, Route, is_kept

KINDS = {
    "clusters": CLUSTER,
    "endpoints": ENDPOINTS,
    "listeners": LISTENER,
    "runtime": RUNTIME,
}
SEND_ORDER = tuple(KINDS)
"""Clusters before listeners, so that a listener refers only to known clusters."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The resources of all kinds."""

    resources: Mapping[str, Mapping[str, Resource]] = field(
        default_factory=lambda: {kind: {} for kind in KINDS}
    )
    """Resources by kind and name."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Reason why a route is left out, by its key: an error of this program, which costs no
    other route."""
    kept: frozenset[str] = frozenset()
    """Namespaces and keys of routes that are not known now: gateways keep these as they are."""
    leads_to: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Endpoints without which a listener would answer 503, by its name."""

    def keeps(self, name: str) -> bool:
        """Return whether a gateway keeps a resource of this name that the snapshot has not."""
        return (bool(self.kept) and name == key_sets.NAME) or is_kept(name, self.kept)


def snapshot(
    routes: Iterable[Route | BuiltRoute],
    replicas: Mapping[str, Iterable[Endpoint]],
    in_flight: Mapping[str, int],
    gateways: Iterable[str] = (),
    busy: Mapping[str, int] | None = None,
    *,
    kept: frozenset[str] = frozenset(),
    kept_listeners: Iterable[str] = (),
    assigned: BuiltEndpoints | None = None,
) -> Snapshot:
    """Build the snapshot from routes, and warm replicas and in-flight bounds by route key.

    `busy` has the number of requests that keeps all replicas of a route busy, if known;
    `kept_listeners` are those of `kept` routes whose names are known. What is built already, and
    the endpoints `assigned` before, are not built again.
    """
    known = [one if isinstance(one, BuiltRoute) else build(one) for one in routes]
    all_routes = [one.route for one in known]
    assigned = BuiltEndpoints() if assigned is None else assigned
    bounds = dict(in_flight) | tenant_in_flight.bounds(all_routes, in_flight, busy or {})
    listener_resources: dict[str, Resource] = {}
    cluster_resources: dict[str, Resource] = {}
    endpoint_resources: dict[str, Resource] = {}
    leads_to: dict[str, frozenset[str]] = {}
    failed: dict[str, str] = {}
    for one in known:
        key = one.route.key
        if one.error:
            failed[key] = one.error
            continue
        try:
            endpoints_of = assigned.of(one.route, frozenset(replicas.get(key, ())))
        except Exception as error:  # noqa: BLE001  (whatever it is, the others are routed)
            failed[key] = f"{type(error).__name__}: {error}"
            continue
        listener_resources |= one.listeners
        cluster_resources |= one.clusters
        endpoint_resources |= endpoints_of
        leads_to |= dict.fromkeys(one.listeners, one.route.leads_to)
    keys = [route.key for route in all_routes]
    assigned.keep(keys)
    if any(client_tokens.fetches(route) for route in all_routes):
        listener_resources[key_sets.NAME] = resource(key_sets.listener())
        cluster_resources[key_sets.NAME] = resource(key_sets.cluster())
    return Snapshot(
        {
            "clusters": cluster_resources,
            "endpoints": endpoint_resources,
            "listeners": listener_resources,
            "runtime": {
                runtime.LAYER: resource(
                    runtime.build(bounds, gateways, sorted({*kept_listeners, *keys}))
                )
            },
        },
        failed,
        kept,
        {name: leads & endpoint_resources.keys() for name, leads in leads_to.items()},
    )
