"""Each check fails where it should, and only there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from demo.checks import evaluate
from demo.recording import Recording, Snapshot
from demo.requirements import Check
from load.outcomes import Outcome
from support.demo_world import REQUIRED

Run = Callable[[], Recording]


def failed(checks: list[Check]) -> list[str]:
    return [check.name for check in checks if not check.held]


def outcome(run: Recording, kind: Outcome, count: int) -> None:
    """Let this many right answers have ended otherwise."""
    assert run.summary is not None
    tallies = [run.summary.tally, run.windows[-1].tally]
    for tally in tallies:
        tally.outcomes[Outcome.OK] -= count
        tally.outcomes[kind] += count
        tally.within -= count
        tally.buckets[next(iter(tally.buckets))] -= count


def test_a_good_run_passes_every_check(good_run: Run) -> None:
    found = evaluate(good_run(), REQUIRED)
    assert failed(found) == []
    assert all(check.measured and check.required for check in found)


def test_run_without_a_summary_fails(good_run: Run) -> None:
    run = good_run()
    run.summary = None
    assert failed(evaluate(run, REQUIRED)) == ["the replay wrote a summary"]
    assert failed(evaluate(Recording(), REQUIRED)) == ["the replay wrote a summary"]


@pytest.mark.parametrize(
    ("kind", "count", "name"),
    [
        (Outcome.LOST, 1, "no accepted request was lost"),
        (Outcome.UNREACHABLE, 1, "no accepted request was lost"),
        (Outcome.WRONG, 1, "every answer was correct"),
        (Outcome.UNSENT, 1, "every request was sent and has an outcome"),
        (Outcome.REFUSED, 10, "p95 of the last 20 s, fewer replicas"),
        (Outcome.REFUSED, 40, "share of requests within the target"),
    ],
)
def test_each_bad_outcome_fails_its_check(
    good_run: Run, kind: Outcome, count: int, name: str
) -> None:
    run = good_run()
    outcome(run, kind, count)
    assert name in failed(evaluate(run, REQUIRED))


def test_a_few_refusals_are_misses_and_no_loss(good_run: Run) -> None:
    run = good_run()
    outcome(run, Outcome.REFUSED, 4)
    assert failed(evaluate(run, REQUIRED)) == []


def test_requests_that_were_planned_and_not_sent_are_noticed(good_run: Run) -> None:
    run = good_run()
    assert run.started is not None
    run.started = replace(run.started, requests=301)
    assert failed(evaluate(run, REQUIRED)) == ["every request was sent and has an outcome"]


def test_replicas_written_by_another_client_fail_the_check(
    good_run: Run, snapshot: Callable[..., Snapshot]
) -> None:
    run = good_run()
    run.snapshots.append(snapshot(61, 5, writers=["kubectl"]))
    assert failed(evaluate(run, REQUIRED)) == [
        "every change of replicas was a decision of the operator"
    ]


def test_a_run_that_never_scales_fails_both_ways(
    good_run: Run, snapshot: Callable[..., Snapshot]
) -> None:
    run = good_run()
    run.snapshots = [snapshot(at, 1) for at in (0, 30, 60)]
    names = failed(evaluate(run, REQUIRED))
    assert "the operator scaled up" in names
    assert "the operator scaled down" in names
    assert "utilization after each decision" in names


def test_a_short_run_need_not_come_down(good_run: Run) -> None:
    run = good_run()
    run.snapshots = run.snapshots[:4]
    assert failed(evaluate(run, replace(REQUIRED, full_length=False))) == []


def edited_decision(run: Recording, **changed: Any) -> None:
    before = run.snapshots[2].service
    assert before.decision is not None
    service = replace(before, decision=replace(before.decision, **changed))
    run.snapshots[2] = replace(run.snapshots[2], service=service)


def test_a_decision_that_leads_above_the_ceiling_is_noticed(good_run: Run) -> None:
    run = good_run()
    decision = run.snapshots[2].service.decision
    assert decision is not None
    assert decision.projected is not None
    edited_decision(run, counterfactuals=(replace(decision.projected, utilization=0.81),))
    assert failed(evaluate(run, REQUIRED)) == ["utilization after each decision"]
    edited_decision(run, counterfactuals=())
    assert failed(evaluate(run, REQUIRED)) == ["utilization after each decision"]


@pytest.mark.parametrize(
    ("status", "name"),
    [
        ({"unschedulableReplicas": 1}, "GPUs in use at once"),
        ({"brokenReplicas": 1}, "no replica broke"),
        (
            {"conditions": [{"type": "SLOMet", "status": "False"}]},
            "SLOMet is True at the end",
        ),
        ({"conditions": []}, "SLOMet is True at the end"),
    ],
)
def test_condition_with_a_problem_fails_the_check(
    good_run: Run, snapshot: Callable[..., Snapshot], status: dict[str, Any], name: str
) -> None:
    run = good_run()
    run.snapshots.append(snapshot(61, 2, **status))
    assert failed(evaluate(run, REQUIRED)) == [name]


def test_more_gpus_than_there_are_and_a_restarted_operator_are_noticed(good_run: Run) -> None:
    run = good_run()
    run.operator_restarts = 1
    names = failed(evaluate(run, replace(REQUIRED, gpus=2)))
    assert names == ["GPUs in use at once", "the operator did not restart"]


@pytest.mark.parametrize(
    ("seconds", "desired", "held"), [(16, 1, True), (17, 1, False), (30, 2, True)]
)
def test_load_above_the_ceiling_must_soon_bring_a_replica(
    good_run: Run, snapshot: Callable[..., Snapshot], seconds: int, desired: int, held: bool
) -> None:
    run = good_run()
    run.seconds = [replace(second, due=second.due * 2) for second in run.seconds]  # 10 /s, 97 %
    run.snapshots = [snapshot(20 + at, desired) for at in range(seconds + 1)]
    names = failed(evaluate(run, REQUIRED))
    assert ("longest time above the ceiling without a starting replica" not in names) is held


def test_a_generator_that_cannot_keep_up_makes_the_run_invalid(good_run: Run) -> None:
    run = good_run()
    assert run.summary is not None
    run.summary = replace(run.summary, late_p99_s=0.2)
    assert failed(evaluate(run, REQUIRED)) == ["the generator sent on time"]
