"""Steps for pods that do not start, by messages of Kubernetes 1.36 about real pods."""

from __future__ import annotations

import pytest

from headroom.api.start_steps import (
    DIAGNOSE,
    step_to_fetch,
    step_to_schedule,
    step_to_start,
    without_doctor,
)

PULL = 'container server: ImagePullBackOff: Back-off pulling image "a:1": ErrImagePull'
PREEMPTION = "no new claims to deallocate, preemption: 0/1 nodes are available"


@pytest.mark.parametrize(
    ("said", "step"),
    [
        (f"0/1 nodes are available: 1 node(s) were unschedulable. {PREEMPTION}", "uncordon"),
        (
            "0/4 nodes are available: 2 Insufficient nvidia.com/gpu, 2 node(s) were unschedulable.",
            "uncordon",
        ),
        (
            "a-1 was preempted by a pod of higher priority; a-2: 0/1 nodes: 1 Insufficient a.b/gpu",
            "set spec.priorityClassName in runtime.podTemplate",
        ),
        (
            '0/1 nodes are available: persistentvolumeclaim "models" not found. not found',
            "PersistentVolumeClaim",
        ),
        (
            "1 Insufficient nvidia.com/gpu, 1 node(s) had taint {node.kubernetes.io/unreachable: }",
            "repair the nodes that are not ready",
        ),
        ("0/1 nodes are available: 1 node(s) had untolerated taint(s) {gpu: }.", "tolerate"),
        (
            f"0/1 nodes are available: 1 node(s) had untolerated taint(s). {PREEMPTION}",
            "repair the nodes that are not ready (kubectl get nodes), tolerate the taint",
        ),
        ("0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.", "select"),
    ],
)
def test_step_to_schedule_follows_the_scheduler(said: str, step: str) -> None:
    assert step in step_to_schedule(said)


def test_lack_of_accelerators_has_no_step_of_its_own() -> None:
    """A taint of the control plane is on most clusters, and not why a GPU is missing."""
    tainted = "1 node(s) had untolerated taint(s) {node-role.kubernetes.io/control-plane: }"
    assert (
        step_to_schedule(f"0/3 nodes are available: {tainted}, 2 Insufficient nvidia.com/gpu.")
        == ""
    )


@pytest.mark.parametrize(
    ("said", "step"),
    [
        ('container server: ImagePullBackOff: Back-off pulling image "a:typo"', "image"),
        (f"{PULL}: failed to do request: Head: dial tcp: connection refused", "check the registry"),
        (f"{PULL}: unexpected status: 429 Too Many Requests", "the pull is repeated"),
        (f"{PULL}: failed to pull and unpack: a:typo: not found", "correct the image"),
        ("container server: InvalidImageName: couldn't parse image", "image"),
        ("container server: restarted 3 times, OOMKilled (137)", "memory limit"),
        ('container server: CreateContainerConfigError: secret "hub" not found', "Secret"),
        (
            "container server: CrashLoopBackOff: back-off 40s, Error (1)",
            "logs POD --container server --previous",
        ),
        (
            "0 of 1 replicas are ready; ranker-7c5-x2: container server: CrashLoopBackOff: Error",
            "logs ranker-7c5-x2 --container server --previous",
        ),
        (
            "ranker-7c5-x2: container server has not passed its startup probe (GET / at port 80)",
            "kubectl logs ranker-7c5-x2 --container server, and kubectl describe pod ranker-7c5-x2",
        ),
        (
            "a-1: container a has not passed its startup probe (GET /) 70 s after its start",
            "wait while kubectl logs a-1 --container a shows progress",
        ),
        (
            "a-1: init container fetch: CrashLoopBackOff: back-off restarting failed container b",
            "logs a-1 --container fetch --previous",
        ),
        (
            "not ready for 90 s (warm-up timeout 60 s, restarted 3 times)",
            "logs POD --container NAME --previous",
        ),
        (
            "a-1: its volumes or its network have not been ready for 62 s; no start",
            "kubectl describe pod a-1",
        ),
        ("NodeLost: see kubectl describe node gpu-1", "repair its node"),
        ("not ready for 700 s (warm-up timeout 600 s)", ""),
    ],
)
def test_step_to_start_follows_the_kubelet(said: str, step: str) -> None:
    assert step in step_to_start(said)
    assert bool(step) == bool(step_to_start(said))


def test_missing_image_of_the_downloader_is_not_blamed_on_the_model() -> None:
    assert "downloader.image" in step_to_fetch("a-1: container model: ErrImagePull: not found")
    assert step_to_fetch("a-1: container model: CrashLoopBackOff: Error (code 1)") == ""
    assert step_to_fetch("a-1: container server: ErrImagePull: not found") == ""


def test_doctor_is_not_advised_to_run_itself() -> None:
    assert without_doctor(f"no page; {DIAGNOSE} -n shop") == "no page"
    assert without_doctor("no page") == "no page"
