"""gRPC channels to replicas: opened at the first call, closed once their replica is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

import grpc.aio

from headroom.gateway.values import Endpoint

WINDOWS = (
    # What a caller, or a replica, may send before it is read.
    ("grpc.http2.lookahead_bytes", 1 << 14),
    ("grpc.http2.bdp_probe", 0),
    ("grpc.max_concurrent_streams", 1024),
)
_TO_REPLICAS = (
    # An unreachable replica is retried as soon as the next call is dispatched.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
)
LAST_CALL_S = 900.0
"""A replica that is gone from the list may still drain: its calls have the longest deadline."""


class ReplicaChannels:
    """The channels in use."""

    def __init__(self) -> None:
        self._channels: dict[Endpoint, grpc.aio.Channel] = {}
        self._closing: set[asyncio.Task[None]] = set()
        """Channels to replicas that are gone, until their last call has ended."""

    def __len__(self) -> int:
        """Channels to replicas that are listed."""
        return len(self._channels)

    def keep(self, known: Collection[Endpoint]) -> None:
        """Close the channels to replicas that are no longer known."""
        for at in [at for at in self._channels if at not in known]:
            closing = asyncio.create_task(self._channels.pop(at).close(grace=LAST_CALL_S))
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    def to(self, at: Endpoint) -> grpc.aio.Channel:
        """Return the channel to a replica, which is kept while the replica is listed."""
        if at not in self._channels:
            host = f"[{at.address}]" if ":" in at.address else at.address
            self._channels[at] = grpc.aio.insecure_channel(
                f"{host}:{at.port}", options=[*_TO_REPLICAS, *WINDOWS]
            )
        return self._channels[at]

    async def abort(self) -> None:
        """Close all channels at once."""
        for closing in self._closing:
            closing.cancel()
        for channel in self._channels.values():
            await channel.close()
        self._channels.clear()
