"""Filters by which Envoy enforces the deadline that a request's header has."""

from __future__ import annotations

from headroom.gateway.listener import retries
from headroom.gateway.type_urls import HTTP_FILTERS, Json, typed


def filters() -> list[Json]:
    """Build filters that make Envoy enforce the request's deadline header, given in seconds.

    Envoy understands grpc-timeout in milliseconds; once it is set, the route is computed again. The
    replica handles values that are not numbers. Two rewrites are needed, since one cannot both pad
    and cut: 1.5 -> 1.5000m -> 1500m; a script would cost 250 kB per service. A deadline of 0 is
    none for Envoy, and the replica rejects it.
    """
    return [
        _copy(retries.DEADLINE, "padded", _SECONDS, r"\1.\2000m"),
        _set(_PADDED, "padded"),
        _copy(_PADDED, "deadline", _MILLISECONDS, r"\1\2\3", remove=True),
        _set(retries.GRPC_DEADLINE, "deadline"),
        _RECOMPUTE_ROUTE,
    ]


_METADATA = "headroom"
_PADDED = "x-headroom-deadline"
_SECONDS = r"^([0-9]+)(?:\.([0-9]*))?$|^.*$"
_MILLISECONDS = r"^(?:0|([0-9]+))\.([0-9][0-9][0-9])[0-9]*(m)$|^.*$"
"""Values that do not match become empty and are not written. The patterns have no counts in braces,
each of which would cost kilobytes per service."""


def _copy(header: str, key: str, regex: str, substitution: str, *, remove: bool = False) -> Json:
    """Copy a rewritten header to the metadata for the next filter."""
    rule = {
        "metadata_namespace": _METADATA,
        "key": key,
        "type": "STRING",
        "regex_value_rewrite": {"pattern": {"regex": regex}, "substitution": substitution},
    }
    return typed(
        "envoy.filters.http.header_to_metadata",
        f"{HTTP_FILTERS}.header_to_metadata.v3.Config",
        request_rules=[{"header": header, "on_header_present": rule, "remove": remove}],
    )


_RECOMPUTE_ROUTE = typed(
    "envoy.filters.http.set_filter_state",
    f"{HTTP_FILTERS}.set_filter_state.v3.Config",
    on_request_headers=[
        {
            "object_key": f"{_METADATA}.deadline",
            "factory_key": "envoy.string",
            "skip_if_empty": True,
            "format_string": {
                "text_format_source": {
                    "inline_string": f"%DYNAMIC_METADATA({_METADATA}:deadline)%"
                },
                "omit_empty_values": True,
            },
        }
    ],
    clear_route_cache=True,
)
"""Sets an unused object: the filter's purpose is to recompute the route with the deadline."""


def _set(header: str, key: str) -> Json:
    """Set a header to the copied value, if there is one."""
    value = {"key": header, "value": f"%DYNAMIC_METADATA({_METADATA}:{key})%"}
    append = {"header": value, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}
    return typed(
        "envoy.filters.http.header_mutation",
        f"{HTTP_FILTERS}.header_mutation.v3.HeaderMutation",
        mutations={"request_mutations": [{"append": append}]},
    )
