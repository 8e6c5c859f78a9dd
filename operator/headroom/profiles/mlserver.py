"""MLServer: only its HTTP layer is usable; its queue histograms end at a full batch."""

from __future__ import annotations

from headroom.profiles.quantities import MISS, SUCCESS, Histogram, having, metric
from headroom.profiles.values import Profile, WarmupCall

_INFER = having("path", ".*/infer")

MLSERVER = Profile(
    name="mlserver",
    title="MLServer",
    port=8080,
    metrics_port=8082,
    ready_path="/v2/health/ready",
    live_path="/v2/health/live",
    warmup=WarmupCall(path="/v2/models/{model}/infer", inputs_path="/v2/models/{model}"),
    batch_setting="max_batch_size in model-settings.json",
    witness=metric("python_info"),
    answered=metric(
        "rest_server_requests_total", _INFER, having("status_code", SUCCESS), lazy=True
    ),
    missed=metric("rest_server_requests_total", _INFER, having("status_code", MISS), lazy=True),
    in_flight=metric("rest_server_requests_in_progress", having("method", "POST"), lazy=True),
    running_seconds=metric(
        "rest_server_request_duration_seconds_sum",
        _INFER,
        having("status_code", SUCCESS),
        lazy=True,
    ),
    latency=Histogram(
        name="rest_server_request_duration_seconds",
        labels=(_INFER, having("status_code", SUCCESS)),
        lazy=True,
        bounds_s=(
            *(0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25),
            *(0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
        ),
    ),
    missing=(
        "Requests in flight above the maximum batch size count as waiting (one gauge for both).",
        "Arrivals are ended requests plus requests in flight: it counts requests when they end.",
        "The batch size is derived from the requests in flight, up to the maximum (Little's law).",
        "Requests over gRPC and of several models on one server are not distinguished.",
    ),
)
