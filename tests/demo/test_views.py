"""Objects of the API server as the demo reads them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from demo import readings, views
from demo.layout import moved_text
from demo.recording import Snapshot


def test_a_service_without_status_says_nothing_is_known() -> None:
    body = {
        "spec": {
            "slo": {"latency": {"percentile": 95, "target": "250ms"}, "utilizationCeiling": 0.8},
            "scaling": {"minReplicas": 1, "maxReplicas": 8},
        }
    }
    service = readings.service(body)
    assert service.target_s == 0.25
    assert service.decision is None
    assert service.cost is None
    assert not service.is_true("Ready")


def test_a_decision_comes_with_what_it_leads_to(snapshot: Callable[..., Snapshot]) -> None:
    decided = {
        "replicas": 3,
        "current": 1,
        "direction": "Up",
        "reason": "Burst",
        "message": "30/s expected after a burst",
        "time": "2026-01-31T12:00:00Z",
        "counterfactuals": [
            {"replicas": 2, "latency": "unbounded"},
            {"replicas": 3, "latency": "1.2s", "utilization": 0.7},
        ],
    }
    decision = snapshot(0, 3, decided=decided).service.decision
    assert decision is not None
    assert decision.moves
    assert decision.projected == views.Counterfactual(replicas=3, latency_s=1.2, utilization=0.7)
    assert decision.counterfactuals[0].latency_s == math.inf
    assert decision.counterfactuals[0].utilization is None


@pytest.mark.parametrize(
    ("writers", "by_operator"),
    [
        (["headroom-scaler"], True),
        (["kubectl"], False),
        (["headroom-scaler", "kubectl"], False),
        ([], False),
    ],
)
def test_who_owns_the_replicas(
    snapshot: Callable[..., Snapshot], writers: list[str], by_operator: bool
) -> None:
    assert snapshot(0, 2, writers=writers).workload.written_by_operator is by_operator


@pytest.mark.parametrize(
    ("status", "metadata", "holds", "scheduled"),
    [
        (
            {"phase": "Running", "conditions": [{"type": "PodScheduled", "status": "True"}]},
            {},
            1,
            1,
        ),
        (
            {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False"}]},
            {},
            1,
            0,
        ),
        ({"phase": "Running"}, {"deletionTimestamp": "2026-01-31T12:00:00Z"}, 1, 0),
        ({"phase": "Succeeded"}, {}, 0, 0),
        ({"phase": "Failed"}, {}, 0, 0),
    ],
)
def test_a_pod_holds_its_gpus_from_creation_until_its_containers_ended(
    status: dict[str, Any], metadata: dict[str, Any], holds: int, scheduled: int
) -> None:
    body = {
        "metadata": {
            "uid": "u", "name": "n", "creationTimestamp": "2026-01-31T12:00:00Z", **metadata
        },
        "spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "2"}}}]},
        "status": status,
    }  # fmt: skip
    pod = readings.pod(body, "nvidia.com/gpu")
    assert pod.gpus == 2
    assert (pod.holds_gpus, pod.scheduled) == (bool(holds), bool(scheduled))
    assert pod.leaving is ("deletionTimestamp" in metadata)


def test_restarts_are_summed_over_containers() -> None:
    statuses = [{"restartCount": 1}, {"restartCount": 2}]
    assert readings.restarts({"status": {"containerStatuses": statuses}}) == 3
    assert readings.restarts({}) == 0


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("1 -> 2 replicas; Burst needs 2 (9.75/s)", "Burst needs 2 (9.75/s)"),
        ("2 -> 3 replicas; LatencyModel needs 5", "Burst: LatencyModel needs 5"),
        ("one replica is slow", "Burst: one replica is slow"),
    ],
)
def test_change_of_replicas_names_numbers_and_rule_once(message: str, text: str) -> None:
    move = views.DecisionView(
        replicas=2, current=1, direction="Up", reason="Burst", message=message, time_s=0.0
    )
    assert moved_text(move) == text
