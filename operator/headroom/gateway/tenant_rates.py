"""What each tenant may ask for: Envoy's local rate limit, a bucket for each that was seen of late.

A service is led to one gateway, so the bucket of one gateway is the tenant's.
"""

from __future__ import annotations

from headroom.gateway.local_replies import RETRY_AFTER_S
from headroom.gateway.type_urls import Json, typed
from headroom.gateway.values import Route

REMEMBERED = 1000
"""Tenants of a service; one beyond takes the place of the one that was silent the longest."""


def build(route: Route) -> list[Json]:
    """Build the filter, where there is a limit. Who names no tenant has the common bucket."""
    limit = route.tenants
    if limit is None or limit.rate_rps is None:
        return []
    bucket = {
        "max_tokens": limit.burst,
        "tokens_per_fill": limit.rate_rps,
        "fill_interval": "1s",
    }
    always = {"default_value": {"numerator": 100, "denominator": "HUNDRED"}}
    tenant = {"header_name": limit.header, "descriptor_key": "tenant"}
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
