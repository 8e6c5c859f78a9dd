"""Settings: addresses, and limits on connections and bodies. Pure."""

from __future__ import annotations

from pydantic import Field

from headroom_server.settings.fields import Group, Seconds


class ListenerSettings(Group):
    """Listeners."""

    host: str = "0.0.0.0"  # noqa: S104 - a server in a pod is reached at the pod's address
    """Address to listen on."""
    port: int = Field(8000, ge=0, le=65_535)
    """HTTP port. 0: the system chooses one, which is logged."""
    grpc_port: int | None = Field(None, ge=0, le=65_535)
    """gRPC port on the same host. Default: no gRPC, which saves 20 MB."""
    max_body_bytes: int = Field(8 * 1024 * 1024, ge=1024, le=1024**3)
    """Maximum size of one request's body, in bytes."""
    max_receiving_bytes: int | None = Field(None, ge=1024, le=1 << 40)
    """Maximum bytes of all requests that are arriving; one client may have at most as many as are
    free. Default: four of the largest bodies, at least 32 MiB."""
    max_connections: int = Field(2048, ge=2, le=1_000_000)
    """Maximum open HTTP connections; one client may have at most as many as are free."""
    receive_timeout_s: Seconds = 30.0
    """Maximum time from the first to the last byte of a request; slower ones get 408."""
    connection_max_age_s: Seconds = 15.0
    """Mean age at which a connection is closed after a response; varied by up to 25 %."""
    connection_idle_s: Seconds = 120.0
    """Time after which an idle connection is closed. Longer than common clients keep them (Go
    90 s, aiohttp 15 s), so that clients close first."""
