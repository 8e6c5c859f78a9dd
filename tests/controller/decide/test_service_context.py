"""Memory of a service: its spec, its mode, its decision, the last check of its children."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from headroom.api.invalid_spec import InvalidSpec
from headroom.controller.act.state import ActState, ChildrenCheck
from headroom.controller.decide.decide_tick import ServiceState
from headroom.controller.decide.gateway_slo import GatewaySLI
from headroom.controller.decide.scale_to_zero import IdleTracker
from headroom.controller.decide.token_slo import TokenSLOController
from headroom.controller.service_context import ServiceContext, restore
from headroom.profiles.headroom import HEADROOM
from headroom.scaling import State
from headroom.scaling.limits.cold_start import ColdStarts
from headroom.telemetry.samples.pod_samples import PodSamples
from support.service_world import body, service


def begun(**changes: Any) -> ServiceContext:
    return restore(body(**changes), 1_800_000_000.0)


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
def test_initial_replicas_are_the_last_decision(
    spec: dict[str, Any], status: dict[str, Any], replicas: int
) -> None:
    context = begun(**spec, status=status)
    assert context.initial_replicas(service(**spec)) == replicas


def test_spec_is_parsed_once_per_generation() -> None:
    context = begun()
    first = context.parse(body())
    children = context.children
    assert context.parse(body()) is first
    assert context.children is children
    assert context.parse(body(metadata__generation=4)) is not first
    assert context.children is not children
    assert children[-1]["kind"] == "Deployment"
    unnumbered = body()
    del unnumbered["metadata"]["generation"]
    assert context.parse(unnumbered) is context.parse(unnumbered)


def test_spec_without_children_is_invalid_at_every_tick() -> None:
    context = begun()
    context.parse(body())
    broken = body(
        metadata__generation=4,
        spec__runtime={
            "image": "new",
            "profile": "triton",
            "maxBatchSize": 8,
            "podTemplate": {"spec": {"readinessGates": 5}},
        },
        spec__warmup={"sender": "Operator"},
    )
    for _ in range(3):
        with pytest.raises(InvalidSpec, match="podTemplate: must be a pod template"):
            context.parse(broken)
    assert context.service is None


def test_deeply_nested_checkpoint_starts_without_memory(caplog: pytest.LogCaptureFixture) -> None:
    known = begun(status={"checkpoint": "[" * 5000})
    assert known.decide.service.state.cold_starts.p90_s is None
    assert "checkpoint must be JSON" in caplog.text


@pytest.mark.parametrize(
    ("before", "after", "anew"), [("", "Auto", False), ("Auto", "Auto", False)]
)
def test_unchanged_mode_keeps_holds(before: str, after: str, anew: bool) -> None:
    context = begun()
    context.decide.mode, context.decide.service = before, ServiceState(state=State(last_s=5.0))
    context.decide.reset_on_mode_change(after)
    assert (context.decide.service.state.last_s is None) is anew
    assert context.decide.mode == after


def test_mode_change_resets_holds() -> None:
    context = begun()
    context.decide.mode, context.decide.service = "Auto", ServiceState(state=State(last_s=5.0))
    context.decide.reset_on_mode_change("External")
    assert context.decide.service.state.last_s is None
    assert context.decide.mode == "External"


def test_restart_drops_all_times_and_keeps_what_was_learned() -> None:
    context = begun()
    writer, accepted = context.act.writer, {"kind": "Deployment"}
    context.decide.service = ServiceState(
        state=State(last_s=500.0, cold_starts=ColdStarts(seconds=(40.0,))),
        tokens=TokenSLOController(logarithm=math.log(1.5), served_since_s=500.0),
        idle=IdleTracker(since_s=400.0),
        gateway=GatewaySLI(watched=True),
    )
    context.gather.samples = PodSamples(HEADROOM, None)
    context.act.accepted, context.act.evicts_again_s = accepted, 1000.0
    context.restart()
    known = context.decide.service
    assert known.state.last_s is None
    assert known.state.cold_starts.seconds == (40.0,)
    assert known.tokens.capacity_factor == pytest.approx(1.5)
    assert known.tokens.served_since_s == 0.0
    assert known.idle == IdleTracker()
    assert not known.gateway.watched
    assert context.gather.samples is None
    assert context.act == ActState(writer=writer, accepted=accepted)


@pytest.mark.parametrize(
    ("now_s", "holds"), [(9.9, False), (10.0, True), (39.9, True), (40.0, False)]
)
def test_children_check_is_current_until_the_next(now_s: float, holds: bool) -> None:
    children: tuple[dict[str, Any], ...] = ({"kind": "Service"},)
    checked = ChildrenCheck(children=children, at_s=10.0, next_s=40.0)
    assert checked.is_current(children, now_s) is holds
    assert not checked.is_current(({"kind": "Service"},), now_s)


LEARNT = {
    "version": 3,
    "cost": [[0, 10.0, 10.0, 10.0, 2.1, 2.1]],
    "variation": [0.0, 0.0],
    "correction": [1.5],
    "coldStarts": [42.0],
}


def test_restore_reads_each_part_of_the_checkpoint(
    caplog: pytest.LogCaptureFixture,
) -> None:
    known = begun(status={"checkpoint": json.dumps(LEARNT)})
    assert known.decide.service.state.cold_starts.p90_s == 42.0
    assert caplog.text == ""
    for broken in ({"version": 1}, {"correction": [99.0]}):
        assert (
            begun(
                status={"checkpoint": json.dumps(LEARNT | broken)}
            ).decide.service.state.cold_starts.p90_s
            is None
        )
    assert caplog.text.count("vision/resnet50: starting without memory") == 2
    half = begun(status={"checkpoint": json.dumps(LEARNT | {"errorBudget": "x"})})
    assert half.decide.service.state.cold_starts.p90_s == 42.0
    assert "starting with a whole error budget" in caplog.text
