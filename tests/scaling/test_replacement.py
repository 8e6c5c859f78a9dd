"""Slow and failing replicas are replaced under the decision, and healthy ones are not."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fakes_replicas import TRUE, Replicas
from headroom.scaling.replacement.budget import LONG_S, SHORT_S, Budget
from headroom.scaling.replica_defect import Defect, ReplacementStep
from headroom.scaling.values.observation import Allocation
from headroom.scaling.values.policy import Policy, Routing


def settled(factors: tuple[float, ...] = (1.0,) * 5, **more: object) -> Replicas:
    """Return replicas that have been watched for ten minutes, all as fast as usual."""
    fleet = Replicas(factors=(1.0,) * len(factors), **more)  # type: ignore[arg-type]
    fleet.run(600)
    for one, factor in zip(fleet.replicas, factors, strict=False):
        one.factor = factor
    return fleet


def policy(**changes: object) -> Policy:
    base = Policy(latency_target_s=1.5, max_replicas=20, min_replicas=5)
    return replace(base, **changes)  # type: ignore[arg-type]


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


def opted_out(fleet: Replicas) -> None:
    fleet.policy = replace(fleet.policy, replacement_objection="replaceSlowReplicas is false")


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


def test_one_replica_at_a_time_and_one_in_ten_minutes() -> None:
    fleet = settled(policy=policy(max_replicas=6), rate_rps=20.0)
    fleet.replicas[0].factor = fleet.replicas[1].factor = 10.0
    fleet.run(500)
    assert len(fleet.deleted) == 1
    kept = fleet.decisions[-1].replacement
    assert kept is not None
    assert kept.action == "kept: 1 were replaced within the last hour"
    fleet.run(600)
    assert len(fleet.deleted) == 2
    assert fleet.deleted[1][0] - fleet.deleted[0][0] >= SHORT_S


def test_capacity_is_bought_for_a_slow_replica_that_is_kept() -> None:
    fleet = settled(policy=policy(), rate_rps=30.0)
    opted_out(fleet)
    fleet.replicas[2].factor = 10.0
    fleet.run(100)
    assert fleet.decisions[-1].replicas > 10


def test_pod_that_cannot_be_deleted_is_given_up_for_ten_minutes() -> None:
    fleet = settled(policy=policy(), rate_rps=30.0)
    fleet.refuses = True
    fleet.replicas[2].factor = 10.0
    fleet.run(300)
    deletes = [one.time_s for one in fleet.decisions if one.replacement and one.replacement.deletes]
    assert deletes[-1] - deletes[0] <= 60.0
    last = fleet.decisions[-1].replacement
    assert last is not None
    assert last.action == "kept: its pod could not be deleted"
    assert fleet.decisions[-1].replicas > 10  # capacity is bought instead


def test_routing_that_sees_load_replaces_only_what_breaks_the_promise() -> None:
    fleet = settled(policy=policy(routing=Routing.LEAST_IN_FLIGHT))
    fleet.replicas[0].fails = True
    fleet.run(200)
    assert len(fleet.deleted) == 1


@pytest.mark.parametrize(
    ("spent_s", "replicas", "left"),
    [
        ((), 5, 1),
        ((), 40, 4),
        ((999.0,), 5, 0),
        ((1000.0 - SHORT_S,), 5, 1),
        ((0.0, 200.0, 400.0), 5, 0),  # three within the hour
        ((1000.0 - LONG_S, 200.0, 400.0), 5, 1),
        ((999.0,) * 3, 40, 1),
    ],
)
def test_budget(spent_s: tuple[float, ...], replicas: int, left: int) -> None:
    assert Budget(spent_s=spent_s).left(1000.0, replicas) == left


def test_budget_forgets_after_an_hour() -> None:
    assert Budget(spent_s=(0.0, 3000.0)).spend(4000.0).spent_s == (3000.0, 4000.0)


@settings(max_examples=10, deadline=None)
@given(
    factors=st.lists(st.floats(1.0, 1.5), min_size=2, max_size=8),
    cv=st.floats(0.0, 2.0),
    share=st.floats(0.1, 0.9),
    seed=st.integers(0, 10**6),
)
def test_healthy_replicas_are_never_replaced(
    factors: list[float], cv: float, share: float, seed: int
) -> None:
    rate_rps = share * len(factors) * TRUE.full_batch_rps
    most = policy(min_replicas=1, max_replicas=len(factors) + 1)
    fleet = Replicas(factors=tuple(factors), cv=cv, seed=seed, rate_rps=rate_rps, policy=most)
    fleet.run(400)
    assert fleet.deleted == []


@settings(max_examples=10, deadline=None)
@example(seconds=0.0, batches=0.0, missed=5e-324, seed=0, liars=1)  # products underflow to 0
@given(
    seconds=st.floats(0.0, 1e6),
    batches=st.floats(0.0, 1e4),
    missed=st.floats(0.0, 1e6),
    seed=st.integers(0, 1000),
    liars=st.integers(1, 4),
)
def test_lying_pages_cost_at_most_the_budget(
    seconds: float, batches: float, missed: float, seed: int, liars: int
) -> None:
    fleet = Replicas(factors=(1.0,) * 5, seed=seed, policy=policy(max_replicas=6))
    fleet.run(120)
    for one in fleet.replicas[:liars]:
        one.lie = lambda sample: replace(
            sample,
            batch_seconds=sample.batch_seconds * seconds,
            batches=sample.batches * batches,
            missed=sample.missed + missed * sample.time_s,
        )
    fleet.run(900)
    for time_s, _ in fleet.deleted:
        assert sum(0 <= time_s - earlier < SHORT_S for earlier, _ in fleet.deleted) == 1
    assert len(fleet.deleted) <= 3
    assert math.isfinite(fleet.decisions[-1].replicas)
