"""mosec, one stage with batches: other stages count as waiting."""

from __future__ import annotations

from headroom.profiles.quantities import MISS, SUCCESS, Histogram, having, lacking, metric
from headroom.profiles.values import Profile

_BOUNDS_S = tuple(0.001 * 2**n for n in range(13))
_WORKERS = lacking("stage", "total")

MOSEC = Profile(
    name="mosec",
    title="mosec",
    port=8000,
    ready_path="/",
    live_path="/",
    batch_setting="max_batch_size of append_worker",
    answered=metric("mosec_service_throughput_total", having("code", SUCCESS), lazy=True),
    missed=metric("mosec_service_throughput_total", having("code", MISS), lazy=True),
    in_flight=metric("mosec_service_remaining_task"),
    latency=Histogram(
        name="mosec_service_process_duration_second",
        labels=(having("stage", "total"),),
        lazy=True,
        bounds_s=_BOUNDS_S,
    ),
    batches=metric("mosec_service_process_duration_second_count", _WORKERS, lazy=True),
    batch_items=metric("mosec_service_batch_size_sum", _WORKERS, lazy=True),
    batch_seconds=metric("mosec_service_process_duration_second_sum", _WORKERS, lazy=True),
    missing=(
        "Requests in flight above the maximum batch size count as waiting (one gauge for both).",
        "Arrivals are ended requests plus requests in flight: it counts requests when they end.",
    ),
)
