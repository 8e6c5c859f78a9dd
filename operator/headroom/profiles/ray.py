"""Ray Serve, as the agent of a Ray node exposes it: milliseconds, updated every ten seconds.

The agent exposes every replica of its node next to 600 kB of its own metrics, and computes sums of
histograms from the middles of their buckets, so a mean is known only within a bucket's width. Only
the lines of Serve's metrics are kept; Prometheus as the source saves the operator the large page.
"""

from __future__ import annotations

from headroom.profiles.quantities import (
    MILLISECONDS,
    MISS,
    SUCCESS,
    Histogram,
    having,
    lacking,
    metric,
)
from headroom.profiles.values import Profile

_BOUNDS_MS = (
    *(1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 300.0, 400.0, 500.0, 1000.0, 2000.0),
    *(5000.0, 10000.0, 60000.0, 120000.0, 300000.0, 600000.0),
)
_OF_USERS = lacking("route", "/-/.*")

RAY = Profile(
    name="ray",
    title="Ray Serve",
    port=8000,
    metrics_port=8080,
    prefix="ray_serve_",
    ready_path="/-/healthz",
    live_path="/-/healthz",
    batch_setting="max_batch_size of @serve.batch, else max_ongoing_requests",
    model_label="application",
    answered=metric(
        "ray_serve_num_http_requests_total",
        _OF_USERS,
        having("status_code", SUCCESS),
        lazy=True,
    ),
    missed=metric(
        "ray_serve_num_http_requests_total", _OF_USERS, having("status_code", MISS), lazy=True
    ),
    in_flight=(
        *metric("ray_serve_deployment_queued_queries", lazy=True),
        *metric("ray_serve_replica_processing_queries"),
    ),
    running_seconds=metric(
        "ray_serve_deployment_processing_latency_ms_sum", scale=MILLISECONDS, lazy=True
    ),
    latency=Histogram(
        name="ray_serve_http_request_latency_ms",
        labels=(_OF_USERS, having("status_code", SUCCESS)),
        scale=MILLISECONDS,
        lazy=True,
        bounds_s=tuple(MILLISECONDS * bound for bound in _BOUNDS_MS),
    ),
    batches=metric("ray_serve_batch_execution_time_ms_count", optional=True),
    batch_items=metric("ray_serve_actual_batch_size_sum", optional=True),
    batch_seconds=metric(
        "ray_serve_batch_execution_time_ms_sum", scale=MILLISECONDS, optional=True
    ),
    missing=(
        "Requests in flight above the maximum batch size count as waiting (one gauge for both).",
        "Arrivals are ended requests plus requests in flight: it counts requests when they end.",
        "Without @serve.batch, the batch size is derived from the execution time (Little's law).",
        "Metrics are updated every 10 s (RAY_metrics_report_interval_ms).",
    ),
)
