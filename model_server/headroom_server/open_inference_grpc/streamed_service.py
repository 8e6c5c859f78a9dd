"""The port of a service whose requests come in streams."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from headroom_server.open_inference_grpc import messages_pb2 as pb
from headroom_server.open_inference_grpc.stream_writer import StreamWriter

Serve = Callable[[], Awaitable[bytes | None]]


class StreamedService(Protocol):
    """Interface of the service that answers streams."""

    ordered: bool
    """Whether answers must come in the order of their requests."""
    unread_s: float
    """An answer that a client has not read for so long ends its stream."""

    def decode(self, raw: bytes) -> pb.ModelInferRequest:
        """Parse a message.

        Raises:
            InvalidRequestError: it is none, or larger than any request.
        """

    def accept(
        self, request: pb.ModelInferRequest, context: Any, client: str, writer: StreamWriter
    ) -> Serve:
        """Check a request, and return its function: it returns the answer, or None if it wrote it.

        Raises:
            RequestError: it gets an error.
        """
