"""Services whose pods the operator warms, and the state of their gates."""

from __future__ import annotations

from typing import Any

from support.controller_world import World

GATE = "headroom.dev/warm"
REQUEST = {"path": "/inference", "body": '{"x": [1]}'}
SERVER = {"image": "registry.example/other:1", "profile": "custom", "maxBatchSize": 4}
METRICS = {
    "readyPath": "/ready",
    "inFlight": {"name": "headroom_requests_running"},
    "answered": {"name": "headroom_requests_received_total"},
    "batches": {"name": "headroom_execution_duration_seconds_count"},
    "batchTime": {"name": "headroom_execution_duration_seconds_sum"},
}
RUNTIME = SERVER | {"metrics": METRICS}
COURSE_S = 3 * 2.0 + 4 * 0.1
"""Three cold answers, then four quick ones."""


def create(world: World, **changes: Any) -> None:
    warmup = {"request": REQUEST, "requests": 4, "maxLatency": "250ms", "timeout": "60s"}
    warmup |= changes.pop("warmup", {})
    world.create(**{"runtime": RUNTIME, "warmup": warmup, **changes})


def create_target(world: World, *, gated: bool, **changes: Any) -> None:
    """Apply a user's own workload, with the gate in its template or without."""
    gates = {"readinessGates": [{"conditionType": GATE}]} if gated else {}
    workload = world.create_workload("own", **changes.pop("workload", {}))
    world.cluster.update(workload, lambda one: one["spec"]["template"]["spec"].update(gates))
    runtime = {key: value for key, value in RUNTIME.items() if key != "image"}
    create(world, target="own", **changes)
    service = world.cluster.find("InferenceService", "resnet")
    assert service is not None
    world.cluster.update(service, lambda one: one["spec"].update(runtime=runtime))


def said(world: World, name: str = "resnet") -> list[tuple[str, str]]:
    """Status and reason of each pod's gate."""
    conditions = [one["status"].get("conditions", ()) for one in world.pods.of(name)]
    found = [{one["type"]: one for one in each}.get(GATE, {}) for each in conditions]
    return [(one.get("status", ""), one.get("reason", "")) for one in found]


def writes(world: World) -> int:
    return world.cluster.writes().count(("apply_status", "Pod"))


def warmup_of(world: World) -> dict[str, Any]:
    service = world.cluster.find("InferenceService", "resnet")
    assert service is not None
    warmup: dict[str, Any] = service["spec"]["warmup"]
    return warmup
