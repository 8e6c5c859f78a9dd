"""Clients' JSON Web Tokens, which Envoy verifies: a claim names the tenant of a request.

A request with a token that is not valid gets 401 (403 for another audience), and so does one
without a token, unless tokens are optional. Envoy writes the claim to the tenant's header in place
of whatever a client sent there, and does not forward the token.
"""

from __future__ import annotations

from headroom.gateway import key_sets
from headroom.gateway.listener.client_headers import TENANT
from headroom.gateway.type_urls import CLUSTER, Json, seconds, typed
from headroom.gateway.values import RemoteKeys, Route

PROVIDER = "clients"
KEYS_KEPT_S = 300.0
"""A rotated key is known after this; until then the issuer has to sign with the one before."""


def build(route: Route) -> list[Json]:
    """Build the filter, if the service has an issuer."""
    tokens = route.tokens
    if tokens is None:
        return []
    provider: Json = {
        "issuer": tokens.issuer,
        "audiences": list(tokens.audiences),
        "require_expiration": True,
        # By default also a parameter of the path, which logs keep and replicas would get.
        "from_headers": [{"name": "Authorization", "value_prefix": "Bearer "}],
        "claim_to_headers": [{"header_name": _CLAIM, "claim_name": tokens.tenant_claim}],
        **_keys(route, tokens.keys),
    }
    required: Json = {"provider_name": PROVIDER}
    if tokens.optional:
        required = {"requires_any": {"requirements": [required, {"allow_missing": {}}]}}
    return [
        typed(
            "envoy.filters.http.jwt_authn",
            "envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication",
            providers={PROVIDER: provider},
            rules=[{"match": {"prefix": "/"}, "requires": required}],
        ),
        _TELL_TENANT,
    ]


_CLAIM = "x-headroom-claim"
"""Envoy removes this header from every request before it writes the claim."""
_TELL_TENANT = typed(
    "envoy.filters.http.header_mutation",
    "envoy.extensions.filters.http.header_mutation.v3.HeaderMutation",
    mutations={
        "request_mutations": [
            {
                "append": {
                    "header": {"key": TENANT, "value": f"%REQ({_CLAIM})%"},
                    "append_action": "OVERWRITE_IF_EXISTS_OR_ADD",
                }
            },
            {"remove": _CLAIM},
        ]
    },
)
"""Overwrites the tenant where there is a claim; else the address, or the trusted hop's, stays."""


def fetches(route: Route) -> bool:
    """Return whether a Service has the keys of the tokens."""
    return route.tokens is not None and isinstance(route.tokens.keys, RemoteKeys)


def clusters(route: Route) -> list[Json]:
    """Build the cluster of the Service that has the keys; none with keys in the resource."""
    if route.tokens is None or isinstance(route.tokens.keys, str):
        return []
    keys = route.tokens.keys
    address = {"address": _host(route, keys), "port_value": keys.port}
    hosts = [{"endpoint": {"address": {"socket_address": address}}}]
    name = _authority(route, keys)
    return [
        {
            "@type": CLUSTER,
            "name": name,
            "type": "LOGICAL_DNS",
            "dns_lookup_family": "V4_PREFERRED",
            "connect_timeout": seconds(1.0),
            "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": hosts}]},
        }
    ]


def _keys(route: Route, keys: str | RemoteKeys) -> Json:
    if isinstance(keys, str):
        return {"local_jwks": {"inline_string": keys}}
    uri = f"http://{_authority(route, keys)}{keys.path}"
    within = seconds(key_sets.FETCH_WITHIN_S)
    where = {"uri": uri, "cluster": key_sets.NAME, "timeout": within}
    # Fetched before the listener answers, so that the first request need not wait.
    fetched = {"http_uri": where, "cache_duration": seconds(KEYS_KEPT_S), "async_fetch": {}}
    return {"remote_jwks": fetched}


def _host(route: Route, keys: RemoteKeys) -> str:
    """Return the name of a Service of the route's own namespace, and of no other."""
    return f"{keys.service}.{route.namespace}.svc"


def _authority(route: Route, keys: RemoteKeys) -> str:
    """Return the host of the keys, by which `key_sets.listener` finds their cluster."""
    return f"{_host(route, keys)}:{keys.port}"
