"""The bounds and options of all calls, and their errors as status codes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import grpc
from google.protobuf.message import DecodeError, Message

from headroom_server.errors import (
    InvalidRequestError,
    RefusedError,
    RequestError,
    TooLargeError,
)
from headroom_server.open_inference_grpc.failures import CODES
from headroom_server.open_inference_grpc.message_reads import MessageReads, client_of
from headroom_server.open_inference_grpc.stream_reads import StreamReads
from headroom_server.open_inference_grpc.wire_bounds import UNCHECKED_BYTES
from headroom_server.protocols.retry_headers import RETRY_HEADERS

log = logging.getLogger("headroom_server")

SERVICE = "inference.GRPCInferenceService"

_RETRY_HEADERS = frozenset(name.decode() for name in RETRY_HEADERS)

DEADLINE_SLACK_S = 0.05
"""A call cancelled this shortly before its deadline, or later, is a deadline, not a cancellation:
the client's clock is ahead by the network latency."""

R = TypeVar("R", bound=Message)
T = TypeVar("T")


class Calls:
    """Makes the handlers of methods; `reject` counts invalid requests by reason."""

    def __init__(
        self, reads: MessageReads, streams: StreamReads, reject: Callable[[str], object]
    ) -> None:
        self.reads = reads
        self.streams = streams
        self._reject = reject
        self._expiring: set[asyncio.Task[Any]] = set()

    def unary(
        self, takes: type[R], method: Callable[[R, Any], Awaitable[Message]]
    ) -> grpc.RpcMethodHandler:
        """Handle a call with one small message each way."""

        async def answer(client: str, context: Any) -> Message:
            async with self.reads.message(client, context) as raw:
                if len(raw) > UNCHECKED_BYTES:
                    raise TooLargeError(
                        f"the message must have at most {UNCHECKED_BYTES} bytes; got {len(raw)}"
                    )
                request = parsed(takes, raw)
            return await method(request, context)

        return self.handler(answer)

    def handler(
        self, method: Callable[[str, Any], Awaitable[Message | bytes]]
    ) -> grpc.RpcMethodHandler:
        """Handle a call with one message each way, which `method` reads when it is its turn."""

        async def answer(_: Any, context: Any) -> bytes:
            message = await self.guarded(method, context)
            return message if isinstance(message, bytes) else message.SerializeToString()

        return grpc.stream_unary_rpc_method_handler(answer)

    async def guarded(self, method: Callable[[str, Any], Awaitable[T]], context: Any) -> T:
        """Count a call while a method serves it; an error becomes its status."""
        client = client_of(context)
        try:
            with self.reads.admitted(client):
                return await method(client, context)
        except RequestError as error:
            # its frames hold the message, and this frame holds it: a cycle, until collected
            refused = self.refused(error)
        except Exception as error:  # noqa: BLE001 - logged there
            refused = self.refused(error)
        await context.abort(CODES[refused.status], refused.message, _trailing(refused))
        raise AssertionError("abort raises")

    def refused(self, error: Exception) -> RequestError:
        """Return the error that the client gets; it is counted, or logged."""
        if not isinstance(error, RequestError):
            log.error("a call failed", exc_info=error)
            return RequestError("internal error; see the server's log")
        if isinstance(error, InvalidRequestError) and not error.counted:
            self._reject(error.reason)
            error.counted = True
        return error.with_traceback(None)

    async def outlasting(self, context: Any, serving: Coroutine[Any, Any, T]) -> T:
        """Serve a request. If the client leaves, it ends; at the call's deadline, it expires.

        gRPC cancels a call at its deadline. Its request is left in the queue to expire, so that
        it is counted as expired.
        """
        left_s = context.time_remaining()
        if left_s is None:
            return await serving
        task = asyncio.create_task(serving)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            self.abandon(context, left_s, (task,))
            raise

    def abandon(
        self, context: Any, left_s: float | None, tasks: tuple[asyncio.Task[Any], ...]
    ) -> None:
        """End the requests of a call that is cancelled, or leave them to expire at its deadline.

        `left_s` is the time that was left when it began.
        """
        expires = left_s is not None and context.time_remaining() <= min(
            DEADLINE_SLACK_S, left_s / 2
        )
        for task in tasks:
            if not expires:
                task.cancel()
            self._expiring.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._expiring.discard(task)
        if not task.cancelled():
            task.exception()  # looked at, so that asyncio does not log it


def parsed(takes: type[R], raw: bytes) -> R:
    """Parse a message.

    Raises:
        InvalidRequestError: it is none.
    """
    try:
        return takes.FromString(raw)
    except DecodeError as error:
        raise InvalidRequestError(f"the message must be a {takes.__name__}") from error


def earliest(*limits_s: float | None) -> float | None:
    """Return the earliest of several deadlines."""
    return min((limit for limit in limits_s if limit is not None), default=None)


def headers_of(context: Any) -> dict[bytes, bytes]:
    """Return the metadata that are options of requests."""
    return {
        name.encode(): value.encode() if isinstance(value, str) else value
        for name, value in context.invocation_metadata()
        if name.startswith("x-") or name in _RETRY_HEADERS
    }


def _trailing(error: RequestError) -> tuple[tuple[str, str], ...]:
    if not isinstance(error, RefusedError):
        return ()
    return (
        ("retry-after", str(error.retry_after_s)),
        ("grpc-retry-pushback-ms", str(1000 * error.retry_after_s)),
    )
