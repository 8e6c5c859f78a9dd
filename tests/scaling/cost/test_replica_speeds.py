"""Speeds of single replicas: variation, claims and wrong times."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headroom.scaling import CostModel
from headroom.scaling.cost.claims import Claim, claim_of
from headroom.scaling.cost.cost_learning import CostLearner
from headroom.scaling.cost.execution_variation import ExecutionVariation
from headroom.scaling.cost.replica_speeds import ReplicaSpeeds
from headroom.scaling.windows.window_totals import BatchStats
from scaling.cost.ran_batches import KNOWN, TRUE, ran
from support.fakes_scaling import sample


def observed(
    variation: ExecutionVariation, *ticks: list[BatchStats], fade: float = 1.0
) -> ExecutionVariation:
    for executed in ticks:
        variation = variation.observe(executed, TRUE, fade, {})
    return variation


SETTLED = ExecutionVariation(intervals=10)
"""The first ten are not compared."""


def test_variation_compares_a_replica_with_itself() -> None:
    first = ran((25.0, 1.0, 0.21)) + ran((25.0, 1.0, 0.42), replica="b")
    # 1.1 after 1.0 of what was expected, a hundred batches after 25: 0.01 / (1/100 + 1/25) = 0.2;
    # b took twice as long before and does now
    then = ran((100.0, 1.0, 0.231)) + ran((25.0, 8.0, 1.26), replica="b")
    variation = observed(SETTLED, first, then)
    assert (variation.squares, variation.differences) == pytest.approx((0.2, 2.0))
    assert variation.cv == 0.0  # two say nothing yet
    known = replace(variation, every=(2.0, 8.0, 0.0, 0.0), own={}, largest="")
    assert observed(known, then, then).cv == pytest.approx((2.0 / 12.0) ** 0.5)
    assert observed(known, then, fade=0.5).squares == pytest.approx(1.0)
    assert observed(ExecutionVariation(), *[first] * 5, then).differences == 2.0


@pytest.mark.parametrize(("cv", "expected"), [(0.019, 0.0), (0.021, 0.021)])
def test_variation_up_to_2_percent_is_zero(cv: float, expected: float) -> None:
    assert ExecutionVariation.of(100 * cv**2, 100.0).cv == pytest.approx(expected)


def test_variation_without_a_replica_that_the_others_contradict() -> None:
    """Its batches take twice as long from once on, which is no variation of each of them."""
    jumps = [ran((10.0, 1.0, took_s)) for took_s in (0.21, 0.21, 0.42, 0.42, 0.42, 0.42)]
    alone = observed(SETTLED, *jumps * 2)
    paired = observed(
        SETTLED, *[[*tick, *ran((10.0, 1.0, 0.21), replica="b")] for tick in jumps * 2]
    )
    # 2 jumps up and one down of 10 x 10 / 20 each
    assert alone.uncontradicted == pytest.approx((15.0, 11.0))
    assert (paired.squares, paired.differences) == pytest.approx((15.0, 22.0))
    assert paired.uncontradicted == pytest.approx((0.0, 11.0))
    assert paired.cv == 0.0 < alone.cv
    assert paired.only({"b"}).squares == 0.0
    assert paired.only({"a"}).squares == pytest.approx(15.0)
    assert paired.fewer(0.5).differences == pytest.approx(5.5)


def test_variation_of_one_replica_counts_until_others_are_known() -> None:
    both = [*ran((10.0, 1.0, 0.21)), *ran((10.0, 1.0, 0.21), replica="b")]
    few = observed(SETTLED, *[both] * 5, [*ran((10.0, 1.0, 0.42)), both[1]])
    assert few.uncontradicted == (0.0, 5.0)
    fewer = observed(SETTLED, *[both] * 4, [*ran((10.0, 1.0, 0.42)), both[1]])
    assert fewer.uncontradicted == pytest.approx((5.0, 8.0))


@pytest.mark.parametrize(
    ("batches", "cv", "factor", "differs"),
    [
        (1e6, 0.0, 1.09, False),  # 4.3 % from the mean of both
        (1e6, 0.0, 1.12, True),  # 5.7 %
        (400.0, 1.0, 1.45, False),  # 4 deviations of a mean of 400: 20 %; 18 % from the mean
        (400.0, 1.0, 1.55, True),  # 22 %
        (1e6, None, 3.0, False),  # what chance does is not known
    ],
)
def test_replica_is_slow_beyond_chance_and_5_percent(
    batches: float, cv: float | None, factor: float, differs: bool
) -> None:
    executed = ran((batches, 1.0, 0.21)) + ran((batches, 1.0, factor * 0.21), replica="b")
    speeds = ReplicaSpeeds().observe(executed, TRUE, 0.0, cv)
    assert (speeds.factors != {}) is differs
    if differs:  # of two the faster is the usual one
        assert speeds.factors == pytest.approx({"a": 1.0, "b": factor})


def test_speed_of_a_replica_has_a_half_life_of_5_minutes() -> None:
    speeds = ReplicaSpeeds().observe(ran((10.0, 2.0, 0.3)), TRUE, 0.0, 0.0)
    assert speeds.sums == {"a": pytest.approx((10.0, 20.0, 40.0, 3.0, 6.0))}
    speeds = speeds.observe(ran((10.0, 2.0, 0.3)), TRUE, 300.0, 0.0)
    assert speeds.sums == {"a": pytest.approx((15.0, 30.0, 60.0, 4.5, 9.0))}
    assert speeds.factors == {}


SLOW = CostModel(fixed_s=0.2, per_item_s=0.01, max_batch=16)
DEAR = replace(TRUE, fixed_s=0.250, per_item_s=0.080)
MEAN = replace(TRUE, fixed_s=0.200, per_item_s=0.070)
ABSURD = replace(TRUE, fixed_s=1150.0)


@pytest.mark.parametrize(
    ("says", "claim"),
    [
        ([], None),
        ([(None, None, 1)], None),
        ([(None, 4, 1)], Claim(max_batch=4)),
        ([(None, 4, 3), (None, 6, 2)], Claim(max_batch=4, slots=3)),
        ([(TRUE, None, 1)], Claim(max_batch=8, cost=TRUE)),
        ([(TRUE, 32, 1)], Claim(max_batch=8, cost=TRUE)),  # what it measured goes first
        ([(DEAR, None, 1), (TRUE, None, 1)], Claim(max_batch=8, cost=MEAN)),
        ([(TRUE, None, 1), (ABSURD, None, 1)], Claim(max_batch=8, cost=TRUE)),
        (
            [(DEAR, None, 1), (TRUE, None, 1), *[(ABSURD, None, 1), (TRUE, None, 1)]],
            Claim(max_batch=8, cost=MEAN),
        ),
        ([(TRUE, None, 1), (None, 32, 1)], Claim(max_batch=8, cost=TRUE)),
        # one of three alone changes nothing
        ([(None, 4, 1), (None, 400, 1), (None, 4, 1)], Claim(max_batch=4)),
        ([(TRUE, None, 1), (SLOW, None, 1), (SLOW, None, 1)], Claim(max_batch=16, cost=SLOW)),
    ],
)
def test_claim_of_several_servers_is_the_median(
    says: list[tuple[CostModel | None, int | None, int]], claim: Claim | None
) -> None:
    samples = [
        replace(sample("a", 1.0, 0.0, cost=cost), max_batch=max_batch, slots=slots)
        for cost, max_batch, slots in says
    ]
    assert claim_of(samples) == claim


@pytest.mark.parametrize("batches", [3.0, 2.0])
def test_reported_cost_that_three_own_batches_contradict_goes_last(batches: float) -> None:
    """A batch of one takes 0.21 s; that of the other replica has not run yet."""
    dear = replace(
        sample("a", 1.0, 0.0, cost=replace(TRUE, fixed_s=2.4)),
        batches=batches,
        batch_items=batches,
        batch_seconds=0.21 * batches,
    )
    slow = replace(TRUE, fixed_s=1.6)
    claim = claim_of([dear, sample("b", 1.0, 0.0, cost=slow)])
    assert claim is not None
    assert claim.cost == (slow if batches == 3.0 else replace(TRUE, fixed_s=2.0))


def test_batches_larger_than_any_that_a_server_forms_now_say_nothing() -> None:
    """They were of another setting, or never were."""
    large = CostLearner().observe(ran((300.0, 100.0, 0.21)), 0.0)
    learner = large.observe(ran((100.0, 1.0, 0.21)), 2.0)
    cost = learner.fit(Claim(max_batch=8, cost=TRUE))
    assert cost is not None
    assert cost.batch_s(8) == pytest.approx(TRUE.batch_s(8), rel=0.01)
    assert large.fit(Claim(max_batch=8)) is not None


def test_executed_times_that_were_wrong_teach_nothing_for_90_s() -> None:
    tick = [*ran((10.0, 1.0, 2.1)), *ran((10.0, 1.0, 0.21), replica="b")]
    learner = KNOWN.observe(tick, 2.0, TRUE, wrong={"a"})
    assert learner.distrusted == {"a": 90.0}
    assert learner.speeds.sums.keys() == {"b"}
    for _ in range(44):
        learner = learner.observe(tick, 2.0, TRUE)
    assert learner.speeds.sums.keys() == {"b"}
    learner = learner.observe(tick, 2.0, TRUE)
    assert learner.distrusted == {}
    assert learner.speeds.sums.keys() == {"a", "b"}
