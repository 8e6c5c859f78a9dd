"""`headroom explain` and `get`: the decision, hidden demand and promises on tokens."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from headroom.cli.commands.explanation_text import explained
from headroom.cli.commands.get import table
from headroom.console.summary import summarize

SERVICE: dict[str, Any] = {
    "metadata": {"name": "resnet", "namespace": "vision"},
    "spec": {"slo": {"latency": {"percentile": 95, "target": "250ms"}, "utilizationCeiling": 0.8}},
}
STATUS: dict[str, Any] = {
    "replicas": 3,
    "readyReplicas": 2,
    "warmingReplicas": 1,
    "decision": {
        "replicas": 3,
        "current": 2,
        "direction": "Up",
        "reason": "UtilizationCeiling",
        "message": "2 -> 3 replicas",
        "time": "2026-11-20T12:00:00Z",
        "counterfactuals": [
            {"replicas": 2, "latency": "unbounded", "utilization": 1.02},
            {"replicas": 3, "latency": "180ms", "utilization": 0.68},
        ],
        "recommendations": [{"rule": "LatencyModel", "replicas": 3, "detail": "90/s at 35/s"}],
    },
    "signals": {
        "arrivalsPerSecond": 90.0,
        "waiting": 4.0,
        "latency": "310ms",
        "utilization": 1.02,
        "freshness": "Fresh",
    },
    "conditions": [
        {"type": "Ready", "status": "True", "reason": "Serving", "message": "fine"},
        {"type": "ScalingLimited", "status": "False", "reason": "WithinBounds", "message": "fine"},
        {"type": "SLOMet", "status": "False", "reason": "AboveTarget", "message": "p95 is 310ms"},
    ],
}


def words(service: dict[str, Any]) -> str:
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(explained(service))
    return console.export_text()


def test_explain_names_one_replica_in_the_singular() -> None:
    text = words(SERVICE | {"status": STATUS | {"replicas": 1, "warmingReplicas": 0}})
    assert "vision/resnet: 1 replica (2 ready)" in text


def test_explain_shows_decision_and_counterfactuals() -> None:
    text = words(SERVICE | {"status": STATUS})
    assert "vision/resnet: 3 replicas (2 ready, 1 warming)" in text
    assert "UtilizationCeiling: 2 -> 3 replicas" in text
    assert "p95 310ms (target 250ms), utilization 102% (ceiling 80%)" in text
    assert "unbounded" in text
    assert "3 *" in text
    assert "90/s at 35/s" in text
    assert "SLOMet=False" in text
    assert "ScalingLimited" not in text
    assert "fine" not in text


def test_first_line_after_a_start_of_the_operator_says_that_metrics_are_collected() -> None:
    signals = STATUS["signals"] | {"freshness": "Missing"}
    status = STATUS | {"signals": signals, "reason": "CollectingMetrics"}
    text = words(SERVICE | {"status": status})
    assert text.splitlines()[1].startswith("Metrics are collected until rates are known: no ")


@pytest.mark.parametrize(
    ("freshness", "ready", "expected"),
    [
        pytest.param("Stale", 2, "Metrics are stale: no replica is removed", id="stale"),
        pytest.param("Missing", 2, "Metrics are missing: no replica is removed", id="missing"),
        pytest.param("Missing", 0, "UtilizationCeiling: ", id="nothing is ready"),
        pytest.param("Fresh", 2, "UtilizationCeiling: ", id="fresh"),
    ],
)
def test_first_line_says_that_the_reason_may_be_old(
    freshness: str, ready: int, expected: str
) -> None:
    """The status kept its last reason for two minutes while no replica answered."""
    signals = STATUS["signals"] | {"freshness": freshness}
    text = words(SERVICE | {"status": STATUS | {"signals": signals, "readyReplicas": ready}})
    assert text.splitlines()[1].startswith(expected)


HIDDEN = {
    "known": "AtLeast",
    "rate": ">=160/s",
    "requestsPerSecond": 160.0,
    "atMostPerSecond": 533.3,
    "message": "64 requests in flight at 2 saturated replicas",
}
LATE = {"errorBudgetRemaining": 0.4, "lateShare": 0.031, "margin": 1.4}


def test_explain_shows_hidden_demand_and_the_margin() -> None:
    text = words(SERVICE | {"status": STATUS | {"demand": HIDDEN, "slo": LATE}})
    assert (
        "Demand is at least 160/s (64 requests in flight at 2 saturated replicas); up to 533/s\n"
        "Margin 1.4x: 3.1% of the last hour's requests were late\n"
    ) in text


def test_explain_names_the_partner_its_rate_and_what_is_held_for_it() -> None:
    partner = {
        "name": "chat-prefill",
        "role": "Prefill",
        "replicas": 9,
        "readyReplicas": 4,
        "arrivalsPerSecond": 30.0,
        "passedShare": 1.25,
        "announcedPerSecond": 37.5,
        "heldFor": "the prefill pool chat-prefill needs 9 replicas and has 4 ready",
    }
    text = " ".join(words(SERVICE | {"status": STATUS | {"partner": partner}}).split())
    assert "Partner: prefill pool chat-prefill, 30/s arrive there, 1.25 of each arrive" in text
    assert "37.5/s are expected from it, 4 of its 9 replicas are ready" in text
    assert "no replica is removed here, because the prefill pool chat-prefill needs 9" in text


def test_explain_of_counted_demand_adds_no_line() -> None:
    counted = {"known": "Exact", "rate": "90/s", "requestsPerSecond": 90.0}
    assert words(SERVICE | {"status": STATUS | {"demand": counted}}) == words(
        SERVICE | {"status": STATUS}
    )


TOKENS: dict[str, Any] = {
    "timeToFirstToken": {"percentile": 95, "target": "2s"},
    "timePerOutputToken": {"percentile": 95, "target": "20ms"},
}
GENERATING = {"sizedBy": "Model", "binding": "TimePerOutputToken", "capacityPerReplica": 17.8}
EXPECTED = [
    {"replicas": 1, "latency": "unbounded", "utilization": 1.3},
    {"replicas": 2, "latency": "11s", "utilization": 0.65},
    {"replicas": 3, "latency": "8.8s", "utilization": 0.43},
]


def test_explain_of_promises_on_tokens_shows_the_share_of_one_and_no_time_of_none() -> None:
    """11 s are half of the 22 s that stand for both promises: no request takes them."""
    decision = STATUS["decision"] | {"counterfactuals": EXPECTED}
    status = STATUS | {"decision": decision, "generation": GENERATING}
    service = SERVICE | {"spec": {"slo": TOKENS}}
    text = words(service | {"status": status})
    assert "of the tightest promise" in text
    assert [share in text for share in ("unbounded", "50%", "40%", "11s")] == [True] * 3 + [False]
    by_measurement = {"sizedBy": "Measurement"}
    assert "11s" in words(service | {"status": status | {"generation": by_measurement}})


def test_get_wide_shows_both_promises_on_tokens() -> None:
    measured = STATUS["signals"] | {"timeToFirstToken": "300ms"}
    service = SERVICE | {"spec": {"slo": TOKENS}, "status": STATUS | {"signals": measured}}
    text = table([summarize(service)], wide=True, namespaced=False)
    assert "300ms (p95, target 2s)" in text
    assert "unknown (p95, target 20ms)" in text


@pytest.mark.parametrize(
    "said",
    [
        pytest.param("pod a-1: Error, got [/b]", id="no markup of ours"),
        pytest.param("[link=https://evil.example]the runbook[/link]", id="a link"),
        pytest.param("[red on red]hidden[/]", id="a style"),
    ],
)
def test_explain_shows_brackets_that_others_write(said: str) -> None:
    condition = {"type": "ReplicasHealthy", "status": "False", "reason": "Error", "message": said}
    rule = {"rule": "Rate", "replicas": 1, "detail": said}
    decision = STATUS["decision"] | {"recommendations": [rule]}
    status = {"conditions": [condition], "decision": decision}
    assert words(SERVICE | {"status": STATUS | status}).count(said) == 2


def test_explain_without_decision_says_so_and_what_to_run() -> None:
    shown = words(SERVICE)
    assert "No decision yet" in shown
    assert f"headroom doctor -n {SERVICE['metadata']['namespace']}" in shown


def test_explain_says_first_why_nothing_is_ready_and_once_what_follows_from_it() -> None:
    why = "Deployment shop/rankr (apps/v1) cannot be found"
    followed = {"status": "Unknown", "reason": "TargetNotFound", "message": "no target; see Ready"}
    said = {"status": "False", "reason": "TargetNotFound", "message": why}
    conditions = [
        *(said | {"type": kind} for kind in ("Ready", "ScalingActive")),
        *(followed | {"type": kind} for kind in ("SLOMet", "SLOFeasible")),
    ]
    text = words(SERVICE | {"status": {"conditions": conditions}})
    first, second, *_ = text.splitlines()
    assert second == f"TargetNotFound: {why}"
    assert text.count(why) == 1
    assert "see Ready" not in text
    assert "for the same reasons: ScalingActive, SLOMet, SLOFeasible" in text
    assert "has not evaluated" not in text
    assert first.startswith("vision/resnet")


def test_explain_says_above_the_decision_why_it_is_not_written() -> None:
    said = {"status": "False", "reason": "AutoscalerConflict", "message": "HPA x scales it"}
    conditions = [said | {"type": kind} for kind in ("ScalingActive", "AbleToScale")]
    text = words(SERVICE | {"status": STATUS | {"conditions": conditions}})
    assert text.splitlines()[1] == "AutoscalerConflict: HPA x scales it"
    assert text.count("HPA x scales it") == 1


def test_explain_says_once_what_several_conditions_say() -> None:
    same = {"status": "Unknown", "reason": "Pending", "message": "not evaluated yet"}
    conditions = [same | {"type": kind} for kind in ("SLOMet", "DemandVisible")]
    text = words(SERVICE | {"status": STATUS | {"conditions": conditions}})
    assert text.count("not evaluated yet") == 1
    assert "SLOMet=Unknown" in text
    assert "DemandVisible=Unknown" in text


def test_explain_with_unknown_metrics_says_so() -> None:
    quiet = STATUS | {"signals": {"freshness": "Missing"}, "conditions": []}
    text = words(SERVICE | {"status": quiet})
    assert "unknown arrivals/s, unknown waiting, p95 unknown" in text
