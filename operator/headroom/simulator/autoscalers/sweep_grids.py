"""The settings that a sweep tries for each peer.

A grid is a star around the defaults: the defaults first, then each main knob alone at six or more
other values, so that a front over it shows the effect of one knob of a peer on every plant.
Settings that change two knobs are added where the effect of one depends on the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

Setting = Mapping[str, float]


def _star(
    axes: Mapping[str, Iterable[float]], together: Iterable[Setting] = ()
) -> tuple[Setting, ...]:
    alone = [{knob: value} for knob, values in axes.items() for value in values]
    return ({}, *alone, *together)


GRIDS: Mapping[str, tuple[Setting, ...]] = MappingProxyType(
    {
        "hpa-utilization": _star(
            {
                "target_utilization": (0.3, 0.4, 0.5, 0.6, 0.8, 0.9),
                "stabilization_s": (0.0, 60.0, 120.0, 180.0, 600.0, 900.0),
            },
            [{"target_utilization": 0.9, "stabilization_s": 60.0}],
        ),
        "hpa-queue": _star(
            {
                "target_batches": (0.1, 0.2, 0.35, 0.5, 0.75, 2.0),
                "stabilization_s": (0.0, 60.0, 120.0, 180.0, 600.0, 900.0),
            },
            [{"target_batches": 0.2, "stabilization_s": 60.0}],
        ),
        "hpa-p95": _star(
            {
                "target_ratio": (0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
                "stabilization_s": (0.0, 60.0, 120.0, 180.0, 600.0, 900.0),
            },
            [{"target_ratio": 0.7, "stabilization_s": 60.0}],
        ),
        "hpa-rps": _star(
            {
                "target_share": (0.4, 0.5, 0.6, 0.7, 0.9, 1.0),
                "stabilization_s": (0.0, 60.0, 120.0, 180.0, 600.0, 900.0),
            },
            [{"target_share": 0.6, "stabilization_s": 60.0}],
        ),
        "keda": _star(
            {
                "target_batches": (0.1, 0.2, 0.35, 0.5, 0.75, 2.0),
                "latency_ratio": (0.5, 0.6, 0.7, 0.8, 0.9, 1.5),
            },
            [{"target_batches": 0.35, "latency_ratio": 1.5}],
        ),
        "knative": _star(
            {
                "concurrency_batches": (0.25, 0.5, 0.75, 1.25, 1.5, 2.0),
                "stable_window_s": (15.0, 30.0, 90.0, 120.0, 180.0, 300.0),
            },
            [{"concurrency_batches": 0.5, "stable_window_s": 180.0}],
        ),
        "ray-serve": _star(
            {
                "target_ongoing_requests": (1.0, 4.0, 8.0),
                "target_batches": (0.25, 0.5, 0.75, 1.0, 1.5, 2.0),
            },
            [
                {"target_batches": 0.5, "downscale_delay_s": 120.0},
                {"target_batches": 0.5, "upscale_delay_s": 10.0, "downscale_delay_s": 300.0},
                {"target_batches": 0.5, "upscale_delay_s": 10.0, "downscale_delay_s": 60.0},
                {"target_batches": 0.5, "upscale_delay_s": 0.0, "downscale_delay_s": 120.0},
            ],
        ),
        "llm-d-slo": _star(
            {
                "up_threshold": (0.45, 0.65, 0.75, 0.85, 0.95, 1.1),
                "stabilization_s": (0.0, 60.0, 120.0, 300.0, 600.0),
            },
            [{"up_threshold": 0.85, "down_threshold": 0.65}, {"above_floor": 1.0}],
        ),
        "wva-v1": _star(
            {
                "queue_threshold": (3.5, 4.0, 6.0, 8.0, 12.0, 16.0),
                "kv_threshold": (0.5, 0.6, 0.7, 0.85, 0.9, 0.95),
            },
            [{"queue_threshold": 12.0, "kv_threshold": 0.95}],
        ),
        "wva-v2": _star(
            {
                "kv_threshold": (0.4, 0.5, 0.6, 0.7, 0.9, 1.0),
                "scale_up_threshold": (0.6, 0.7, 0.75, 0.8, 0.9, 0.95),
            },
            [{"kv_threshold": 1.0, "scale_up_threshold": 0.95, "scale_down_boundary": 0.85}],
        ),
        "dynamo": _star(
            {
                "profile_ratio": (0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
                "throughput_interval_s": (30.0, 60.0, 90.0, 120.0, 240.0, 300.0),
            },
            [{"profile_ratio": 0.7, "throughput_interval_s": 60.0}],
        ),
        "aibrix-apa": _star(
            {
                "target_usage": (0.2, 0.3, 0.4, 0.6, 0.7, 0.85),
                "window_s": (10.0, 30.0, 60.0, 120.0, 240.0, 300.0),
            },
            [{"target_usage": 0.4, "window_s": 60.0}],
        ),
        "aiad": _star(
            {
                "up_after_s": (0.0, 10.0, 20.0, 60.0, 90.0, 120.0),
                "down_after_s": (60.0, 120.0, 180.0, 600.0, 900.0, 1800.0),
            },
            [{"up_after_s": 10.0, "down_after_s": 900.0}],
        ),
        "static-peak": _star({"margin": (0.5, 0.6, 0.7, 0.8, 0.9, 1.1, 1.25, 1.5)}),
        "static-mean": _star({"margin": (0.75, 1.25, 1.5, 2.0, 2.5, 3.0)}),
    }
)
