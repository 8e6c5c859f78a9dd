"""Runs of the demo made of a few numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import pytest

from demo import readings
from demo.recording import Recording, Snapshot
from load.messages import Progress, Started, Summary, Window
from load.statistics import merged
from support.demo_world import (
    START_S,
    decision_body,
    deployment_body,
    pod_body,
    service_body,
    tally,
)


class MakeSnapshot(Protocol):
    """One snapshot."""

    def __call__(self, at_s: float, replicas: int, **more: Any) -> Snapshot: ...


@pytest.fixture
def snapshot() -> MakeSnapshot:
    """Make snapshots: `snapshot(at_s, replicas, decided=..., pods=..., writers=...)`."""

    def snapshot(
        at_s: float,
        replicas: int,
        *,
        decided: dict[str, Any] | None = None,
        pods: Sequence[dict[str, Any]] = (),
        writers: Sequence[str] = ("headroom-scaler",),
        waiting: int | None = 2,
        **status: Any,
    ) -> Snapshot:
        if decided is not None:
            status["decision"] = decided
        return Snapshot(
            time_s=START_S + at_s,
            service=readings.service(service_body(**status)),
            workload=readings.workload(deployment_body(replicas, *writers)),
            pods=tuple(readings.pod(pod, "nvidia.com/gpu") for pod in pods),
            waiting=waiting,
        )

    return snapshot


@pytest.fixture
def good_run(snapshot: MakeSnapshot) -> Callable[[], Recording]:
    """A run in which everything holds: 1 → 3 → 2 replicas, 300 requests in 60 s."""

    def make() -> Recording:
        pods = [pod_body("a", -20, -12), pod_body("b", 10, 18), pod_body("c", 10, 19)]
        snapshots = [
            snapshot(-5, 1, pods=pods[:1]),
            snapshot(5, 1, pods=pods[:1]),
            snapshot(11, 3, pods=pods, decided=decision_body(10, 1, 3), warmingReplicas=2),
            snapshot(20, 3, pods=pods, decided=decision_body(18, 3, 3), readyReplicas=3),
            snapshot(40, 2, pods=pods, decided=decision_body(39, 3, 2), readyReplicas=2),
            snapshot(45, 2, pods=pods[:2], decided=decision_body(44, 2, 2), readyReplicas=2),
            snapshot(60, 2, pods=pods[:2], decided=decision_body(58, 2, 2), readyReplicas=2),
        ]
        windows = [Window(start_s=10.0 * i, duration_s=10.0, tally=tally(50)) for i in range(6)]
        return Recording(
            snapshots=snapshots,
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
