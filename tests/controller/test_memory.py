"""What is remembered of a service: its spec, its mode, its decision, a look at its children."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headroom.controller.decide.decide_tick import ServiceState
from headroom.controller.service_context import Checked, Memory, remember
from headroom.scaling import State
from service_world import body, service


def begun(**changes: Any) -> Memory:
    return remember(body(**changes), 1_800_000_000.0)


@pytest.mark.parametrize(
    ("spec", "status", "replicas"),
    [
        ({}, {}, 1),
        ({"spec__scaling": {"minReplicas": 3}}, {}, 3),
        ({}, {"decision": {"replicas": 5, "current": 4}}, 5),
        ({"spec__scaling": {"mode": "Recommend"}}, {"decision": {"replicas": 5, "current": 4}}, 4),
        ({"spec__scaling": {"maxReplicas": 4}}, {"decision": {"replicas": 5, "current": 5}}, 4),
        ({"spec__scaling": {"minReplicas": 6}}, {"decision": {"replicas": 5, "current": 5}}, 6),
        (
            {"spec__replicas": 7, "spec__scaling": {"mode": "External"}},
            {"decision": {"replicas": 5, "current": 5}},
            7,
        ),
    ],
)
def test_a_deployment_that_is_missing_gets_what_was_decided(
    spec: dict[str, Any], status: dict[str, Any], replicas: int
) -> None:
    memory = begun(**spec, status=status)
    assert memory.replicas_if_absent(service(**spec)) == replicas


def test_a_spec_is_parsed_once_per_generation() -> None:
    memory = begun()
    first = memory.parse(body())
    children = memory.children
    assert memory.parse(body()) is first
    assert memory.children is children
    assert memory.parse(body(metadata__generation=4)) is not first
    assert memory.children is not children
    assert children[-1]["kind"] == "Deployment"
    unnumbered = body()
    del unnumbered["metadata"]["generation"]
    assert memory.parse(unnumbered) is memory.parse(unnumbered)


@pytest.mark.parametrize(
    ("before", "after", "anew"), [("", "Auto", False), ("Auto", "Auto", False)]
)
def test_a_mode_that_stays_leaves_every_hold(before: str, after: str, anew: bool) -> None:
    memory = begun()
    memory.mode, memory.learnt = before, ServiceState(state=State(last_s=5.0))
    memory.enter(after)
    assert (memory.learnt.state.last_s is None) is anew
    assert memory.mode == after


def test_another_mode_begins_every_hold_anew() -> None:
    memory = begun()
    memory.mode, memory.learnt = "Auto", ServiceState(state=State(last_s=5.0))
    memory.enter("External")
    assert memory.learnt.state.last_s is None
    assert memory.mode == "External"


@pytest.mark.parametrize(
    ("now_s", "holds"), [(9.9, False), (10.0, True), (39.9, True), (40.0, False)]
)
def test_a_look_is_good_until_the_next(now_s: float, holds: bool) -> None:
    children: tuple[dict[str, Any], ...] = ({"kind": "Service"},)
    checked = Checked(children=children, at_s=10.0, again_s=40.0)
    assert checked.holds(children, now_s) is holds
    assert not checked.holds(({"kind": "Service"},), now_s)


LEARNT = {
    "version": 3,
    "cost": [[0, 10.0, 10.0, 10.0, 2.1, 2.1]],
    "variation": [0.0, 0.0],
    "correction": [1.5],
    "coldStarts": [42.0],
}


def test_what_status_kept_is_known_again_each_part_by_itself(
    caplog: pytest.LogCaptureFixture,
) -> None:
    known = begun(status={"checkpoint": json.dumps(LEARNT)})
    assert known.learnt.state.cold_starts.p90_s == 42.0
    assert caplog.text == ""
    for broken in ({"version": 1}, {"correction": [99.0]}):
        assert (
            begun(status={"checkpoint": json.dumps(LEARNT | broken)}).learnt.state.cold_starts.p90_s
            is None
        )
    assert caplog.text.count("vision/resnet50: starting without memory") == 2
    half = begun(status={"checkpoint": json.dumps(LEARNT | {"errorBudget": "x"})})
    assert half.learnt.state.cold_starts.p90_s == 42.0
    assert "starting with a whole error budget" in caplog.text
