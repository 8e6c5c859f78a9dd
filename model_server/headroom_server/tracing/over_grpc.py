"""Traces of inference over gRPC, by an interceptor. The context is metadata."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import grpc
from grpc import aio

from headroom_server.tracing.current import TRACE
from headroom_server.tracing.open_telemetry import OpenTelemetry

SERVICE, UNARY, STREAM = "inference.GRPCInferenceService", "ModelInfer", "ModelStreamInfer"
CONTEXT = ("traceparent", "tracestate")
SERVER_ERRORS = {
    grpc.StatusCode.UNKNOWN,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.UNAVAILABLE,
}


class TracedGrpc(aio.ServerInterceptor):  # type: ignore[misc]
    """Begins and ends a trace for each inference; other calls are not traced.

    A stream is one span, with the stages of its first request.
    """

    def __init__(self, telemetry: OpenTelemetry) -> None:
        self._telemetry = telemetry

    async def intercept_service(
        self, continuation: Callable[[Any], Awaitable[Any]], details: Any
    ) -> Any:
        """Return the handler of a call."""
        handler = await continuation(details)
        service, _, method = details.method.removeprefix("/").partition("/")
        if handler is None or service != SERVICE or method not in (UNARY, STREAM):
            return handler
        carrier = {name: value for name, value in details.invocation_metadata if name in CONTEXT}
        behaviour = handler.stream_unary if method == UNARY else handler.stream_stream

        async def traced(messages: Any, context: Any) -> Any:
            return await self._traced(method, behaviour, carrier, messages, context)

        if method == UNARY:
            return grpc.stream_unary_rpc_method_handler(traced)
        return grpc.stream_stream_rpc_method_handler(traced)

    async def _traced(
        self, method: str, behaviour: Any, carrier: dict[str, str], messages: Any, context: Any
    ) -> Any:
        attributes = {"rpc.system": "grpc", "rpc.service": SERVICE, "rpc.method": method}
        begun = self._telemetry.begin(carrier, f"{SERVICE}/{method}", attributes)
        context.set_trailing_metadata((("traceparent", begun.traceparent),))
        token, code = TRACE.set(begun.trace), grpc.StatusCode.CANCELLED
        try:
            answer = await behaviour(messages, context)
            code = grpc.StatusCode.OK
            return answer
        except aio.AbortError:
            code = _code(context)
            raise
        finally:
            TRACE.reset(token)
            if begun.trace is not None:
                self._telemetry.end(
                    begun.trace,
                    {"rpc.grpc.status_code": code.value[0]},
                    failed=code in SERVER_ERRORS,
                )


def _code(context: Any) -> grpc.StatusCode:
    code = context.code()
    for one in grpc.StatusCode:
        if code in (one, one.value[0]):
            return one
    return grpc.StatusCode.UNKNOWN
