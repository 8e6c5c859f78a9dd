"""Slow and failing replicas are replaced under the decision, and healthy ones are not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from headroom.scaling.values.observation import Allocation
from headroom.scaling.values.replica_defect import Defect, ReplacementStep
from scaling.replacement.replacement_fleets import opted_out, policy, settled
from support.fakes_replicas import Replicas


def test_slow_replica_is_deleted_within_100_s_and_no_capacity_is_bought() -> None:
    fleet = settled(policy=policy(), rate_rps=30.0)
    fleet.replicas[2].factor = 10.0
    fleet.run(100)
    assert [uid for _, uid in fleet.deleted] == ["pod-2"]
    assert max(one.replicas for one in fleet.decisions[300:]) <= 7
    (shown,) = {
        one.replacement.detail
        for one in fleet.decisions
        if one.replacement and one.replacement.deletes
    }
    assert "as long as the others" in shown
    steps = [one.replacement.step for one in fleet.decisions if one.replacement]
    assert steps[0] is ReplacementStep.DELETE
    fleet.run(60)
    assert fleet.decisions[-1].replacement is None
    fleet.run(1200)
    assert len(fleet.deleted) == 1


def test_replacement_is_named_in_the_message() -> None:
    fleet = settled(policy=policy())
    fleet.replicas[0].factor = 10.0
    fleet.run(100)
    (deletion,) = [one for one in fleet.decisions if one.replacement and one.replacement.deletes]
    assert deletion.replacement is not None
    assert deletion.replacement.defect is Defect.SLOW
    assert deletion.replacement.factor == pytest.approx(10.0, rel=0.2)
    assert "x as long as the others: its pod is deleted" in deletion.message


def test_replica_that_answers_nothing_is_deleted() -> None:
    fleet = settled(policy=policy(), rate_rps=20.0)
    fleet.replicas[3].fails = True
    fleet.run(120)
    assert [uid for _, uid in fleet.deleted] == ["pod-3"]
    found = next(one.replacement for one in fleet.decisions if one.replacement)
    assert found.defect is Defect.FAILING
    assert found.factor is None


@pytest.mark.parametrize("factors", [(10.0, 10.0, 10.0, 1.0, 1.0), (3.0,) * 5])
def test_most_replicas_slow_is_a_cost_change(factors: tuple[float, ...]) -> None:
    fleet = settled(factors, policy=policy(max_replicas=5), rate_rps=12.0)
    fleet.run(600)
    assert fleet.deleted == []


def test_all_replicas_failing_are_kept() -> None:
    fleet = settled(policy=policy(max_replicas=5))
    for one in fleet.replicas:
        one.fails = True
    fleet.run(300)
    assert fleet.deleted == []


def test_slow_replica_without_late_requests_is_kept() -> None:
    fleet = settled(policy=policy(), rate_rps=4.0)  # at 3 times as long a tenth of what it could do
    fleet.replicas[1].factor = 3.0
    fleet.run(600)
    assert fleet.deleted == []


def no_change(fleet: Replicas) -> None:
    del fleet


def rolling(fleet: Replicas) -> None:
    fleet.rolling = True


def unread(fleet: Replicas) -> None:
    fleet.stale = frozenset({"pod-4"})


@pytest.mark.parametrize(
    ("prevent", "deleted", "shown"),
    [
        (no_change, 1, ""),
        (rolling, 0, ""),
        (unread, 0, ""),
        (opted_out, 0, "kept: replaceSlowReplicas is false"),
    ],
)
def test_replica_is_kept_while_something_prevents_it(
    prevent: Callable[[Replicas], None], deleted: int, shown: str
) -> None:
    fleet = settled(policy=policy())
    fleet.replicas[0].factor = 10.0
    prevent(fleet)
    last = fleet.run(150)
    assert len(fleet.deleted) == deleted
    if shown:
        assert last.replacement is not None
        assert last.replacement.step is ReplacementStep.KEPT
        assert last.replacement.action == shown


def test_only_ready_replica_is_never_deleted() -> None:
    fleet = settled((1.0,), policy=policy(min_replicas=1, max_replicas=1), rate_rps=3.0)
    fleet.replicas[0].factor = 10.0
    fleet.run(300)
    assert fleet.deleted == []


def test_successor_is_started_first_if_the_others_cannot_carry_the_load() -> None:
    # one replica of 10.3/s cannot serve 14/s; with a slow one half of the requests are in time
    fleet = settled((1.0, 1.0), policy=policy(min_replicas=2), rate_rps=14.0)
    fleet.replicas[1].factor = 3.0
    fleet.run(400)
    steps = [one.replacement.step for one in fleet.decisions if one.replacement]
    assert steps[0] is ReplacementStep.SURGE
    assert len(fleet.deleted) == 1
    before = [one for one in fleet.decisions if one.time_s <= fleet.deleted[0][0]]
    assert before[-1].counts.ready == 3


@pytest.mark.parametrize("why", ["at maxReplicas", "no accelerator is left"])
def test_pod_is_deleted_first_where_no_successor_may_start(why: str) -> None:
    most = 2 if why == "at maxReplicas" else 20
    limits = policy(min_replicas=2, max_replicas=most)
    fleet = settled((1.0, 1.0), policy=limits, rate_rps=14.0)
    fleet.replicas[1].factor = 3.0
    if why != "at maxReplicas":
        observe = fleet.observe
        given_ = Allocation(replicas=2, preempted_by="another")
        fleet.observe = lambda: replace(observe(), allocation=given_)  # type: ignore[method-assign]
    fleet.run(300)
    assert len(fleet.deleted) == 1
    steps = {one.replacement.step for one in fleet.decisions if one.replacement}
    assert ReplacementStep.SURGE not in steps


def test_replica_that_recovers_before_its_successor_is_ready_is_kept() -> None:
    fleet = settled((1.0, 1.0), policy=policy(min_replicas=2), rate_rps=14.0, start_s=120.0)
    fleet.replicas[1].factor = 3.0
    while not (fleet.decisions[-1].replacement):
        fleet.tick()
    fleet.replicas[1].factor = 1.0
    fleet.run(600)
    assert fleet.deleted == []
    assert fleet.decisions[-1].replacement is None
