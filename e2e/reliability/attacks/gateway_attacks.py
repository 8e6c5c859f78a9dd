"""Table of the hostile clients of a gateway. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MIB = 1 << 20
POST = "POST / HTTP/1.1\\r\\nhost: a\\r\\nx-tenant: flood\\r\\n"
GET = POST.replace("POST", "GET")
UPGRADE = f"{GET}connection: Upgrade\\r\\nupgrade: websocket"
END = "\\r\\n\\r\\n"
PAST_COPY = 520
"""Bytes of a segment that Envoy does not copy behind the last one: it occupies a page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """Many connections that each send the same; escapes are those of the client's `--head`."""

    connections: int
    head: str = ""
    body_bytes: int = 0
    segment_bytes: int = 1 << 14
    gap_s: float = 0.5
    repeats: bool = False
    reads: bool = True

    @property
    def words(self) -> list[str]:
        """Return the arguments of `hostile_client`, behind the port."""
        words = ["--count", str(self.connections), "--head", self.head, "--again"]
        words += ["--body", str(self.body_bytes), "--segment", str(self.segment_bytes)]
        words += ["--gap", str(self.gap_s), "--seconds", "3600"]
        words += ["--repeat"] if self.repeats else []
        return words if self.reads else [*words, "--unread"]


def _announced(number: int) -> str:
    return f"{POST}content-length: {number}{END}"


def _of(tenant: str, number: int) -> str:
    return f"{POST}x-tenant: {tenant}\\r\\ncontent-length: {number}{END}"


ATTACKS: Mapping[str, Attack] = {
    "slow uploads of 16 MiB": Attack(
        connections=500, head=_announced(16 * MIB), body_bytes=15 * MIB
    ),
    "slow uploads of 8 KiB": Attack(
        connections=500, head=_announced(8192), body_bytes=8000, segment_bytes=PAST_COPY
    ),
    "slow uploads in chunks": Attack(
        connections=500,
        head=f"{POST}transfer-encoding: chunked{END}1fff\\r\\n",
        body_bytes=8000,
        segment_bytes=PAST_COPY,
    ),
    "large bodies in chunks": Attack(
        connections=100,
        head=f"{POST}transfer-encoding: chunked{END}ffffff\\r\\n",
        body_bytes=MIB,
    ),
    "idle connections": Attack(connections=10_000),
    "slow heads": Attack(connections=500, head=POST + "x: " + "y" * 8000, segment_bytes=PAST_COPY),
    "upgrades": Attack(connections=200, head=UPGRADE + END),
    "upgrades with bodies": Attack(
        connections=200,
        head=f"{POST}connection: Upgrade\\r\\nupgrade: websocket\\r\\ncontent-length: 9999{END}",
        body_bytes=9000,
    ),
    "tunnels": Attack(connections=200, head=f"CONNECT a:1 HTTP/1.1\\r\\nhost: a{END}"),
    "answers that are not read": Attack(
        connections=200,
        head=f"GET / HTTP/1.1\\r\\nhost: a{END}" * 50,
        gap_s=0.1,
        repeats=True,
        reads=False,
    ),
    "flood of a tenant": Attack(
        connections=100, head=_of("loud", 1) + "x", gap_s=0.1, repeats=True
    ),
    "flood without a tenant": Attack(
        connections=100, head=_announced(1) + "x", gap_s=0.1, repeats=True
    ),
    "flood of a tenant's large bodies": Attack(
        connections=100, head=_of("loud", 20_000) + "x" * 20_000, gap_s=0.1, repeats=True
    ),
    "slow uploads of a tenant": Attack(
        connections=500, head=_of("loud", MIB), body_bytes=MIB - 1, segment_bytes=PAST_COPY
    ),
}
QUICK = ("slow uploads of 16 MiB", "idle connections", "upgrades")
