"""One attempt of a held gRPC call at a replica, message by message."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import grpc
import grpc.aio

from headroom.activator.held_request import HeldRequest
from headroom.activator.replayable_stream import ReplayableStream
from headroom.activator.request_buffer import RequestBuffer

CONNECT_WITHIN_S = 0.5
_OWN = ("grpc-", "user-agent", ":")
"""Prefixes of metadata that belongs to one connection and is not forwarded."""


@dataclass(frozen=True, slots=True)
class CallEnd:
    """End of one attempt."""

    code: grpc.StatusCode
    details: str = ""
    trailing: Any = ()
    answered: bool = False
    """Whether the caller has received part of the answer."""
    begun: bool = True
    """Whether the replica may have started the call."""

    def may_go_back(self, stream: ReplayableStream, *, once: bool) -> bool:
        """Return whether another replica may run the call; with `once`, if none has started it."""
        if self.answered or not stream.repeatable:
            return False
        return not self.begun or (self.code is grpc.StatusCode.UNAVAILABLE and not once)


async def forward(
    buffer: RequestBuffer,
    held: HeldRequest,
    channel: grpc.aio.Channel,
    method: str,
    metadata: tuple[tuple[str, str | bytes], ...],
    stream: ReplayableStream,
    context: Any,
) -> CallEnd:
    """Forward a call to a replica and stream its answer back."""
    try:
        async with asyncio.timeout(CONNECT_WITHIN_S):
            await channel.channel_ready()
    except (TimeoutError, grpc.aio.UsageError):  # or its channel was closed meanwhile
        said = "no replica could be reached"
        return CallEnd(grpc.StatusCode.UNAVAILABLE, said, begun=False)
    call = channel.stream_stream(method)(
        stream.replay(), metadata=metadata, timeout=context.time_remaining()
    )
    answered = False
    try:
        begun = await call.initial_metadata()
        if begun is not None and len(begun):
            stream.begun()
            answered = True
            await context.send_initial_metadata(passed_metadata(begun))
        async for message in call:
            stream.begun()
            answered = True
            buffer.answered(held)
            await context.write(message)
        code, details = await call.code(), await call.details()
    except grpc.aio.AioRpcError as error:
        code, details = error.code(), error.details() or ""
    finally:
        call.cancel()
    refused = code is grpc.StatusCode.RESOURCE_EXHAUSTED
    trailing = await call.trailing_metadata()
    return CallEnd(code, details, trailing, answered=answered, begun=not refused)


def passed_metadata(metadata: Any) -> tuple[tuple[str, str | bytes], ...]:
    """Return the metadata of the call without that of the connection."""
    pairs = ((str(key), value) for key, value in metadata or ())
    return tuple((key, value) for key, value in pairs if not key.startswith(_OWN))
