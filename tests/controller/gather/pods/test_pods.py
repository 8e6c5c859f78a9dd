"""States of a pod, case by case, with the texts of kubelet and scheduler."""

from __future__ import annotations

from typing import Any

import pytest

from headroom.api.timestamps import epoch_s, rfc3339
from headroom.controller.gather.pods.pods import observe, preempted
from headroom.scaling.values.observation import PodState

NOW_S = epoch_s("2026-11-20T12:00:00Z")
WARMUP_TIMEOUT_S = 600.0
Manifest = dict[str, Any]


def ago(seconds: float) -> str:
    return rfc3339(NOW_S - seconds)


def pod(
    *,
    phase: str = "Running",
    ready: str = "False",
    since_s: float = 60.0,
    container: Manifest | None = None,
    conditions: tuple[Manifest, ...] = (),
    deleted: bool = False,
    created_s: float = 60.0,
    **status: Any,
) -> Manifest:
    metadata: Manifest = {"uid": "u1", "name": "p1", "creationTimestamp": ago(created_s)}
    if deleted:
        metadata["deletionTimestamp"] = ago(1.0)
    ready_condition = {"type": "Ready", "status": ready, "lastTransitionTime": ago(since_s)}
    return {
        "metadata": metadata,
        "status": {
            "phase": phase,
            "podIP": "10.1.2.3",
            "conditions": [ready_condition, *conditions],
            "containerStatuses": [{"name": "server", "restartCount": 0, **(container or {})}],
            **status,
        },
    }


def running(started_s: float, **more: Any) -> Manifest:
    return {"state": {"running": {"startedAt": ago(started_s)}}, **more}


def waiting(reason: str, message: str = "", **more: Any) -> Manifest:
    return {"state": {"waiting": {"reason": reason, "message": message}}, **more}


def ended(finished_s: float, reason: str = "OOMKilled", code: int = 137) -> Manifest:
    return {"terminated": {"reason": reason, "exitCode": code, "finishedAt": ago(finished_s)}}


UNSCHEDULABLE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
}
NODE_LOST = pod(ready="Unknown")
NODE_LOST["status"]["conditions"][0] |= {
    "reason": "NodeStatusUnknown",
    "message": "Kubelet stopped posting node status.",
}

CONTAINERS_READY = {"type": "ContainersReady", "status": "True"}
KUBELET_SILENT = pod(conditions=(CONTAINERS_READY,), container=running(5000))
KUBELET_SILENT["spec"] = {"nodeName": "gpu-7"}
GATE_CLOSED = pod(conditions=(CONTAINERS_READY,), container=running(5))
GATE_CLOSED["status"]["conditions"][0] |= {"reason": "ReadinessGatesNotReady"}

SCHEDULED = {"type": "PodScheduled", "status": "True", "lastTransitionTime": ago(312)}
SIDECAR = {"name": "proxy", "started": True, **running(300)}
FETCHING = {"name": "init", "restartCount": 0, "started": True, **running(250)}
SLOW_INIT = pod(
    conditions=(SCHEDULED,),
    container=waiting("PodInitializing"),
    initContainerStatuses=[SIDECAR, FETCHING],
)
WITH_SIDECAR = pod(conditions=(SCHEDULED,), container=running(280), initContainerStatuses=[SIDECAR])
for _with_proxy in (SLOW_INIT, WITH_SIDECAR):
    _with_proxy["spec"] = {"initContainers": [{"name": "proxy", "restartPolicy": "Always"}]}

LATE = "not ready for 900 s (warm-up timeout 600 s)"
TWICE = "container server: restarted 2 times, last ended with"
NOT_PASSED = "container server has not passed its"
PROBES = {
    "startupProbe": {"httpGet": {"port": 8000, "path": "/nope"}},
    "readinessProbe": {"grpc": {"port": 9000}},
}
PROBED = pod(conditions=(SCHEDULED,), container=running(300, started=False))
UNREADY = pod(conditions=(SCHEDULED,), container=running(900, started=True), since_s=900)


def without_container(scheduled_s: float, *, sandbox: str) -> Manifest:
    scheduled = SCHEDULED | {"lastTransitionTime": ago(scheduled_s)}
    told = {"type": "PodReadyToStartContainers", "status": sandbox}
    creating = waiting("ContainerCreating")
    return pod(phase="Pending", conditions=(scheduled, told), container=creating)


UNMOUNTED = without_container(312, sandbox="False")
NEVER_MOUNTED = without_container(700, sandbox="False")
PULLING = without_container(700, sandbox="True")
STOPPED, CRASHED = (
    pod(
        conditions=(SCHEDULED,),
        container=running(30, started=False, restartCount=2, lastState=ended(40, reason, code)),
    )
    for reason, code in (("Completed", 0), ("Error", 1))
)
for _probed in (PROBED, UNREADY, STOPPED, CRASHED):
    _probed["spec"] = {"containers": [{"name": "server", **PROBES}]}

