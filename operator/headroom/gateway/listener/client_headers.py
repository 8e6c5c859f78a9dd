"""Headers that affect the requests of other clients are accepted from trusted hops only.

A listener has a chain of filters for the service's trusted networks, which keeps these headers, and
one for all other clients, which removes them before anything reads them. An untrusted client counts
as the tenant of its own address, so made-up names do not lift a limit. `x-headroom-idempotent:
false` is accepted from every client: it only forbids a retry of its own request.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from ipaddress import IPv4Network

from headroom.gateway.type_urls import Json, typed
from headroom.gateway.values import Route

CLASS = "x-slo-class"
PRIORITY = "x-request-priority"
"""The request's priority for the model server; 0 is the highest."""
TENANT = "x-tenant"
"""The tenant's header for the model server, which shares its queue between tenants."""
RETRIES = (
    "x-retry-attempt",
    "x-stainless-retry-count",
    "amz-sdk-request",
    "grpc-previous-rpc-attempts",
)
"""Headers that mark a retry, which replicas do not count as demand. `x-envoy-attempt-count` is
Envoy's own here."""
_REMOVED = (CLASS, PRIORITY, TENANT, *RETRIES)

EARLY = "early_header_mutation_extensions"
"""Changes of a connection manager before anything reads the headers."""
_ADDRESS = "%DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT%"

Chain = Callable[[Route, str, Json], Json]
"""Builds a filter chain: the route of its clients, the header that names the tenant, and the
connection manager's further settings."""


def chains(route: Route, chain: Chain) -> Json:
    """Build the chains of a listener: of trusted networks, and of all others."""
    # Envoy refuses a listener that has a network twice, as 10.0.0.0/8 and 10.0.0.1/8 are.
    networks = dict.fromkeys(IPv4Network(one, strict=False) for one in route.trusted_cidrs)
    if any(one.prefixlen == 0 for one in networks):
        return {"filter_chains": [chain(route, _tenant_header(route), {})]}
    # Only trusted networks can name a class.
    others = chain(replace(route, classes=()), TENANT, {EARLY: [_removal(route)]})
    if not route.trusted_cidrs:
        return {"filter_chains": [others]}
    ranges = [_range(one) for one in networks]
    trusted = chain(route, _tenant_header(route), {})
    trusted |= {"name": "trusted", "filter_chain_match": {"source_prefix_ranges": ranges}}
    return {"filter_chains": [trusted], "default_filter_chain": others | {"name": "others"}}


def _tenant_header(route: Route) -> str:
    """Return the header in which trusted hops name the tenant; tokens name it in the usual one."""
    if route.tokens is not None or route.tenants is None:
        return TENANT
    return route.tenants.header


def _range(network: IPv4Network) -> Json:
    return {"address_prefix": str(network.network_address), "prefix_len": network.prefixlen}


def _removal(route: Route) -> Json:
    """Remove the headers; name the client's address as its tenant where tenants have limits."""
    mutations: list[Json] = [{"remove": name} for name in _REMOVED]
    if route.tenants is not None:
        header = {"key": TENANT, "value": _ADDRESS}
        action = "OVERWRITE_IF_EXISTS_OR_ADD"
        mutations.append({"append": {"header": header, "append_action": action}})
    return mutation(*mutations)


def mutation(*mutations: Json) -> Json:
    """Build one of the extensions `EARLY`."""
    return typed(
        "envoy.http.early_header_mutation.header_mutation",
        "envoy.extensions.http.early_header_mutation.header_mutation.v3.HeaderMutation",
        mutations=list(mutations),
    )
