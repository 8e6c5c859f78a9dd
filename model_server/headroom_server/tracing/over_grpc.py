"""Traces of inference over gRPC, by an interceptor. The context is metadata."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import grpc
from grpc import aio

from headroom_server.tracing.current import TRACE
from headroom_server.tracing.open_telemetry import OpenTelemetry

SERVICE, METHOD = "inference.GRPCInferenceService", "ModelInfer"
CONTEXT = ("traceparent", "tracestate")
SERVER_ERRORS = {
    grpc.StatusCode.UNKNOWN,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.UNAVAILABLE,
}


class TracedGrpc(aio.ServerInterceptor):  # type: ignore[misc]
    """Begins and ends a trace for each inference; other calls are not traced."""

    def __init__(self, telemetry: OpenTelemetry) -> None:
        self._telemetry = telemetry

    async def intercept_service(
        self, continuation: Callable[[Any], Awaitable[Any]], details: Any
    ) -> Any:
        """Return the handler of a call."""
        handler = await continuation(details)
        if handler is None or details.method != f"/{SERVICE}/{METHOD}":
            return handler
        carrier = {name: value for name, value in details.invocation_metadata if name in CONTEXT}

        async def traced(messages: Any, context: Any) -> Any:
            return await self._traced(handler.stream_unary, carrier, messages, context)

        return grpc.stream_unary_rpc_method_handler(traced)

    async def _traced(
        self, behaviour: Any, carrier: dict[str, str], messages: Any, context: Any
    ) -> Any:
        attributes = {"rpc.system": "grpc", "rpc.service": SERVICE, "rpc.method": METHOD}
        begun = self._telemetry.begin(carrier, f"{SERVICE}/{METHOD}", attributes)
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