CASES: dict[str, tuple[Manifest, PodState, str]] = {
    "volume that cannot be mounted": (
        pod(conditions=(SCHEDULED,), container=waiting("ContainerCreating")),
        PodState.WARMING,
        "container server has not started for 312 s (ContainerCreating)",
    ),
    "volume that is not mounted, as its node says": (
        UNMOUNTED,
        PodState.WARMING,
        "its volumes or its network have not been ready for 312 s",
    ),
    "volume that is not mounted after the warm-up timeout": (
        NEVER_MOUNTED,
        PodState.BROKEN,
        "its volumes or its network have not been ready for 700 s (warm-up timeout 600 s)",
    ),
    "image that is pulled for longer than the warm-up timeout": (
        PULLING,
        PodState.WARMING,
        "container server has not started for 700 s (ContainerCreating)",
    ),
    "slow init container": (
        SLOW_INIT,
        PodState.WARMING,
        "init container init has been running for 250 s",
    ),
    "startup probe that does not pass": (
        PROBED,
        PodState.WARMING,
        f"{NOT_PASSED} startup probe (GET /nope at port 8000) 300 s after its start",
    ),
    "readiness probe that does not pass, after the warm-up timeout": (
        UNREADY,
        PodState.BROKEN,
        f"{LATE}: {NOT_PASSED} readiness probe (grpc at port 9000)",
    ),
    "restarted for its startup probe": (
        STOPPED,
        PodState.BROKEN,
        f"{TWICE} Completed (code 0); {NOT_PASSED} startup probe (GET /nope at port 8000)",
    ),
    "ended with an error": (
        CRASHED,
        PodState.BROKEN,
        f"{TWICE} Error (code 1)",
    ),
    "usual start": (
        pod(
            conditions=(SCHEDULED | {"lastTransitionTime": ago(50)},),
            container=waiting("ContainerCreating"),
        ),
        PodState.WARMING,
        "",
    ),
    "server that runs and warms up": (
        WITH_SIDECAR,
        PodState.WARMING,
        "",
    ),
    "ready": (pod(ready="True", container=running(50)), PodState.READY, ""),
    "not looked at by the scheduler yet": (
        {
            "metadata": {"uid": "u", "name": "p", "creationTimestamp": ago(1)},
            "status": {"phase": "Pending"},
        },
        PodState.WARMING,
        "",
    ),
    "its node's kubelet does not report any more": (
        KUBELET_SILENT,
        PodState.BROKEN,
        "NodeLost: see kubectl describe node gpu-7",
    ),
    "its readiness gate is closed": (GATE_CLOSED, PodState.WARMING, ""),
    "pulling its image": (
        pod(phase="Pending", container=waiting("ContainerCreating"), since_s=1500),
        PodState.WARMING,
        "",
    ),
    "loading its model": (pod(container=running(599), since_s=900), PodState.WARMING, ""),
    "no node has room": (
        pod(phase="Pending", conditions=(UNSCHEDULABLE,)),
        PodState.UNSCHEDULABLE,
        "Unschedulable: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
    ),
    "its image cannot be pulled": (
        pod(phase="Pending", container=waiting("ImagePullBackOff", "Back-off pulling image")),
        PodState.BROKEN,
        "container server: ImagePullBackOff: Back-off pulling image",
    ),
    "an init container cannot start": (
        pod(
            phase="Pending",
            initContainerStatuses=[{"name": "fetch", **waiting("CreateContainerConfigError")}],
        ),
        PodState.BROKEN,
        "container fetch: CreateContainerConfigError",
    ),
    "it crashes in a loop": (
        pod(container=waiting("CrashLoopBackOff", restartCount=4, lastState=ended(20))),
        PodState.BROKEN,
        "container server: CrashLoopBackOff, last ended with OOMKilled (code 137)",
    ),
    "it runs between two crashes": (
        pod(container=running(3, restartCount=2, lastState=ended(5))),
        PodState.BROKEN,
        "container server: restarted 2 times, last ended with OOMKilled (code 137)",
    ),
    "it crashed once": (
        pod(container=running(3, restartCount=1, lastState=ended(5))),
        PodState.WARMING,
        "",
    ),
    "it served for weeks and restarts after its node did": (
        pod(
            container=running(30, restartCount=5, lastState=ended(86400)),
            since_s=40,
            created_s=1e6,
        ),
        PodState.WARMING,
        "",
    ),
    "it never gets warm": (
        pod(container=running(612), since_s=700),
        PodState.BROKEN,
        "not ready for 612 s (warm-up timeout 600 s)",
    ),
    "it never gets warm and was restarted for it": (
        pod(container=running(20, restartCount=1, lastState=ended(700)), since_s=1220),
        PodState.BROKEN,
        "not ready for 1220 s (warm-up timeout 600 s, restarted 1 times)",
    ),
    "its node is lost": (
        NODE_LOST,
        PodState.BROKEN,
        "NodeStatusUnknown: Kubelet stopped posting node status.",
    ),
    "it leaves, and still answers its probe": (
        pod(ready="True", container=running(900), deleted=True),
        PodState.TERMINATING,
        "",
    ),
    "it never gets warm, by a moment": (
        pod(container=running(601), since_s=601),
        PodState.BROKEN,
        "not ready for 601 s (warm-up timeout 600 s)",
    ),
    "its time to get warm is just over": (
        pod(container=running(600), since_s=600),
        PodState.WARMING,
        "",
    ),
    "it was unready before its container ran": (
        pod(container=running(590), since_s=5000),
        PodState.WARMING,
        "",
    ),
    "one of its containers does not run yet": (
        pod(
            containerStatuses=[
                {"name": "a", "restartCount": 0, **running(900)},
                {"name": "b", "restartCount": 0},
            ],
            since_s=900,
        ),
        PodState.WARMING,
        "",
    ),
    "its second container crashes": (
        pod(
            containerStatuses=[
                {"name": "a", "restartCount": 0, **running(3)},
                {"name": "b", "restartCount": 3, "lastState": ended(5), **running(3)},
            ]
        ),
        PodState.BROKEN,
        "container b: restarted 3 times, last ended with OOMKilled (code 137)",
    ),
    "its second container cannot start": (
        pod(
            containerStatuses=[
                {"name": "a", "restartCount": 0, **waiting("ContainerCreating")},
                {"name": "b", "restartCount": 0, **waiting("ErrImagePull")},
            ]
        ),
        PodState.BROKEN,
        "container b: ErrImagePull",
    ),
    "it crashed twice, the last time just long enough ago": (
        pod(container=running(3, restartCount=2, lastState=ended(600))),
        PodState.BROKEN,
        "container server: restarted 2 times, last ended with OOMKilled (code 137)",
    ),
    "it crashed twice, at unknown times": (
        pod(container=running(3, restartCount=2, lastState={"terminated": {"exitCode": 1}})),
        PodState.WARMING,
        "",
    ),
    "its node is unknown": (
        pod(phase="Unknown"),
        PodState.BROKEN,
        "NodeLost",
    ),
    "it ended": (pod(phase="Succeeded"), PodState.BROKEN, "Succeeded"),
    "it failed and leaves": (pod(phase="Failed", deleted=True), PodState.TERMINATING, ""),
    "it was evicted": (
        pod(phase="Failed", reason="Evicted", message="node was low on memory"),
        PodState.BROKEN,
        "Evicted: node was low on memory",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_pod_state_is_the_first_match(case: str) -> None:
    raw, state, detail = CASES[case]
    (seen,) = observe([raw], now_s=NOW_S, warmup_timeout_s=WARMUP_TIMEOUT_S, replicas=1)
    assert (seen.pod.state, seen.pod.detail) == (state, detail)


def test_ready_pod_has_ready_time_and_address() -> None:
    raw = pod(ready="True", since_s=42, created_s=100)
    (seen,) = observe([raw], now_s=NOW_S, warmup_timeout_s=WARMUP_TIMEOUT_S, replicas=1)
    assert (seen.ip, seen.pod.uid) == ("10.1.2.3", "u1")
    assert (seen.pod.created_s, seen.pod.ready_s) == (NOW_S - 100, NOW_S - 42)


def test_pod_has_the_arguments_of_all_its_containers() -> None:
    containers = [{"name": "proxy"}, {"command": ["vllm", "serve"], "args": ["--max-num-seqs=8"]}]
    raw = {**pod(), "spec": {"containers": containers}}
    (seen,) = observe([raw], now_s=NOW_S, warmup_timeout_s=WARMUP_TIMEOUT_S, replicas=1)
    assert seen.arguments == ("vllm", "serve", "--max-num-seqs=8")


def test_pod_has_scheduled_time() -> None:
    placed = {"type": "PodScheduled", "status": "True", "lastTransitionTime": ago(30)}
    raw = [pod(conditions=(placed,)), pod(conditions=(UNSCHEDULABLE,)), pod()]
    seen = observe(raw, now_s=NOW_S, warmup_timeout_s=WARMUP_TIMEOUT_S, replicas=3)
    assert [one.pod.scheduled_s for one in seen] == [NOW_S - 30, None, None]


@pytest.mark.parametrize(
    ("replicas", "failed_counted"), [(1, 0), (2, 1), (3, 2)], ids=["0 of 2", "1 of 2", "2 of 2"]
)
def test_failed_pod_counts_until_replaced(replicas: int, failed_counted: int) -> None:
    raw = [pod(ready="True"), pod(phase="Failed"), pod(phase="Failed")]
    seen = observe(raw, now_s=NOW_S, warmup_timeout_s=WARMUP_TIMEOUT_S, replicas=replicas)
    assert [one.pod.state for one in seen].count(PodState.BROKEN) == failed_counted


PREEMPTED = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
DRAINED = PREEMPTED | {"reason": "EvictionByEvictionAPI"}


@pytest.mark.parametrize(
    ("raw", "before", "name"),
    [
        pytest.param([pod(conditions=(PREEMPTED,), deleted=True)], "", "p1", id="it leaves"),
        pytest.param([pod(conditions=(UNSCHEDULABLE,))], "p0", "p0", id="no room in its place"),
        pytest.param([pod(phase="Pending")], "p0", "p0", id="not looked at yet"),
        pytest.param([pod(conditions=(SCHEDULED,))], "p0", "", id="another node took it"),
        pytest.param([pod(ready="True", conditions=(SCHEDULED,))], "p0", "", id="all serve"),
        pytest.param([pod(conditions=(DRAINED,), deleted=True)], "", "", id="drained"),
        pytest.param([pod(conditions=(UNSCHEDULABLE,))], "", "", id="no room, nothing taken"),
    ],
)
def test_preempted_pod_is_named_until_another_has_a_node(
    raw: list[Manifest], before: str, name: str
) -> None:
    seen = observe(raw, now_s=NOW_S, warmup_timeout_s=WARMUP_TIMEOUT_S, replicas=1)
    assert preempted(raw, seen, before) == name


def named(name: str, **changes: Any) -> Manifest:
    made = pod(**changes)
    made["metadata"]["name"] = name
    return made


def test_latest_failed_pods_count_for_missing_replicas() -> None:
    raw = [
        named("old", phase="Failed", created_s=900),
        named("new", phase="Failed", created_s=30),
        named("leaving", ready="True", deleted=True),
        named("ready", ready="True"),
    ]
    for replicas, names in ((0, []), (1, []), (2, ["new"]), (3, ["new", "old"])):
        seen = observe(raw, now_s=NOW_S, warmup_timeout_s=WARMUP_TIMEOUT_S, replicas=replicas)
        assert [one.name for one in seen] == ["leaving", "ready", *names]


@pytest.mark.parametrize(
    ("statuses", "running_s"),
    [
        ([], None),
        ([running(50)], 50.0),
        ([running(50), running(20)], 20.0),
        ([running(50), waiting("ContainerCreating")], None),
    ],
)
def test_pod_runs_since_its_last_container_started(
    statuses: list[Manifest], running_s: float | None
) -> None:
    containers = [{"name": f"c{number}", **one} for number, one in enumerate(statuses)]
    raw = pod(ready="True", containerStatuses=containers)
    (seen,) = observe([raw], now_s=NOW_S, warmup_timeout_s=WARMUP_TIMEOUT_S, replicas=1)
    assert seen.running_s == (None if running_s is None else NOW_S - running_s)


@pytest.mark.parametrize(
    ("owners", "of_a_set"),
    [
        (None, False),
        ([{"kind": "ReplicaSet", "controller": True}], True),
        ([{"kind": "ReplicaSet"}], False),
        ([{"kind": "StatefulSet", "controller": True}], False),
    ],
)
def test_pod_in_replica_set_by_controller(owners: Any, of_a_set: bool) -> None:
    raw = pod()
    raw["metadata"]["ownerReferences"] = owners
    (seen,) = observe([raw], now_s=NOW_S, warmup_timeout_s=WARMUP_TIMEOUT_S, replicas=1)
    assert seen.in_replica_set is of_a_set
    assert (seen.on_host_network, seen.gated, seen.fetch) == (False, False, None)


@pytest.mark.parametrize(
    ("due", "held"),
    [
        pytest.param(None, False, id="stays"),
        pytest.param(-30.0, False, id="within its grace period"),
        pytest.param(60.0, False, id="a kubelet that is slow to clean up"),
        pytest.param(61.0, True, id="held"),
    ],
)
def test_pod_that_should_have_ended_is_held(due: float | None, held: bool) -> None:
    one = pod()
    if due is not None:
        one["metadata"]["deletionTimestamp"] = ago(due)
    (seen,) = observe([one], now_s=NOW_S, warmup_timeout_s=WARMUP_TIMEOUT_S, replicas=1)
    assert seen.held is held
