"""The model server of this project: every quantity is exposed, nothing is derived."""

from __future__ import annotations

from headroom.profiles.values import Histogram, Profile, having, lacking, metric

HEADROOM = Profile(
    name="headroom",
    title="Headroom model server",
    port=8000,
    ready_path="/v2/health/ready",
    live_path="/v2/health/live",
    batch_setting="HEADROOM_MAX_BATCH_SIZE",
    model_label="model",
    witness=metric("headroom_requests_total", having("outcome", "ok")),
    arrived=metric("headroom_requests_received_total"),
    retried=metric("headroom_requests_retried_total", optional=True),
    missed=metric("headroom_requests_total", lacking("outcome", "ok"), lazy=True),
    waiting=metric("headroom_requests_waiting"),
    running=metric("headroom_requests_running"),
    latency=Histogram(name="headroom_request_duration_seconds"),
    batches=metric("headroom_execution_duration_seconds_count"),
    batch_items=metric("headroom_batch_size_sum"),
    batch_seconds=metric("headroom_execution_duration_seconds_sum"),
    fixed_cost_s=metric("headroom_cost_fixed_seconds", optional=True),
    item_cost_s=metric("headroom_cost_per_item_seconds", optional=True),
    max_batch=metric("headroom_max_batch_size", optional=True),
    pages=metric("headroom_scrapes_total", optional=True),
    conserves=True,
)
