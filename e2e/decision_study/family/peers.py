"""The peers' settings in the family: what is fair gets small grids of two knobs, the rest few.

Requests per second come with the true capacity of a replica, as measured on its plant. In-flight
requests are averaged over a minute. Patience, bounded queues and `maxReplicas` are the plant's, the
same for all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from decision_study.records import Job

Setting = Mapping[str, float]


def _grid(usual: Setting, **axes: Sequence[float]) -> tuple[Setting, ...]:
    """Return every combination of the knobs' values, each with the usual ones."""
    return tuple(
        {**usual, **dict(zip(axes, values, strict=True))} for values in product(*axes.values())
    )


_IN_FLIGHT = {"in_flight": 1.0}

GRIDS: Mapping[str, tuple[Setting, ...]] = {
    "hpa-rps": _grid(
        {}, target_share=(0.4, 0.5, 0.6, 0.7, 0.8, 0.9), stabilization_s=(60.0, 300.0, 900.0)
    ),
    "knative": (
        *_grid({}, rps_share=(0.45, 0.6, 0.8), stable_window_s=(60.0, 300.0)),
        *_grid({}, concurrency_batches=(0.5, 1.0), stable_window_s=(60.0, 300.0)),
    ),
    "hpa-queue": (
        *_grid(
            _IN_FLIGHT, target_batches=(0.2, 0.35, 0.5, 0.7, 1.0), stabilization_s=(300.0, 900.0)
        ),
        *_grid({}, target_batches=(0.2, 1.0)),
    ),
    "keda": (
        *_grid(_IN_FLIGHT, target_batches=(0.35, 0.5, 0.7, 1.0), latency_ratio=(0.8, 1.5)),
        *_grid({}, target_batches=(0.2, 0.75)),
    ),
    "hpa-utilization": _grid({}, target_utilization=(0.3, 0.5, 0.7)),
    "hpa-p95": _grid({}, target_ratio=(0.5, 0.8)),
    "ray-serve": _grid({}, target_batches=(0.25, 0.5, 1.0)),
    "llm-d-slo": _grid({}, up_threshold=(0.65, 0.85, 0.95)),
    "wva-v1": _grid({}, queue_threshold=(4.0, 12.0)),
    "wva-v2": _grid({}, kv_threshold=(0.5, 0.9)),
    "dynamo": _grid({}, profile_ratio=(0.5, 0.7, 0.9)),
    "aibrix-apa": _grid({}, target_usage=(0.3, 0.5, 0.7)),
    "aiad": _grid({}, up_after_s=(10.0, 30.0), down_after_s=(300.0, 900.0)),
    "static-peak": _grid({}, margin=(0.5, 0.7, 0.8, 1.25)),
    "static-mean": _grid({}, margin=(1.5, 2.0, 3.0)),
}


def jobs(cell: str, seed: int) -> list[Job]:
    """Return the runs of all peers in one cell."""
    return [
        Job(cell=cell, autoscaler=name, knobs=tuple(sorted(setting.items())), seed=seed)
        for name, grid in GRIDS.items()
        for setting in grid
    ]
