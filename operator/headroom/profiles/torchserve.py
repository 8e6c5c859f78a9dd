"""TorchServe (archived): counters in microseconds, no queue gauge, no histogram."""

from __future__ import annotations

from headroom.profiles.quantities import MICROSECONDS, metric
from headroom.profiles.values import Profile

TORCHSERVE = Profile(
    name="torchserve",
    title="TorchServe",
    port=8080,
    metrics_port=8082,
    ready_path="/ping",
    live_path="/ping",
    batch_setting="batchSize of the model",
    model_label="model_name",
    witness=(
        *metric("CPUUtilization", optional=True),
        *metric("ts_inference_requests_total", optional=True),
    ),
    empty_until_asked=True,
    answered=metric("ts_inference_requests_total", lazy=True),
    waiting_seconds=metric("ts_queue_latency_microseconds", scale=MICROSECONDS, lazy=True),
    running_seconds=(
        *metric("ts_inference_latency_microseconds", scale=MICROSECONDS, lazy=True),
        *metric("ts_queue_latency_microseconds", scale=-MICROSECONDS, lazy=True),
    ),
    missing=(
        "There is no latency histogram: latency is modelled from the batches, not measured.",
        "Waiting and running requests are derived from queue and execution time (Little's law).",
        "Arrivals are answered + waiting + running requests; rejections are counted per host only.",
        "Nothing is exposed before the first request.",
    ),
)
