"""The shipped trace, window and manifests fit each other."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from demo import load_job, plan
from load.arrivals import arrivals
from load.traces import load


def test_the_carried_recording_rises_and_falls_within_the_window() -> None:
    due = arrivals(load(plan.TRACE), plan.Plan().replay)
    rates_rps = [sum(1 for at in due if i * 60 <= at < i * 60 + 60) / 60 for i in range(6)]
    assert rates_rps == pytest.approx((8.33, 13.33, 17.0, 23.17, 14.0, 7.0), rel=0.1)
    assert plan.DURATION_S >= 300


def test_the_replay_sends_as_many_requests_as_were_recorded_times_the_scale() -> None:
    replay = plan.Plan().replay
    assert len(arrivals(load(plan.TRACE), replay)) == pytest.approx(4970, rel=0.03)


def test_the_longest_duration_lies_within_the_recording() -> None:
    replay = plan.Plan(duration_s=plan.LONGEST_S / 2).replay
    assert len(arrivals(load(plan.TRACE), replay)) <= replay.max_requests


def test_job_runs_once_without_permissions_and_with_all_arguments() -> None:
    job: dict[str, Any] = load_job.replaying(
        "load",
        image="i",
        url="http://10.0.0.1:80",
        model="demo",
        target_s=1.5,
        replay=plan.Plan().replay,
    )
    assert job["spec"]["backoffLimit"] == 0
    assert job["spec"]["activeDeadlineSeconds"] == 480
    pod = job["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"]
    arguments = pod["containers"][0]["args"]
    for expected in ("--url=http://10.0.0.1:80", "--duration=360.0", "--scale=10.0", "--seed=1"):
        assert expected in arguments
    volume = load_job.config_map("load", plan.TRACE.read_bytes())
    assert list(volume["binaryData"]) == [load_job.TRACE_KEY]


def test_demo_files_exist_and_the_sample_has_one_service() -> None:
    assert (plan.MANIFESTS / "kustomization.yaml").is_file()
    kinds = [one["kind"] for one in yaml.safe_load_all(plan.SAMPLE.read_text()) if one]
    assert kinds.count("InferenceService") == 1
    assert (plan.REPOSITORY / plan.LOAD_DOCKERFILE).is_file()
    assert list(plan.TRACE.parent.glob("LICENSE*"))
