"""The plan that the load generator reads and the answers that it prints: JSON on pipes."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from pydantic import BaseModel, ConfigDict, Field

from serverbench.generator.arrivals import Segment


class Status(IntEnum):
    """End of a request without an HTTP status."""

    LOST = 0
    """The connection ended before the answer, or there was none."""
    TIMED_OUT = -1
    WRONG = -2
    """200, and not the expected answer."""
    ABANDONED = -3
    """The client left on purpose."""


OK = 200


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Kind(_Message):
    """One sort of request: its bytes, and its share of all."""

    request: str
    """Head and body, one character per byte (Latin-1)."""
    expected: str = ""
    """Content of the body of a 200."""
    share: float = Field(1.0, gt=0)
    abandoned_after_s: float | None = None


class Plan(_Message):
    """The load on one server."""

    port: int
    segments: tuple[Segment, ...]
    """Poisson arrivals; of a closed loop only their length counts."""
    kinds: tuple[Kind, ...]
    seed: int = 1
    warm_connections: int = 32
    timeout_s: float = 10.0
    max_connections: int = 2000
    clients: tuple[int, ...] = ()
    """Ports of clients that keep their connections, as behind a ClusterIP: each request comes from
    one of them, at random. Empty: all requests share the connections to `port`."""
    in_flight: int = 0
    """Closed loop: this many requests are always in flight. 0: open loop."""


class Answers(_Message):
    """The results, in the order in which requests were due."""

    due_s: tuple[float, ...]
    took_s: tuple[float | None, ...]
    """From the instant a request was due to the end of its answer; None without an answer."""
    statuses: tuple[int, ...]
    """HTTP status, or a `Status`."""
    kinds: tuple[int, ...]
    cpu_s: float
    """CPU time of generating the load."""
    late_p99_s: float
    """Delay with which requests were sent."""
    retried: int
    """Sent again, since a kept connection had been closed meanwhile."""
    connections: int
    late_s: tuple[float, ...] = ()
    """Delay with which each request was sent."""


def request_bytes(
    path: str,
    body: bytes,
    *,
    headers: Sequence[tuple[str, str]] = (),
) -> str:
    """A POST, as a `Kind` holds it."""
    lines = [
        f"POST {path} HTTP/1.1",
        "host: localhost",
        "content-type: application/json",
        f"content-length: {len(body)}",
        *(f"{name}: {value}" for name, value in headers),
    ]
    return "\r\n".join(lines) + "\r\n\r\n" + body.decode("latin-1")
