"""Writes to the second: when a refused or troubled child is tried again, and which may wait."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import pytest

from headroom.controller.act.act_tick import Writes
from headroom.controller.act.scale_writer import replicas_to_write
from headroom.controller.act.write_result import Step, WriteResult
from headroom.controller.gather.gather_tick import Gathered
from headroom.controller.service_context import ServiceContext, restore
from headroom.errors import ClusterError, Forbidden, NamespaceTerminating, Unavailable
from headroom.scaling.values.observation import Observation
from support.cluster_world import FakeClock, FakeCluster
from support.service_world import body, service
from support.virtual_time import VirtualTimeLoop

Manifest = dict[str, Any]
READY = {
    "type": "Ready",
    "status": "True",
    "reason": "Serving",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
    "observedGeneration": 3,
}


class Scene:
    """A service of its own, acted for at chosen moments."""

    def __init__(self, status: Manifest | None = None) -> None:
        self.cluster = FakeCluster(FakeClock())
        self.service = service()
        self.context: ServiceContext = restore(body(status=status or {}), 0.0)
        self.context.parse(body())

    def deployment(self) -> Manifest | None:
        return copy.deepcopy(self.cluster.find("Deployment", "resnet50", "vision"))

    def act(self, now_s: float, replicas: int = 2, services: int = 1) -> WriteResult:
        live = self.deployment()
        current = 2 if live is None else int(live["spec"]["replicas"])
        gathered = Gathered(observation=Observation(now_s=now_s, current=current), deployment=live)

        async def run() -> WriteResult:
            return await Writes(
                cluster=self.cluster,
                service=self.service,
                children=self.context.children,
                state=self.context.act,
                gathered=gathered,
                replicas=replicas,
                now_s=now_s,
                services=services,
                marks_pods=True,
                was_ready=lambda: self.context.report.was_ready(self.service.generation),
                was_valid=lambda: self.context.report.was_valid(self.service.generation),
            ).run()

        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            return runner.run(run())

    def asked(self, moments_s: list[float], verb: str, kind: str) -> list[float]:
        """Give the moments at which the API server was asked for it."""
        found = []
        for now_s in moments_s:
            before = self.cluster.calls.count((verb, kind))
            self.act(now_s)
            if self.cluster.calls.count((verb, kind)) > before:
                found.append(now_s)
        return found


def test_rejected_deployment_is_retried_after_a_share_of_the_time() -> None:
    scene = Scene()
    scene.cluster.fail("dry_run", "Deployment", Forbidden("quota"), times=99)
    moments_s = [0.0, 3.9, 4.0, 60.0, 63.9, 64.0, 300.0, 319.9, 320.0]  # 300 / 15 = 20 s
    assert scene.asked(moments_s, "dry_run", "Deployment") == [0.0, 4.0, 60.0, 64.0, 300.0, 320.0]
    assert scene.asked([9e3, 9059.9, 9060.0], "dry_run", "Deployment") == [9e3, 9060.0]
    acted = scene.act(9061.0)
    assert (acted.refused, acted.message, acted.namespace_ends) == (Step.CHILDREN, "quota", False)
    assert scene.context.act.refused is not None
    scene.cluster.stop_failing()
    assert scene.act(9200.0) == WriteResult(replicas=2, created=True)
    assert scene.context.act.refused is None


@pytest.mark.parametrize(
    ("error", "again_s"), [(Unavailable("down"), 6.0), (Forbidden("quota"), None)]
)
def test_child_that_failed_is_checked_again(error: ClusterError, again_s: float | None) -> None:
    scene = Scene()
    scene.cluster.fail("create", "Service", error, times=99)
    acted = scene.act(0.0)
    at_once = str(error) if again_s is None else ""  # what passes is said the second time
    assert (acted.created, acted.unapplied) == (True, at_once)
    if again_s is not None:
        assert scene.asked([again_s - 0.1, again_s], "create", "Service") == [again_s]
    assert scene.act(7.0).unapplied == str(error)
    scene.cluster.stop_failing()
    assert scene.act(100.0).unapplied == ""


def test_children_are_checked_every_thirty_seconds() -> None:
    scene = Scene()
    assert scene.act(0.0).created
    moments_s = [1.0, 29.9, 30.0, 59.9, 60.0]
    assert scene.asked(moments_s, "get", "Service") == [30.0, 60.0]


def test_terminating_namespace_is_reported_and_checked_again_at_once() -> None:
    scene = Scene()
    scene.cluster.fail("create", "Service", NamespaceTerminating("it ends"), times=1)
    acted = scene.act(0.0)
    assert (acted.refused, acted.namespace_ends) == (Step.CHILDREN, True)
    assert scene.act(0.1).created


def test_replicas_are_written_only_if_changed_and_owned() -> None:
    scene = Scene()
    assert scene.act(0.0).created
    nothing = scene.act(2.0)
    assert nothing == WriteResult(replicas=2)
    assert (nothing.created, nothing.scaled, nothing.namespace_ends) == (False, False, False)
    assert scene.act(4.0, replicas=5) == WriteResult(replicas=5, scaled=True)
    assert scene.cluster.scale_writes == [5]
    live = scene.deployment()
    assert live is not None

    def written(deployment: Manifest | None, replicas: int, **spec: Any) -> int | None:
        observation = Observation(now_s=0.0, current=5)
        gathered = Gathered(observation=observation, deployment=deployment)
        return replicas_to_write(service(**spec), gathered, replicas)

    assert written(live, 4) == 4
    assert written(live, 5) is None
    assert written(None, 4) is None
    assert written(live, 4, spec__scaling={"mode": "Recommend"}) is None
    leaving = copy.deepcopy(live)
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert written(leaving, 4) is None
    theirs = copy.deepcopy(live)
    theirs["metadata"]["ownerReferences"] = []
    assert written(theirs, 4) is None


@pytest.mark.parametrize(
    ("status", "replicas", "waits"),
    [
        ({"observedGeneration": 3, "conditions": [READY]}, 2, True),
        ({"observedGeneration": 2, "conditions": [READY | {"observedGeneration": 2}]}, 2, False),
        ({"observedGeneration": 3, "conditions": [READY | {"observedGeneration": 2}]}, 2, False),
        ({"observedGeneration": 3, "conditions": [READY | {"status": "False"}]}, 2, False),
        ({"observedGeneration": 3, "conditions": [READY | {"type": "AbleToScale"}]}, 2, False),
        ({"observedGeneration": 3, "conditions": [READY]}, 5, False),
    ],
    ids=[
        "all in order",
        "another spec",
        "this spec was announced and not written",
        "not ready",
        "another condition",
        "it is to be scaled",
    ],
)
def test_new_process_with_many_services_delays_children_in_order(
    status: Manifest, replicas: int, waits: bool
) -> None:
    earlier = Scene()
    assert earlier.act(0.0).created
    scene = Scene(status)
    scene.cluster = earlier.cluster
    scene.cluster.calls.clear()
    scene.act(1000.0, replicas=replicas, services=1000)
    assert (("dry_run", "Deployment") not in scene.cluster.calls) is waits
    if waits:
        assert scene.context.act.children_due_s is not None
        scene.act(scene.context.act.children_due_s - 0.1, services=1000)
        assert ("dry_run", "Deployment") not in scene.cluster.calls
        scene.act(scene.context.act.children_due_s, services=1000)
        assert ("dry_run", "Deployment") in scene.cluster.calls
