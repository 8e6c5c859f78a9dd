"""Objects of a demo as the API server returns them, made of a few numbers."""

from __future__ import annotations

from typing import Any

from demo.requirements import Requirements
from headroom.api.timestamps import rfc3339
from load.outcomes import Outcome, Result
from load.statistics import Tally

REQUIRED = Requirements(
    gpus=8,
    least_attainment=0.9,
    last_stretch_s=20.0,
    latest_send_s=0.1,
    longest_unanswered_s=16.0,
)

START_S = 1_800_000_000.0


def iso(at_s: float) -> str:
    """The time of the replay's second as Kubernetes writes it."""
    return rfc3339(START_S + at_s)


def service_body(**status: Any) -> dict[str, Any]:
    """An InferenceService as the API server gives it."""
    return {
        "spec": {
            "slo": {
                "latency": {"percentile": 95, "target": "1.5s"},
                "utilizationCeiling": 0.8,
            },
            "scaling": {"minReplicas": 1, "maxReplicas": 8},
        },
        "status": {
            "readyReplicas": 1,
            "model": {"fixedCost": "150ms", "perItemCost": "60ms", "maxBatch": 4},
            "conditions": [
                {"type": "Ready", "status": "True", "reason": "Warm", "message": "1 of 1"},
                {"type": "SLOMet", "status": "True", "reason": "Kept", "message": "p95 0.4s"},
            ],
            **status,
        },
    }


def decision_body(at_s: float, current: int, replicas: int, **more: Any) -> dict[str, Any]:
    """A decision as the status shows it."""
    way = "Up" if replicas > current else "Down" if replicas < current else "None"
    return {
        "replicas": replicas,
        "current": current,
        "direction": way,
        "reason": "LatencyModel",
        "message": f"{replicas} replicas are needed",
        "time": iso(at_s),
        "counterfactuals": [
            {"replicas": replicas, "latency": "900ms", "utilization": 0.6},
            {"replicas": replicas - 1, "latency": "unbounded", "utilization": 1.1},
        ],
        **more,
    }


def deployment_body(replicas: int, *writers: str) -> dict[str, Any]:
    """A Deployment whose replicas these managers own."""
    fields: dict[str, Any] = {"f:spec": {"f:replicas": {}}}
    return {
        "metadata": {
            "managedFields": [
                {"manager": "headroom", "fieldsV1": {"f:spec": {"f:template": {}}}},
                *({"manager": writer, "fieldsV1": fields} for writer in writers),
            ]
        },
        "spec": {"replicas": replicas},
    }


def pod_body(
    uid: str, created_at_s: float, ready_at_s: float | None = None, **status: Any
) -> dict[str, Any]:
    """A pod that holds one GPU."""
    conditions = [{"type": "PodScheduled", "status": "True"}]
    if ready_at_s is not None:
        conditions.append(
            {"type": "Ready", "status": "True", "lastTransitionTime": iso(ready_at_s)}
        )
    return {
        "metadata": {"uid": uid, "name": f"demo-{uid}", "creationTimestamp": iso(created_at_s)},
        "spec": {
            "containers": [
                {"resources": {"limits": {"nvidia.com/gpu": "1"}}},
                {"name": "sidecar"},
            ]
        },
        "status": {"phase": "Running", "conditions": conditions, **status},
    }


def tally(ok: int = 0, latency_s: float = 0.4, **misses: int) -> Tally:
    """Right answers of one latency, and misses by outcome."""
    counted = Tally()
    for outcome, count in ((Outcome.OK, ok), *((Outcome(n), c) for n, c in misses.items())):
        for _ in range(count):
            counted.add(Result(due_s=0.0, latency_s=latency_s, outcome=outcome), 1.5)
    return counted
