"""The download of a model: how it goes, and the message about one that fails."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headroom.api.reasons import StatusReason
from headroom.api.service_status.conditions import ConditionType
from headroom.api.timestamps import epoch_s, rfc3339
from headroom.console.cold_starts import starts
from headroom.controller.act.write_result import WriteResult
from headroom.controller.gather.gather_tick import Gathered
from headroom.controller.gather.pods.model_download import ModelDownload, download_of
from headroom.controller.gather.pods.pods import observe
from headroom.controller.report.conditions.condition_result import TickResult
from headroom.controller.report.conditions.condition_rules import of_tick
from headroom.controller.report.evaluation import Evaluation
from headroom.scaling import Observation, State, decide
from support.service_world import service

NOW_S = epoch_s("2026-11-20T12:00:00Z")
SERVICE = service(spec__model={"uri": "hf://acme/resnet50"})
Manifest = dict[str, Any]


def ago(seconds: float) -> str:
    return rfc3339(NOW_S - seconds)


def ended(code: int, message: str = "") -> Manifest:
    moments = {"startedAt": ago(50), "finishedAt": ago(20)}
    return {"terminated": {"exitCode": code, "reason": "Error", "message": message, **moments}}


def waiting(reason: str, message: str = "") -> Manifest:
    return {"waiting": {"reason": reason, "message": message}}


def pod(state: Manifest, last: Manifest | None = None, name: str = "model") -> Manifest:
    conditions = [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": ago(58)},
        {"type": "Ready", "status": "False", "lastTransitionTime": ago(60)},
    ]
    init = {"name": name, "restartCount": 3 if last else 0, "state": state, "lastState": last or {}}
    return {
        "metadata": {"uid": "u1", "name": "p1", "creationTimestamp": ago(60)},
        "status": {
            "phase": "Pending",
            "conditions": conditions,
            "initContainerStatuses": [init],
            "containerStatuses": [
                {"name": "server", "restartCount": 0, "state": waiting("PodInitializing")}
            ],
        },
    }


PULLING = pod(waiting("PodInitializing"))
NO_IMAGE = pod(waiting("ImagePullBackOff", 'pulling "headroom-downloader:0.1.0": not found'))
FETCHING = pod({"running": {"startedAt": ago(35)}})
DONE = pod(ended(0))
FAILED = pod(
    waiting("CrashLoopBackOff", "back-off 40s"), ended(1, "hf://acme/resnet50 was not fetched")
)
WRONG = pod(waiting("CrashLoopBackOff", "back-off 40s"), ended(3, "the digest is sha256:00"))
AGAIN = pod({"running": {"startedAt": ago(5)}}, ended(1, "no route"))


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        (PULLING, ModelDownload()),
        (NO_IMAGE, ModelDownload(failed=True)),
        (FETCHING, ModelDownload(since_s=NOW_S - 35)),
        (DONE, ModelDownload(since_s=NOW_S - 50, until_s=NOW_S - 20)),
        (FAILED, ModelDownload(failed=True)),
        (AGAIN, ModelDownload(since_s=NOW_S - 5, failed=True)),
        (pod({"running": {"startedAt": ago(35)}}, name="theirs"), None),
        ({"metadata": {}, "status": {}}, None),
    ],
    ids=["its image", "no image", "fetching", "done", "failed", "again", "another's", "no node"],
)
def test_model_download_by_container_status(
    manifest: Manifest, expected: ModelDownload | None
) -> None:
    assert download_of(manifest) == expected


def evaluation(manifest: Manifest) -> tuple[TickResult, Evaluation]:
    pods = observe([manifest], now_s=NOW_S, warmup_timeout_s=600.0, replicas=1)
    observation = Observation(now_s=NOW_S, current=1, pods=tuple(one.pod for one in pods))
    policy, state = SERVICE.to_policy(), State.initial()
    decision, _ = decide(policy, state, observation)
    gathered = Gathered(observation=observation, deployment=None, pods=pods)
    tick = TickResult(
        service=SERVICE, gathered=gathered, decision=decision, written=WriteResult(replicas=1)
    )
    seen = Evaluation(
        service=SERVICE,
        policy=policy,
        state=state,
        observation=observation,
        pods=pods,
        decision=decision,
    )
    return tick, seen


@pytest.mark.parametrize(
    ("manifest", "reason", "words"),
    [
        (FETCHING, StatusReason.WARMING_UP, ["1 download their model, the first for 35 s"]),
        (NO_IMAGE, StatusReason.MODEL_UNAVAILABLE, ["ImagePullBackOff", "not found"]),
        (FAILED, StatusReason.MODEL_UNAVAILABLE, ["was not fetched", "fix spec.model"]),
        (WRONG, StatusReason.MODEL_UNAVAILABLE, ["the digest is sha256:00", "(code 3)"]),
    ],
    ids=["fetching", "no image", "failed", "wrong digest"],
)
def test_model_download_failure_is_in_the_condition(
    manifest: Manifest, reason: StatusReason, words: list[str]
) -> None:
    tick, _ = evaluation(manifest)
    (ready,) = [one for one in of_tick(tick) if one.kind is ConditionType.READY]
    assert ready.reason is reason
    for word in words:
        assert word in ready.message


@pytest.mark.parametrize(
    ("measured_s", "usual"),
    [
        (None, "no start has been measured yet, and one may take 10m (warmup.timeout)"),
        (95.0, "a start usually takes 1m35s (p90), and may take 10m (warmup.timeout)"),
    ],
)
def test_model_that_loads_is_reported_with_its_time_and_the_usual_one(
    measured_s: float | None, usual: str
) -> None:
    loading = pod(ended(0))
    loading["status"]["conditions"][0]["lastTransitionTime"] = ago(90)
    probe = {"httpGet": {"path": "/ready", "port": 8000}}
    loading["spec"] = {"containers": [{"name": "server", "startupProbe": probe}]}
    server = {"state": {"running": {"startedAt": ago(70)}}, "ready": False, "started": False}
    loading["status"]["containerStatuses"][0] |= server
    tick, _ = evaluation(loading)
    tick = replace(tick, decision=replace(tick.decision, cold_start_s=measured_s))
    (ready,) = [one for one in of_tick(tick) if one.kind is ConditionType.READY]
    passed = "its startup probe (GET /ready at port 8000) 70 s after its start"
    assert f"{passed}; {usual}; wait while kubectl logs" in ready.message


def test_server_crash_is_no_model_failure() -> None:
    crashed = pod(ended(0))
    crashed["status"]["containerStatuses"][0]["state"] = waiting("CrashLoopBackOff", "back-off")
    tick, _ = evaluation(crashed)
    (ready,) = [one for one in of_tick(tick) if one.kind is ConditionType.READY]
    assert ready.reason is StatusReason.REPLICAS_BROKEN


def test_model_download_is_a_phase_of_the_cold_start() -> None:
    served = pod(ended(0))
    served["status"]["phase"] = "Running"
    served["status"]["conditions"][1] |= {"status": "True", "lastTransitionTime": ago(5)}
    served["status"]["containerStatuses"][0]["state"] = {"running": {"startedAt": ago(18)}}
    _, seen = evaluation(served)
    (start,) = starts(seen)
    # created 60 s ago, a node 58, fetched from 50 to 20, running 18, ready 5
    assert (start.scheduling_s, start.fetching_s, start.pulling_s) == (2.0, 30.0, 10.0)
    assert (start.warming_s, start.total_s) == (13.0, 55.0)
