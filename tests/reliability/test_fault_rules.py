"""Matching of fault rules to requests: tables of requests and of rules."""

from __future__ import annotations

import json

import pytest

from reliability.fault_proxy.calls import Call, Verb, read_call
from reliability.fault_proxy.rules import (
    Delay,
    Fault,
    LoseEvents,
    Plan,
    Refuse,
    RepeatEvents,
    Reset,
    Rule,
    Silence,
    TimeTravel,
)
from reliability.fault_proxy.streams import Stream, error_event

DOWN = Refuse(code=503)


@pytest.mark.parametrize(
    ("method", "path", "query", "call"),
    [
        (
            "GET",
            "/api/v1/namespaces/a/pods",
            {"labelSelector": "x=y"},
            Call(verb=Verb.LIST, resource="pods", namespace="a"),
        ),
        (
            "GET",
            "/apis/headroom.dev/v1alpha1/inferenceservices",
            {"watch": "true"},
            Call(verb=Verb.WATCH, resource="inferenceservices"),
        ),
        (
            "GET",
            "/apis/apps/v1/namespaces/a/deployments/b",
            {},
            Call(verb=Verb.GET, resource="deployments", namespace="a", name="b"),
        ),
        (
            "PATCH",
            "/apis/apps/v1/namespaces/a/deployments/b/scale",
            {"fieldManager": "m"},
            Call(verb=Verb.PATCH, resource="deployments/scale", namespace="a", name="b"),
        ),
        (
            "PATCH",
            "/apis/apps/v1/namespaces/a/deployments/b",
            {"dryRun": "All"},
            Call(verb=Verb.PATCH, resource="deployments", namespace="a", name="b", dry_run=True),
        ),
        (
            "POST",
            "/apis/events.k8s.io/v1/namespaces/a/events",
            {},
            Call(verb=Verb.CREATE, resource="events", namespace="a"),
        ),
        ("GET", "/api/v1/namespaces/a", {}, Call(verb=Verb.GET, resource="namespaces", name="a")),
        ("GET", "/api/v1/namespaces", {}, Call(verb=Verb.LIST, resource="namespaces")),
        ("GET", "/apis/headroom.dev/v1alpha1", {}, Call(verb=Verb.GET, resource="discovery")),
        ("GET", "/version", {}, Call(verb=Verb.GET, resource="discovery")),
        ("DELETE", "/api/v1/nodes/n", {}, Call(verb=Verb.DELETE, resource="nodes", name="n")),
    ],
)
def test_a_request_is_read_as_verb_and_object(
    method: str, path: str, query: dict[str, str], call: Call
) -> None:
    assert read_call(method, path, query) == call


def test_a_dry_run_writes_nothing() -> None:
    assert Call(verb=Verb.PATCH, resource="deployments").writes
    assert not Call(verb=Verb.PATCH, resource="deployments", dry_run=True).writes
    assert not Call(verb=Verb.LIST, resource="pods").writes


LIST_PODS = Call(verb=Verb.LIST, resource="pods", namespace="a")
SCALE = Call(verb=Verb.PATCH, resource="deployments/scale", namespace="a", name="b")
WATCH = Call(verb=Verb.WATCH, resource="inferenceservices")


@pytest.mark.parametrize(
    ("rule", "call", "now_s", "affected"),
    [
        (Rule(fault=DOWN), LIST_PODS, 0.0, True),
        (Rule(fault=DOWN, verbs=frozenset({Verb.PATCH})), LIST_PODS, 0.0, False),
        (Rule(fault=DOWN, verbs=frozenset({Verb.PATCH})), SCALE, 0.0, True),
        (Rule(fault=DOWN, resources=frozenset({"deployments"})), SCALE, 0.0, False),
        (Rule(fault=DOWN, resources=frozenset({"deployments/scale"})), SCALE, 0.0, True),
        (Rule(fault=DOWN, name="c"), SCALE, 0.0, False),
        (Rule(fault=DOWN, since_s=5.0, until_s=9.0), SCALE, 4.9, False),
        (Rule(fault=DOWN, since_s=5.0, until_s=9.0), SCALE, 5.0, True),
        (Rule(fault=DOWN, since_s=5.0, until_s=9.0), SCALE, 9.0, False),
        (Rule(fault=Silence()), LIST_PODS, 0.0, False),
        (Rule(fault=Silence()), WATCH, 0.0, True),
        (Rule(fault=TimeTravel(seconds=5.0)), SCALE, 0.0, False),
        (Rule(fault=TimeTravel(seconds=5.0)), LIST_PODS, 0.0, True),
    ],
)
def test_rule_applies_by_verb_resource_name_and_time(
    rule: Rule, call: Call, now_s: float, affected: bool
) -> None:
    fault, _ = Plan.of([rule]).judge(call, now_s)
    assert (fault is not None) is affected


def test_nth_matching_request_is_affected_and_others_are_not_counted() -> None:
    plan = Plan.of([Rule(fault=DOWN, resources=frozenset({"pods"}), first=2, last=3)])
    affected: list[Fault | None] = []
    for call in (LIST_PODS, SCALE, LIST_PODS, SCALE, LIST_PODS, LIST_PODS):
        fault, plan = plan.judge(call, 0.0)
        affected.append(fault)
    assert affected == [None, None, DOWN, None, DOWN, None]


def test_the_first_rule_that_matches_wins() -> None:
    late = Delay(seconds=1.0)
    plan = Plan.of([Rule(fault=late, verbs=frozenset({Verb.PATCH})), Rule(fault=Reset())])
    assert plan.judge(SCALE, 0.0)[0] == late
    assert plan.judge(LIST_PODS, 0.0)[0] == Reset()


@pytest.mark.parametrize(
    ("fault", "read"),
    [
        (None, [b"1", b"2", b"3", b"4"]),
        (Silence(), []),
        (LoseEvents(every=1), []),
        (LoseEvents(every=2), [b"1", b"3"]),
        (RepeatEvents(), [b"1", b"2", b"1", b"3", b"2", b"4", b"3"]),
    ],
)
def test_what_a_faulty_stream_passes_on(fault: Fault | None, read: list[bytes]) -> None:
    stream, passed = Stream(), list[bytes]()
    for line in (b"1", b"2", b"3", b"4"):
        lines, stream = stream.passed(fault, line)
        passed += lines
    assert passed == read


def test_a_stream_that_fell_silent_stays_silent() -> None:
    _, stream = Stream().passed(Silence(), b"1")
    assert stream.passed(None, b"2")[0] == ()


def test_an_error_event_is_one_line_with_a_status() -> None:
    line = error_event(410, "too old")
    assert line.endswith(b"\n")
    event = json.loads(line)
    assert event["type"] == "ERROR"
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
