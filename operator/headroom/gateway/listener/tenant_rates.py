"""Request rates per tenant: Envoy's local rate limit with a token bucket per recent tenant.

A service is routed through one gateway, so that gateway's bucket holds the tenant's whole rate.
"""

from __future__ import annotations

from headroom.gateway.listener.local_replies import RETRY_AFTER_S
from headroom.gateway.type_urls import Json, typed
from headroom.gateway.values import Route

REMEMBERED = 1000
"""Buckets per service; a further tenant replaces the one that was idle for the longest time."""


def build(route: Route, header: str) -> list[Json]:
    """Build the filter, if there is a limit. Requests without the header share one bucket."""
    limit = route.tenants
    if limit is None or limit.rate_rps is None:
        return []
    bucket = {
        "max_tokens": limit.burst,
        "tokens_per_fill": limit.rate_rps,
        "fill_interval": "1s",
    }
    always = {"default_value": {"numerator": 100, "denominator": "HUNDRED"}}
    tenant = {"header_name": header, "descriptor_key": "tenant"}
    return [
        typed(
            "envoy.filters.http.local_ratelimit",
            "envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit",
            stat_prefix="tenants",
            token_bucket=bucket,
            filter_enabled=always,
            filter_enforced=always,
            always_consume_default_token_bucket=False,
            rate_limits=[{"actions": [{"request_headers": tenant}]}],
            descriptors=[{"entries": [{"key": "tenant"}], "token_bucket": bucket}],
            max_dynamic_descriptors=REMEMBERED,
            response_headers_to_add=[
                {"header": {"key": "retry-after", "value": str(RETRY_AFTER_S)}}
            ],
        )
    ]
