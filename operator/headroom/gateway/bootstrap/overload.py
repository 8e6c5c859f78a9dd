"""Actions of a gateway when its memory or its connections run out."""

from __future__ import annotations

from headroom.gateway.bounds import MAX_CONNECTIONS
from headroom.gateway.type_urls import Json, any_of, seconds, typed

RESET_FROM, RESET_ALL, REFUSED_FROM = 0.7, 0.9, 0.95
"""Shares of the container's memory limit: from the first to the second, streams of HTTP/2 are
reset, the largest first; from the last on, new requests are refused. `bounds.py` keeps HTTP/1.1
below all of them."""
CLOSED_FROM, CLOSED_ALL = 0.8, 0.9
"""Shares of the memory limit: between them ever more connections of HTTP/2 that send anything are
closed. Their 100 streams take up to 6 MB, although each holds too little to be reset."""
CROWDED_FROM, CROWDED_ALL, CROWDED_IDLE_S = 0.5, 0.8, 1.0
"""Shares of all connections: between them the time for which one may be idle falls from minutes to
this, so that idle ones of one client give way to others. Envoy can bound the connections of a
service, and not those of an address: for so long one client that opens them at once locks out the
new connections of others, and it locks them out for longer only if it opens as many each second."""
TRACKED_FROM_POWER = 12
"""Streams that hold fewer than 2^12 bytes are not reset."""
_MONITORS = "envoy.extensions.resource_monitors"


def overload_manager(heap_bytes: int | None) -> Json:
    """Build the bounds of connections, and the actions when memory runs out all the same."""
    memory = _memory_monitor(heap_bytes)
    scaled = {"scaling_threshold": RESET_FROM, "saturation_threshold": RESET_ALL}
    crowded = {"scaling_threshold": CROWDED_FROM, "saturation_threshold": CROWDED_ALL}
    closed = {"scaling_threshold": CLOSED_FROM, "saturation_threshold": CLOSED_ALL}
    connections = typed(
        "envoy.resource_monitors.global_downstream_max_connections",
        f"{_MONITORS}.downstream_connections.v3.DownstreamConnectionsConfig",
        max_active_downstream_connections=MAX_CONNECTIONS,
    )
    return {
        "refresh_interval": "0.1s",
        "resource_monitors": [memory, connections],
        "actions": [
            {
                "name": "envoy.overload_actions.stop_accepting_requests",
                "triggers": [{"name": memory["name"], "threshold": {"value": REFUSED_FROM}}],
            },
            {
                "name": "envoy.overload_actions.reset_high_memory_stream",
                "triggers": [{"name": memory["name"], "scaled": scaled}],
            },
            {
                "name": "envoy.overload_actions.reduce_timeouts",
                "triggers": [{"name": connections["name"], "scaled": crowded}],
                "typed_config": any_of(
                    "envoy.config.overload.v3.ScaleTimersOverloadActionConfig",
                    timer_scale_factors=[
                        {
                            "timer": "HTTP_DOWNSTREAM_CONNECTION_IDLE",
                            "min_timeout": seconds(CROWDED_IDLE_S),
                        }
                    ],
                ),
            },
        ],
        "loadshed_points": [
            {
                "name": "envoy.load_shed_points.http2_server_go_away_and_close_on_dispatch",
                "triggers": [{"name": memory["name"], "scaled": closed}],
            }
        ],
        "buffer_factory_config": {"minimum_account_to_track_power_of_two": TRACKED_FROM_POWER},
    }


def _memory_monitor(heap_bytes: int | None) -> Json:
    """Build the measurement of memory: as the kernel counts it, or the heap within a bound.

    The heap has pages that were never touched.
    """
    if heap_bytes is None:
        return typed(
            "envoy.resource_monitors.cgroup_memory",
            f"{_MONITORS}.cgroup_memory.v3.CgroupMemoryConfig",
        )
    return typed(
        "envoy.resource_monitors.fixed_heap",
        f"{_MONITORS}.fixed_heap.v3.FixedHeapConfig",
        max_heap_size_bytes=heap_bytes,
    )
