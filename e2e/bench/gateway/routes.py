"""The route of a service that a benchmark publishes: plain HTTP, no retry, no slow start."""

from __future__ import annotations

from headroom.gateway import Route


def bench_route(port: int, name: str = "model", timeout_s: float = 60.0) -> Route:
    """Return the route of the service `name` in the namespace `bench`."""
    return Route(
        namespace="bench",
        name=name,
        port=port,
        timeout_s=timeout_s,
        per_try_timeout_s=None,
        max_body_bytes=1 << 20,
        slow_start_s=None,
        grpc_port=None,
    )
