"""The throughput of saturated replicas, which hides demand unless something else explains it."""

from __future__ import annotations

from headroom.scaling.demand.throughput import Throughput


def load(**changes: float) -> Throughput:
    """Two saturated replicas through 64 connections, over 8 s."""
    values: dict[str, float] = {
        "window_s": 8.0,
        "arrived": 1280.0,
        "answered": 1280.0,
        "missed": 0.0,
        "in_flight": 64,
        "ready": 2,
        "full_rps": 80.0,
        "standing_queue": 42.0,
        "queue_bound": 16.0,
    }
    values |= changes
    most = values["full_rps"] * values["ready"] * values["window_s"]
    return Throughput(**({"busy": values["answered"] >= 0.9 * most} | values))  # type: ignore[arg-type]
