"""The doctor's probe of pods: address, answer and page."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fakes_doctor import How
from headroom.cli.commands.doctor.facts import Answered
from headroom.cli.commands.doctor.pod_probe import judged, metric_names, scraped
from headroom.cli.commands.doctor.telemetry_checks import profile_of
from headroom.errors import Forbidden


def refused(message: str, reason: str = "ServiceUnavailable") -> bytes:
    return json.dumps({"kind": "Status", "reason": reason, "message": message}).encode()


@pytest.mark.parametrize(
    ("status", "answer", "how"),
    [
        (200, b"headroom_requests_waiting 0\n", How.PAGE),
        (503, refused("error trying to reach service: dial tcp: connection refused"), How.REFUSED),
        (503, refused("error trying to reach service: dial tcp: i/o timeout"), How.SILENT),
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
        ({}, (8000, "/metrics")),
        ({"profile": "triton", "maxBatchSize": 8}, (8002, "/metrics")),
        ({"profile": "triton", "maxBatchSize": 8, "metricsPort": 9002}, (9002, "/metrics")),
        ({"profile": "vllm", "maxBatchSize": 8, "port": 8080}, (8080, "/metrics")),
        ({"profile": "no such"}, (8000, "/metrics")),
    ],
)
def test_doctor_scrapes_where_the_operator_does(
    runtime: dict[str, Any], expected: tuple[int, str]
) -> None:
    assert scraped({"spec": {"runtime": runtime}}) == expected
