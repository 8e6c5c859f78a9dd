"""Runs of the demo made of a few numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import pytest

from demo import views
from demo.recording import Look, Recording
from headroom.api.timestamps import rfc3339
from load.messages import Progress, Started, Summary, Window
from load.outcomes import Outcome, Result
from load.statistics import Tally, merged

START_S = 1_800_000_000.0


def iso(at_s: float) -> str:
    """The time of the replay's second as Kubernetes writes it."""
    return rfc3339(START_S + at_s)


class MakeLook(Protocol):
    """One look."""

    def __call__(self, at_s: float, replicas: int, **more: Any) -> Look: ...


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


@pytest.fixture
def look() -> MakeLook:
    """Make a look: `look(at_s, replicas, decided=..., pods=..., writers=..., status=...)`."""

    def look(
        at_s: float,
        replicas: int,
        *,
        decided: dict[str, Any] | None = None,
        pods: Sequence[dict[str, Any]] = (),
        writers: Sequence[str] = ("headroom-scaler",),
        waiting: int | None = 2,
        **status: Any,
    ) -> Look:
        if decided is not None:
            status["decision"] = decided
        return Look(
            time_s=START_S + at_s,
            service=views.service(service_body(**status)),
            workload=views.workload(deployment_body(replicas, *writers)),
            pods=tuple(views.pod(pod, "nvidia.com/gpu") for pod in pods),
            waiting=waiting,
        )

    return look


def tally(ok: int = 0, latency_s: float = 0.4, **misses: int) -> Tally:
    """So many right answers of that latency, and misses by outcome."""
    counted = Tally()
    for outcome, count in ((Outcome.OK, ok), *((Outcome(n), c) for n, c in misses.items())):
        for _ in range(count):
            counted.add(Result(due_s=0.0, latency_s=latency_s, outcome=outcome), 1.5)
    return counted


@pytest.fixture
def good_run(look: MakeLook) -> Callable[[], Recording]:
    """A run in which everything holds: 1 → 3 → 2 replicas, 300 requests in 60 s."""

    def make() -> Recording:
        pods = [pod_body("a", -20, -12), pod_body("b", 10, 18), pod_body("c", 10, 19)]
        looks = [
            look(-5, 1, pods=pods[:1]),
            look(5, 1, pods=pods[:1]),
            look(11, 3, pods=pods, decided=decision_body(10, 1, 3), warmingReplicas=2),
            look(20, 3, pods=pods, decided=decision_body(18, 3, 3), readyReplicas=3),
            look(40, 2, pods=pods, decided=decision_body(39, 3, 2), readyReplicas=2),
            look(45, 2, pods=pods[:2], decided=decision_body(44, 2, 2), readyReplicas=2),
            look(60, 2, pods=pods[:2], decided=decision_body(58, 2, 2), readyReplicas=2),
        ]
        windows = [Window(start_s=10.0 * i, duration_s=10.0, tally=tally(50)) for i in range(6)]
        return Recording(
            looks=looks,
            started=Started(unix_s=START_S, requests=300, duration_s=60.0, target_s=1.5),
            seconds=[
                Progress(at_s=i + 1.0, due=5 * (i + 1), in_flight=2, tally=tally(5))
                for i in range(60)
            ],
            windows=windows,
            summary=Summary(
                requests=300,
                tally=merged(window.tally for window in windows),
                retried=0,
                connections=9,
                late_p99_s=0.004,
            ),
        )

    return make
