"""Readiness gate of a pod: its state, its containers, and the time of a write."""

from __future__ import annotations

from typing import Any

import pytest

from headroom.controller.warmup import gate, gate_condition
from headroom.controller.warmup.gate import GatedPod, GateReason
from headroom.controller.warmup.progress import Fault, Progress, Terms

TERMS = Terms(requests=2, max_latency_s=0.25, timeout_s=60.0)
NOW_S = 1_800_000_000.0


def raw(
    *,
    said: GateReason | None = None,
    container: str = "a",
    restarts: int = 0,
    started: bool = True,
    gated: bool = True,
    sidecar: str = "s",
    **spec: Any,
) -> dict[str, Any]:
    """A pod as the API server gives it; its server listens on 8000."""
    conditions = [{"type": "ContainersReady", "status": str(started)}]
    if said is not None:
        conditions.append(
            {
                "type": "headroom.dev/warm",
                "status": str(said.holds),
                "reason": said.reason,
                "message": said.message,
                "lastTransitionTime": "2026-01-31T12:00:00Z",
            }
        )
    gates = [{"conditionType": "headroom.dev/warm"}] if gated else []
    return {
        "metadata": {"uid": "u", "namespace": "n", "name": "p", "resourceVersion": "41"},
        "spec": {
            "readinessGates": [{"conditionType": "example.com/other"}, *gates],
            "containers": [
                {"name": "server", "ports": [{"containerPort": 8000}]},
                {"name": "sidecar"},
            ],
            **spec,
        },
        "status": {
            "podIP": "10.0.0.1",
            "conditions": conditions,
            "containerStatuses": [
                {"name": "server", "containerID": container, "restartCount": restarts},
                {"name": "sidecar", "containerID": sidecar, "restartCount": 0},
            ],
        },
    }


def read(port: int = 8000, **given: Any) -> GatedPod:
    pod = gate.read(raw(**given), port)
    assert pod is not None
    return pod


def warm(pod: GatedPod) -> GateReason:
    progress = Progress(begun_s=0.0).answered(0.1, 1.0, TERMS).answered(0.2, 2.0, TERMS)
    return gate_condition.wanted(pod, progress, TERMS, 2.0)


def test_pod_without_gate_gets_no_warmup() -> None:
    assert gate.read(raw(gated=False), 8000) is None


def test_gate_holds_for_its_containers_only() -> None:
    said = warm(read())
    assert said.holds
    assert "the slowest of the last 2 took 200 ms (warmup.maxLatency 250 ms)" in said.message
    assert read(said=said).is_warm
    assert not read(said=said, container="b").is_warm
    assert not read(said=said, restarts=1).is_warm
    assert read(said=said, container="b").is_open


@pytest.mark.parametrize(("port", "counts"), [(8000, False), (9999, True)])
def test_sidecar_counts_only_without_a_named_port(port: int, counts: bool) -> None:
    said = warm(read(port))
    assert read(port, said=said, sidecar="t").is_warm is not counts


@pytest.mark.parametrize(
    ("progress", "now_s", "reason", "words"),
    [
        (Progress(begun_s=0.0), 1.0, "WarmingUp", "2 are to meet warmup.maxLatency 250 ms"),
        (
            Progress(begun_s=0.0, answered_s=(3.0, 3.0), sent=9, slow=9, last_s=1.0),
            1.0,
            "TooSlow",
            "raise warmup.maxLatency",
        ),
        (
            Progress(begun_s=0.0, sent=1, failures=1, fault=Fault.REFUSED, said="400"),
            1.0,
            "RequestRefused",
            "400",
        ),
        (
            Progress(begun_s=0.0, sent=1, failures=1, fault=Fault.UNANSWERED, said="refused"),
            61.0,
            "TimedOut",
            "not warm within warmup.timeout (60 s): RequestUnanswered: refused",
        ),
    ],
)
def test_closed_gate_names_its_reason(
    progress: Progress, now_s: float, reason: str, words: str
) -> None:
    said = gate_condition.wanted(read(), progress, TERMS, now_s)
    assert (said.holds, said.reason) == (False, reason)
    assert words in said.message
    waits = gate.waits_for(raw(said=said))
    assert waits is not None
    assert (waits.reason, words in str(waits)) == (reason, True)
    assert "containers" not in waits.message


def test_gate_reason_is_none_before_ready_and_when_warm() -> None:
    assert gate.waits_for(raw(started=False)) is None
    assert gate.waits_for(raw(said=warm(read()))) is None
    assert gate.waits_for(raw(gated=False)) is None
    assert "about to be sent" in str(gate.waits_for(raw()))


@pytest.mark.parametrize(
    ("known", "reason", "age_s", "last_s", "worth"),
    [
        (None, "WarmingUp", 1.0, -1e9, False),
        (None, "WarmingUp", 2.0, -1e9, True),
        (("WarmingUp", "x"), "TooSlow", 5.0, 4.9, True),
        (("TooSlow", "x"), "TooSlow", 13.0, 4.0, False),
        (("TooSlow", "x"), "TooSlow", 15.0, 4.0, True),
        (("Warm", "of others"), "TooSlow", 15.0, 4.0, False),
        (("Warm", "of others"), "TimedOut", 70.0, 4.0, True),
        (("Warm", "of others"), "Warm", 5.0, 4.0, True),
    ],
)
def test_gate_condition_is_written_on_change(
    known: tuple[str, str] | None, reason: str, age_s: float, last_s: float, worth: bool
) -> None:
    before = known and GateReason(holds=known[0] == "Warm", reason=known[0], message=known[1])
    said = GateReason(holds=reason == "Warm", reason=reason, message="now")
    pod, progress = read(said=before), Progress(begun_s=0.0)
    assert gate_condition.is_worth_writing(pod, said, progress, age_s, last_s) is worth


def test_gate_apply_has_version_and_no_kubelet_fields() -> None:
    pod = read()
    assert gate_condition.status_manifest(pod, warm(pod), NOW_S) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "n", "uid": "u", "resourceVersion": "41"},
        "status": {
            "conditions": [
                {
                    "type": "headroom.dev/warm",
                    "status": "True",
                    "reason": "Warm",
                    "message": warm(pod).message,
                    "lastTransitionTime": "2027-01-15T08:00:00Z",
                }
            ]
        },
    }


def test_gate_transition_time_moves_with_the_status() -> None:
    pod = read(said=GateReason(holds=False, reason="WarmingUp", message="x"))
    slow = GateReason(holds=False, reason="TooSlow", message="y")
    (written,) = gate_condition.status_manifest(pod, slow, NOW_S)["status"]["conditions"]
    assert written["lastTransitionTime"] == "2026-01-31T12:00:00Z"
