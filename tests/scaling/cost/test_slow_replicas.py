"""Fleets with slow replicas: how many requests are late, and how many replicas are needed."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headroom.scaling import CostModel
from headroom.scaling.cost.claims import Claim
from headroom.scaling.cost.cost_learning import CostLearner
from headroom.scaling.cost.replica_speeds import ReplicaSpeeds, Slow
from headroom.scaling.latency.mixed_fleet import MixedFleet
from headroom.scaling.latency.tail_latency import TailLatency
from headroom.scaling.steps.latency_model import tail_of
from headroom.scaling.values.policy import Routing
from headroom.scaling.windows.window_totals import BatchStats
from support.fakes_scaling import policy
from support.reference_queue import percentile

HEAVY = CostModel(fixed_s=0.150, per_item_s=0.060, max_batch=4)
"""A batch of one takes 0.21 s, a full one 0.39 s: 10.26 requests a second."""
NOISY = CostModel(fixed_s=0.300, per_item_s=0.0, max_batch=1, cv=1.0)
BLIND = [Routing.RANDOM, Routing.STICKY, Routing.ROUND_ROBIN]


def fleet(*slow: tuple[float, int], cost: CostModel = HEAVY, **more: object) -> MixedFleet:
    given_: dict[str, object] = {"percentile": 0.95, "cost": cost, "usual": cost, **more}
    return MixedFleet(slow=slow, **given_)  # type: ignore[arg-type]


@pytest.mark.parametrize("cost", [HEAVY, NOISY], ids=["batches", "varied"])
@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
def test_fleet_without_slow_replicas_matches_the_tables(cost: CostModel, level: float) -> None:
    rate_rps = 10 * 0.6 * cost.full_batch_rps
    target_s = TailLatency(cost=cost, percentile=level).latency_s(rate_rps, 10)
    assert fleet(cost=cost).late(rate_rps, 10, target_s) == pytest.approx(1 - level)
    assert fleet(cost=cost, percentile=level).latency_s(rate_rps, 10) == pytest.approx(
        target_s, rel=1e-4
    )


def test_fleet_late_share_is_the_mean_of_its_replicas() -> None:
    # 40/s over ten: a third of full batches for the usual; three times as slow carries 3.42/s
    usual = fleet().late(40.0, 10, 1.5)
    assert fleet((3.0, 1)).late(40.0, 10, 1.5) == pytest.approx(0.1 + 0.9 * usual)
    assert fleet((4.0, 2), (3.0, 1)).late(40.0, 10, 1.5) == pytest.approx(0.3 + 0.7 * usual)
    assert fleet((3.0, 12)).late(40.0, 10, 1.5) == 1.0  # no more than there are
    assert fleet((9.0, 1)).late(0.1, 10, 1.5) > 0.1 - 1e-9  # 1.89 s for one request


def test_idle_fleet_without_variation_has_one_latency_per_speed() -> None:
    idle = fleet((2.0, 1))  # 0.21 s, and 0.42 s at the slow one of four
    late = [idle.late(0.0, 4, target_s) for target_s in (0.2, 0.3, 0.5)]
    assert late == pytest.approx([1.0, 0.25, 0.0])


@pytest.mark.parametrize(
    ("slow", "replicas"),
    [
        ((), 5),  # 34.3/s x 1.05 over 8.9/s
        (((3.0, 1),), 14),  # 2.6/s of 3.4/s: three in five of a fourteenth are late
        (((1.5, 1),), 6),
        (((20.0, 1),), 20),  # 4.2 s for one request: late are all it gets, one in twenty
        (((20.0, 2),), 40),
    ],
)
def test_replicas_for_a_fleet_with_slow_replicas(slow: Slow, replicas: int) -> None:
    assert fleet(*slow).replicas_for(34.3, 1.5, 1.05) == pytest.approx(replicas, abs=1)


def test_infeasible_target_has_no_number_of_replicas() -> None:
    assert fleet((3.0, 1)).replicas_for(34.3, 0.2, 1.05) is None  # 0.21 s without waiting
    assert fleet((3.0, 1)).replicas_for(0.0, 1.5, 1.05) == 0
    # the usual ones miss 4.9 % even if idle: no more than forty replicas for one slow one
    idle_s = TailLatency(cost=NOISY, percentile=0.95).idle_s
    assert fleet((3.0, 1), cost=NOISY).replicas_for(0.001, 1.001 * idle_s, 1.0) == 40


def test_fleet_latency_is_where_few_enough_are_late() -> None:
    mixed = fleet((3.0, 1))
    assert mixed.late(34.0, 12, mixed.latency_s(34.0, 12)) == pytest.approx(0.05, rel=1e-3)
    assert mixed.latency_s(34.0, 12) > 2 * mixed.latency_s(34.0, 24)
    assert mixed.latency_s(34.0, 8) == math.inf  # an eighth waits without end
    assert mixed.idle_s == pytest.approx(0.21)
    capacity_rps = mixed.capacity_rps(1.5, 12)
    assert mixed.late(12 * capacity_rps, 12, 1.5) == pytest.approx(0.05, rel=1e-3)


@pytest.mark.parametrize(
    ("utilization", "share", "excess"),
    [
        *((0.3, 0.3, 0.14), (0.3, 0.5, 0.28), (0.3, 0.7, 0.30)),
        *((0.6, 0.3, 0.08), (0.6, 0.5, 0.05), (0.6, 0.7, 0.01)),
        *((0.8, 0.3, 0.12), (0.8, 0.5, 0.09), (0.8, 0.7, 0.01)),
    ],
)
def test_late_share_between_all_and_a_tenth_is_conservative_by_a_known_excess(
    utilization: float, share: float, excess: float
) -> None:
    reached_s = percentile(HEAVY, Routing.RANDOM, 1, utilization, 1 - share, requests=20_000)
    late = fleet().late(utilization * HEAVY.full_batch_rps, 1, reached_s)
    assert late == pytest.approx(share + excess, abs=0.025)


@pytest.mark.parametrize("cost", [HEAVY, NOISY], ids=["batches", "varied"])
@pytest.mark.parametrize("utilization", [0.3, 0.6, 0.8])
def test_late_share_beyond_the_tables_agrees_with_a_simulation(
    cost: CostModel, utilization: float
) -> None:
    reached_s = percentile(cost, Routing.RANDOM, 1, utilization, 0.995, requests=400_000)
    late = fleet(cost=cost).late(utilization * cost.full_batch_rps, 1, reached_s)
    assert 0.0025 <= late <= 0.01


@pytest.mark.parametrize("cost", [HEAVY, NOISY], ids=["batches", "varied"])
@pytest.mark.parametrize("routing", BLIND)
@pytest.mark.parametrize("times", [1.02, 1.5, 2.0, 2.5, 3.0, 5.0, 20.0])
def test_more_load_never_lowers_the_late_share(
    cost: CostModel, routing: Routing, times: float
) -> None:
    mixed = fleet((6.0, 1), cost=cost, routing=routing)
    late = [mixed.late(percent / 2, 20, times * mixed.idle_s) for percent in range(400)]
    assert late == sorted(late)


@settings(max_examples=60)
@example(
    rate_rps=2.0,
    more=2.0,
    factor=6.0,
    slower=1.0,
    counted=1,
    target_s=1.25,
    routing=Routing.STICKY,
)
@given(
    rate_rps=st.floats(0.1, 300.0),
    more=st.floats(1.0, 2.0),
    factor=st.floats(1.05, 10.0),
    slower=st.floats(1.0, 2.0),
    counted=st.integers(1, 5),
    target_s=st.floats(0.3, 5.0),
    routing=st.sampled_from(BLIND),
)
def test_more_load_or_slower_replicas_never_need_fewer(
    rate_rps: float,
    more: float,
    factor: float,
    slower: float,
    counted: int,
    target_s: float,
    routing: Routing,
) -> None:
    mixed = fleet((factor, counted), routing=routing)
    replicas = mixed.replicas_for(rate_rps, target_s, 1.05)
    worse = [
        mixed.replicas_for(more * rate_rps, target_s, 1.05),
        fleet((slower * factor, counted), routing=routing).replicas_for(rate_rps, target_s, 1.05),
        fleet((factor, counted + 1), routing=routing).replicas_for(rate_rps, target_s, 1.05),
    ]
    if replicas is None:  # with sticky connections no number may suffice
        assert routing is Routing.STICKY
        return
    assert all(each is None or each >= replicas for each in worse)
    kept = mixed.late(1.05 * rate_rps, replicas, target_s) <= 0.05 + 1e-6
    assert kept or replicas >= 40 * counted


TRUE = CostModel(fixed_s=0.150, per_item_s=0.060, max_batch=8)


def played(factors: dict[str, float], ticks: int, learner: CostLearner) -> CostLearner:
    """Each replica ran eight batches of two to seven in each tick."""
    for number in range(ticks):
        size = 2.0 + number % 6
        executed = [
            BatchStats(replica, 8.0, size, factor * TRUE.batch_s(size))
            for replica, factor in factors.items()
        ]
        learner = learner.observe(executed, 2.0, learner.fit(Claim(max_batch=8)))
    return learner


EVEN = dict.fromkeys("abcde", 1.0)


def test_replica_becoming_slow_is_detected_within_ticks() -> None:
    before = played(EVEN, 300, CostLearner())
    assert before.speeds.factors == {}
    after = played({**EVEN, "c": 3.0}, 6, before)
    assert after.speeds.factors["c"] == pytest.approx(3.0, rel=0.02)
    ((factor, counted),) = after.speeds.slow("abcde")
    assert factor == pytest.approx(1.05**23)  # 3.07
    assert counted == 1
    assert after.speeds.mean("abcde") == pytest.approx(1.4, rel=0.02)
    assert after.speeds.slow("abde") == ()
    cost = after.fit(Claim(max_batch=8))
    assert cost is not None
    assert (cost.batch_s(1), cost.batch_s(8)) == pytest.approx((0.21, 0.63), rel=0.02)
    healed = played(EVEN, 6, after)
    assert healed.speeds.slow("abcde") == ()


def test_change_of_all_replicas_is_a_cost_change() -> None:
    after = played(dict.fromkeys("abcde", 2.0), 12, played(EVEN, 300, CostLearner()))
    assert after.speeds.slow("abcde") == ()
    cost = after.fit(Claim(max_batch=8))
    assert cost is not None
    assert cost.batch_s(4) == pytest.approx(2 * TRUE.batch_s(4), rel=0.02)


@pytest.mark.parametrize(
    ("factor", "count", "cv", "changed"),
    [
        (1.8, 9.0, 0.0, False),  # too few
        (1.8, 10.0, 0.0, True),
        (1.8, 99.0, 1.0, False),  # too few for what varies by its mean
        (1.8, 101.0, 1.0, True),
        (1.8, 25.0, 0.3, True),  # 100 x 0.09
        (4.0, 1.0, 0.0, False),
        (4.0, 2.0, 0.0, True),  # far beyond what chance explains
        (4.0, 25.0, 1.0, False),  # at least 4 x exp(-5 x 0.198) = 1.49 times as long
        (4.0, 26.0, 1.0, True),
    ],
)
def test_change_of_one_replica_needs_enough_executions(
    factor: float, count: float, cv: float, changed: bool
) -> None:
    known = dict.fromkeys("abc", (10000.0, 10000.0, 10000.0, 2100.0, 2100.0))
    speeds = ReplicaSpeeds(sums=known)
    took_s = {"a": 0.21, "b": 0.21 * factor, "c": 0.21}
    executed = [BatchStats(one, count, 1.0, took_s[one]) for one in "abc"]
    updated = speeds.observe(executed, TRUE, 0.0, cv)
    assert (updated.sums["b"][0] < 1e4) is changed
    assert updated.sums["a"][0] > 1e4
    if changed:
        assert updated.factors["b"] == pytest.approx(factor, rel=0.2)


@pytest.mark.parametrize(
    ("factor", "random", "least"),
    [
        (1.0, 1.0, 1.0),
        (3.0, 1.4, 15 / 13),  # each gets the same: 7/5; each what it can: 4 1/3 do the work of five
        (0.5, 1.0, 5 / 6),  # without load-aware routing a fast one gets no more
    ],
)
def test_tail_of_a_slow_replica_depends_on_the_routing(
    factor: float, random: float, least: float
) -> None:
    learner = played({**EVEN, "c": factor}, 300, CostLearner())
    for routing, mean in ((Routing.RANDOM, random), (Routing.LEAST_IN_FLIGHT, least)):
        limits = policy(routing=routing)
        cost = learner.fit(Claim(max_batch=8))
        tail = tail_of(limits, cost, routing, learner.speeds, list(EVEN))
        assert tail is not None
        assert tail.cost.batch_s(8) == pytest.approx(mean * 0.63, rel=0.03)
        mixed = routing is Routing.RANDOM and factor > 1.0
        assert isinstance(tail, MixedFleet) is mixed
        assert tail.idle_s == pytest.approx((1.0 if mixed else mean) * 0.21, rel=0.05)
    assert tail_of(policy(), None, Routing.RANDOM, learner.speeds, []) is None
