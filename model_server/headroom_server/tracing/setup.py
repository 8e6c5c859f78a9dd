"""Configures tracing from OpenTelemetry's standard variables."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headroom_server.tracing.open_telemetry import OpenTelemetry

log = logging.getLogger("headroom_server")

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


def configured(environment: Mapping[str, str]) -> bool:
    """Return whether there is an endpoint, and neither the SDK nor traces are disabled."""
    off = environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    exporter = environment.get("OTEL_TRACES_EXPORTER", "otlp").strip().lower()
    return not off and exporter != "none" and any(environment.get(name) for name in ENDPOINTS)


def telemetry_of(environment: Mapping[str, str]) -> OpenTelemetry | None:
    """Return the tracer; None if nothing is configured or the library is not installed.

    An endpoint is often set for all pods of a cluster: a missing library must not prevent serving.
    """
    if not configured(environment):
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415
            OTLPSpanExporter,
        )
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

        from headroom_server.tracing.open_telemetry import OpenTelemetry  # noqa: PLC0415
    except ModuleNotFoundError as error:
        log.warning("an OTLP endpoint is configured; without %s nothing is traced", error.name)
        return None
    return OpenTelemetry(BatchSpanProcessor(OTLPSpanExporter()))
