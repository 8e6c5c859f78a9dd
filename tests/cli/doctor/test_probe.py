"""The doctor's probe of pods: address, answer and page."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from headroom.cli.commands.doctor.checks.metric_names import profile_of
from headroom.cli.commands.doctor.checks.telemetry_checks import pods_expose_metrics
from headroom.cli.commands.doctor.examination import examined
from headroom.cli.commands.doctor.facts import Answered
from headroom.cli.commands.doctor.findings import Severity
from headroom.cli.commands.doctor.pod_probe import ask_pod, judged, metric_names, scraped
from headroom.errors import Forbidden, Unavailable
from support.fakes_doctor import (
    HEALTHY,
    SERVICE,
    UID,
    How,
    answering,
    conditioned,
    saying,
)


def refused(message: str, reason: str = "ServiceUnavailable") -> bytes:
    return json.dumps({"kind": "Status", "reason": reason, "message": message}).encode()


@pytest.mark.parametrize(
    ("status", "answer", "how"),
    [
        (200, b"headroom_requests_waiting 0\n", How.PAGE),
        (503, refused("error trying to reach service: dial tcp: connection refused"), How.REFUSED),
        (503, refused("error trying to reach service: dial tcp: i/o timeout"), How.SILENT),
        (503, refused("error trying to reach service: EOF"), How.CLOSED),
        (503, refused("error trying to reach service: read: connection reset by peer"), How.CLOSED),
        (503, b"upstream connect error: connection reset by peer", How.OTHER),
        (504, b"", How.SILENT),
        (404, b"404 page not found", How.NOT_THERE),
        (500, b"oh", How.OTHER),
    ],
)
def test_answer_through_api_server_is_classified(
    status: int, answer: bytes, how: Answered.How
) -> None:
    assert judged(status, answer)[0] is how


def test_denied_pods_proxy_raises_forbidden() -> None:
    words = 'User "a" cannot get resource "pods/proxy" in API group ""'
    with pytest.raises(Forbidden, match="pods/proxy"):
        judged(403, refused(words, reason="Forbidden"))


def test_profile_of_page_follows_metric_names() -> None:
    page = b'# HELP x y\nvllm:num_requests_waiting{model="a"} 0\n\npython_info 1\n'
    assert metric_names(page) == {"vllm:num_requests_waiting", "python_info"}
    assert profile_of(metric_names(page)) == "vllm"
    assert profile_of(frozenset({"python_info"})) is None


@pytest.mark.parametrize(
    ("runtime", "expected"),
    [
        ({}, (8000, "/metrics", False)),
        ({"profile": "triton", "maxBatchSize": 8}, (8002, "/metrics", True)),
        ({"profile": "triton", "maxBatchSize": 8, "metricsPort": 9002}, (9002, "/metrics", True)),
        ({"profile": "vllm", "maxBatchSize": 8, "port": 8080}, (8080, "/metrics", False)),
        ({"profile": "no such"}, (8000, "/metrics", False)),
    ],
)
def test_doctor_scrapes_where_the_operator_does(
    runtime: dict[str, Any], expected: tuple[int, str, bool]
) -> None:
    assert scraped({"spec": {"runtime": runtime}}) == expected


class Api:
    """Answers of a pod by port; the others refuse connections, or are silent."""

    def __init__(self, pages: dict[int, bytes], *, silent: bool = False) -> None:
        self._pages = pages
        self._silent = silent

    async def fetch(self, path: str) -> Any:
        port = int(path.partition(":")[2].partition("/")[0])
        if (page := self._pages.get(port)) is not None:
            return SimpleNamespace(status=200, body=page)
        if self._silent:
            raise Unavailable(f"GET {path}: no response within 10 s")
        return SimpleNamespace(status=503, body=refused("connection refused"))


STARTING = {
    "metadata": {"name": "p", "namespace": "vision"},
    "spec": {
        "containers": [
            {"name": "proxy", "ports": [{"containerPort": 15090}]},
            {"name": "server", "ports": [{"containerPort": 8000}]},
        ]
    },
    "status": {"phase": "Running"},
}


@pytest.mark.parametrize("silent", [False, True])
def test_pod_that_still_loads_its_model_has_no_wrong_port(*, silent: bool) -> None:
    """Many servers listen only when their model is loaded, minutes after the pod runs."""
    api: Any = Api({}, silent=silent)
    answer = asyncio.run(ask_pod(api, SERVICE, [STARTING]))
    assert answer is not None
    warming = conditioned(saying("Ready", "False", "WarmingUp"))
    (found,) = examined(replace(warming, answers={UID: answer}))
    assert (found.finding, found.severity) == ("WarmingUp", Severity.NOTE)
    assert found.why.startswith("nothing answers yet at pod p, port 8000, /metrics")
    assert "kubectl logs p --container server --namespace vision" in found.remedy
    broken = conditioned(saying("Ready", "False", "ReplicasBroken"))
    found_all = {one.finding: one for one in examined(replace(broken, answers={UID: answer}))}
    if silent:
        assert found_all["MetricsMissing"].severity is Severity.PROBLEM
        return
    assert found_all["WrongPort"].severity is Severity.NOTE
    assert (
        "kubectl logs p --container server --namespace vision --previous"
        in found_all["WrongPort"].remedy
    )
    for ended in ("OOMKilled (code 137)", "Error (code 2)"):
        said = saying("Ready", "False", "ReplicasBroken", f"container server: last {ended}")
        ending = examined(replace(conditioned(said), answers={UID: answer}))
        assert [one.finding for one in ending] == ["ReplicasBroken"]


@pytest.mark.parametrize(
    ("runtime", "finding", "remedy"),
    [
        ({"profile": "triton", "maxBatchSize": 8}, "WrongProfile", "runtime.profile to headroom"),
        ({"port": 9000}, "WrongPort", "set spec.runtime.port to 8000"),
        ({"metricsPort": 9000}, "WrongPort", "set spec.runtime.metricsPort to 8000"),
    ],
)
def test_refused_port_names_the_declared_one_that_has_metrics(
    runtime: dict[str, Any], finding: str, remedy: str
) -> None:
    service = SERVICE | {"spec": SERVICE["spec"] | {"runtime": {"image": "x", **runtime}}}
    container = {"ports": [{"containerPort": 8000}]}
    pod = {**STARTING, "spec": {"containers": [container]}}
    api: Any = Api({8000: b"headroom_requests_waiting 0\n"})
    answer = asyncio.run(ask_pod(api, service, [pod]))
    assert answer is not None
    facts = replace(HEALTHY, services=(service,), answers={UID: answer})
    (found,) = pods_expose_metrics(facts)
    assert found.finding == finding
    assert "port 8000 has the metrics of headroom" in found.why
    assert remedy in found.remedy


def test_refused_metrics_port_of_a_profile_names_its_field() -> None:
    facts = answering(how=How.REFUSED, detail="connection refused", own_port=True)
    (found,) = pods_expose_metrics(facts)
    assert "set spec.runtime.metricsPort" in found.remedy
