"""Replicas under load and under faults, on a real node."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import pytest

from cluster import Cluster, wait_until
from load.outcomes import Outcome
from scenarios.world import OPERATOR, SYSTEM, Service, emulated, install_operator

pytestmark = pytest.mark.clock

HOLD_S = 10.0
THE_OPERATOR = (f"deployment/{OPERATOR}", "--namespace", SYSTEM)


@dataclass(frozen=True)
class Look:
    """A decision in status: its time, the replicas that the rules needed, those it requests."""

    time_s: float
    needed: int
    replicas: int


@dataclass(frozen=True)
class ReplicaHistory:
    """The decisions of a service, as read from time to time."""

    service: Service
    looks: list[Look] = field(default_factory=list)

    def replicas(self) -> int:
        """Return the desired replicas; 0 before the first decision."""
        decision = self.service.status().get("decision")
        if decision is None:
            return 0
        needed = max((one["replicas"] for one in decision.get("recommendations", ())), default=0)
        time_s = datetime.fromisoformat(decision["time"]).timestamp()
        self.looks.append(Look(time_s, needed, decision["replicas"]))
        return self.looks[-1].replicas

    def held_s(self) -> float:
        """Seconds from the last time the rules needed the peak to the first decision below it.

        A lower bound: the rules or the decision may have changed between two reads.
        """
        most = max(one.replicas for one in self.looks)
        at_most = [one.replicas for one in self.looks].index(most)
        fell = next(n for n, one in enumerate(self.looks) if n > at_most and one.replicas < most)
        needed_s = max(one.time_s for one in self.looks[:fell] if one.needed >= most)
        return self.looks[fell].time_s - needed_s


@pytest.fixture(scope="module", autouse=True)
def operator(cluster: Cluster) -> None:
    install_operator(cluster)


@pytest.mark.timeout(300, func_only=True)
def test_load_up_and_down_loses_no_request(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    scaling = {"minReplicas": 2, "scaleDown": {"stabilizationWindow": f"{HOLD_S:g}s"}}
    service = Service.create(cluster, namespace, emulated("wave", scaling=scaling))
    service.wait_ready()
    service.wait("both replicas", lambda: service.ready_replicas() == 2)
    history = ReplicaHistory(service)
    # Two replicas carry 4 / (0.15 + 4 * 0.06) = 10.3 requests a second each: 18 are 0.88 of that,
    # over the ceiling of 0.8 for as long as the load lasts, and below what makes them queue.
    with service.load(18.0, 20, tmp_path) as load:
        service.wait("scaled up", lambda: history.replicas() >= 3)
        service.wait("the load's end", lambda: history.replicas() and load.has_ended(), 90)
        summary = load.finish()
    assert summary.tally.outcomes[Outcome.OK] == summary.requests
    # Up for the arrivals: the queue bound (4 per replica) had nothing to say.
    note = service.wait("an event", lambda: service.event("ScaledUp"))["note"]
    assert re.match(r"2 -> \d+, (Burst|LatencyModel|UtilizationCeiling)\b", note), note

    with service.load(5.0, 90, tmp_path) as trickle:
        service.wait("back at the minimum", lambda: history.replicas() == 2, 80)
        service.wait("the others are gone", lambda: len(service.pods()) == 2, 40)
        summary = trickle.finish(early=True)
    assert history.held_s() >= HOLD_S
    assert summary.tally.outcomes[Outcome.OK] == summary.requests
    assert service.replicas() == 2


def test_model_that_never_warms_is_broken_and_harms_no_other_service(
    cluster: Cluster, namespace: str
) -> None:
    neighbour = Service.create(cluster, namespace, emulated("neighbour"))
    manifest = emulated("never-warm", warmup={"requests": 4, "maxLatency": "10ms", "timeout": "5s"})
    service = Service.create(cluster, namespace, manifest)
    service.wait("broken", lambda: service.status().get("brokenReplicas") == 1, 60)
    assert service.condition("Ready")["status"] == "False"
    assert service.condition("CapacityAvailable")["status"] == "False"
    assert service.replicas() == 1
    neighbour.wait_ready()
    assert not any(
        status.get("ready")
        for pod in service.pods()
        for status in pod["status"]["containerStatuses"]
    )


def test_operator_restart_under_load_changes_no_replicas(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    scaling = {"minReplicas": 2}
    service = Service.create(cluster, namespace, emulated("calm", scaling=scaling))
    service.wait_ready()
    service.wait("both replicas", lambda: service.ready_replicas() == 2)
    with service.load(18.0, 120, tmp_path) as load:
        service.wait("scaled up", lambda: service.ready_replicas() >= 3, 60)
        stop_operator(cluster)
        try:  # no operator decides now: every later change is the next one's
            replicas, before = service.replicas(), service.status()["decision"]["time"]
            generation = service.deployment()["metadata"]["generation"]
        finally:
            cluster.kubectl("scale", *THE_OPERATOR, "--replicas=1")
        service.wait("decisions again", lambda: service.status()["decision"]["time"] != before, 80)
        assert service.replicas() == replicas
        assert service.deployment()["metadata"]["generation"] == generation
        summary = load.finish(early=True)
    assert summary.tally.outcomes[Outcome.LOST] == 0


def stop_operator(cluster: Cluster) -> None:
    """Let it end, and wait until it has."""
    cluster.kubectl("scale", *THE_OPERATOR, "--replicas=0")
    pods = ("pods", "-l", f"app.kubernetes.io/name={OPERATOR}", "--namespace", SYSTEM)
    wait_until(lambda: not cluster.get(*pods)["items"], what="the operator is gone", timeout_s=60)
