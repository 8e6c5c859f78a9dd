"""Bounds on replacements: one at a time, budgets, and none of healthy replicas."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headroom.scaling.replacement.budget import LONG_S, SHORT_S, Budget
from headroom.scaling.values.policy import Routing
from scaling.replacement.replacement_fleets import opted_out, policy, settled
from support.fakes_replicas import TRUE, Replicas


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
