"""Key sets that gateways fetch, and the cost of a token that is tried with each of their keys.

A token that names no key, or one that all keys have, is tried with each, on a thread that all
services share: 0.03 ms for a key of P-256, Ed25519 or RSA up to 4096 bits, 0.4 ms for P-521; a
plain request takes 0.1 ms. Envoy bounds no more than a set's bytes, and 34 keys of P-521 fit into
8 KiB. So sets are fetched through one listener inside the gateway, which looks at them.
"""

from __future__ import annotations

from headroom.api.service_spec.client_tokens import (
    MOST_KEYS,
    MOST_MODULUS_CHARACTERS,
    MOST_SLOW_KEYS,
    SLOW_CURVES,
)
from headroom.gateway.type_urls import CLUSTER, LISTENER, Json, seconds, typed

BYTES = 8 << 10
"""Largest size of a set that is fetched."""
FETCH_WITHIN_S = 5.0
NAME = "-key-sets"
"""Name of the listener, and of the cluster that leads to it; it forwards by the host's name.
Resources are sent in the order of their names, and a service's first fetch needs it."""

MARK = "x-headroom-key-set"
"""Header of what is fetched. Its address is what a tenant's Service, or its DNS, says: the pages of
this gateway are refused."""

# Escapes of ASCII are resolved, so that none hides a curve; what is counted twice is refused early.
_LOOK = f"""
function envoy_on_response(handle)
  local body = handle:body()
  local text = body and body:getBytes(0, body:length()) or ""
  text = text:gsub("\\\\u00(%x%x)", function(code) return string.char(tonumber(code, 16)) end)
  local objects, slow = select(2, text:gsub("{{", "")), 0
  for _, curve in ipairs({{{", ".join(f'"{one}"' for one in SLOW_CURVES)}}}) do
    slow = slow + select(2, text:gsub(curve:gsub("%-", "%%-"), ""))
  end
  local refused = objects > {MOST_KEYS} + 1 or slow > {MOST_SLOW_KEYS} or text:find("CERTIFICATE")
  for modulus in text:gmatch('"n"%s*:%s*"([^"]*)"') do
    refused = refused or #modulus > {MOST_MODULUS_CHARACTERS}
  end
  if refused then handle:headers():replace(":status", "502") end
end
"""


def listener() -> Json:
    """Build the listener."""
    lua = "envoy.extensions.filters.http.lua.v3.Lua"
    script = typed("envoy.filters.http.lua", lua, default_source_code={"inline_string": _LOOK})
    action = {"cluster_header": ":authority", "timeout": seconds(FETCH_WITHIN_S)}
    routes = [{"match": {"prefix": "/"}, "route": action}]
    manager = typed(
        "envoy.filters.network.http_connection_manager",
        "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix=NAME,
        codec_type="HTTP1",
        generate_request_id=False,
        route_config={
            "name": NAME,
            "request_headers_to_add": [{"header": {"key": MARK, "value": "true"}}],
            "virtual_hosts": [{"name": NAME, "domains": ["*"], "routes": routes}],
        },
        http_filters=[
            script,
            typed(
                "envoy.filters.http.router",
                "envoy.extensions.filters.http.router.v3.Router",
                suppress_envoy_headers=True,
            ),
        ],
    )
    return {
        "@type": LISTENER,
        "name": NAME,
        "internal_listener": {},
        "per_connection_buffer_limit_bytes": BYTES,
        "filter_chains": [{"filters": [manager]}],
    }


def cluster() -> Json:
    """Build the cluster of the listener."""
    address = {"envoy_internal_address": {"server_listener_name": NAME}}
    hosts = [{"endpoint": {"address": address}}]
    return {
        "@type": CLUSTER,
        "name": NAME,
        "type": "STATIC",
        "connect_timeout": seconds(1.0),
        "load_assignment": {"cluster_name": NAME, "endpoints": [{"lb_endpoints": hosts}]},
    }
