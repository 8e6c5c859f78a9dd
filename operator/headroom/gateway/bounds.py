"""Bounds of a gateway's clients: bytes per connection, and numbers of connections.

Envoy can bound neither the bytes that requests of HTTP/1.1 have buffered in sum, nor reset the
largest of them (`reset_high_memory_stream` is for HTTP/2 alone). So the sum is bounded by its
factors: no connection holds more than a few kilobytes, whatever is sent over it, and connections
are counted.

The worst that a connection takes, measured (`tests/gateway/test_gateway_memory.py`): 27 kB idle
with a request begun; 92 kB with a body in segments of 512 bytes, each of which occupies a page of
4 KiB, be it received whole or streamed to a replica that does not read; 160 kB with such a body,
the largest headers in both directions and an answer that is not read; 390 kB where tenants have
limits, since such a request passes two listeners; and 64 kB in the kernel.
80 MB idle + 36 MiB of configurations x 12 + 6144 x 466 kB = 3.39 GB; the container's limit is
3328 MiB = 3.49 GB.
"""

from __future__ import annotations

from headroom.gateway.type_urls import Json

BUFFERED_BYTES = 8 << 10
"""Bodies up to this size are received whole; above it they are streamed (`request_bodies.py`)."""
CONNECTION_BUFFER_BYTES = 8 << 10
"""Per connection and direction, on both sides of the gateway."""
MAX_HEADERS_KIB = 16
MAX_ANSWER_HEADERS_KIB = 8
"""Largest headers of a replica. A client that does not read lets each byte take up to four."""
MAX_CONNECTIONS = 6144
"""Connections of all services together; a further one is closed at once."""
SERVICE_CONNECTIONS = 5120
"""Connections of one service, so that it cannot take all."""
WORST_BYTES = 400_000
"""Highest memory of a connection, in Envoy."""
IDLE_BYTES = 80_000_000
"""Memory of an Envoy with its first services."""
BYTES_PER_CONFIGURED = 12
"""Memory of an Envoy for each byte of a configuration."""
KERNEL_BYTES = 16 << 10
"""Memory of a socket, per direction. The kernel doubles it, and counts it against the container."""
STREAMS_PER_CONNECTION = 100
STREAM_WINDOW_BYTES = 1 << 16
"""The smallest that Envoy takes."""
CONNECTION_WINDOW_BYTES = 1 << 18
REPLICA_WINDOW_BYTES = 1 << 20
"""Window of a connection to a replica, which all its gRPC calls share."""
UPGRADED_IDLE_S = 60.0
"""An upgraded connection that carries nothing for so long is ended."""

_SOL_SOCKET, _SO_SNDBUF, _SO_RCVBUF = 1, 7, 8
SOCKET_OPTIONS: list[Json] = [
    {"level": _SOL_SOCKET, "name": option, "int_value": KERNEL_BYTES, "state": "STATE_PREBIND"}
    for option in (_SO_SNDBUF, _SO_RCVBUF)
]
