"""Learning the cost: noise, priors, outliers, changes, checkpoints."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable

import numpy as np
import pytest

from headroom.scaling import CostModel, State
from headroom.scaling.cost.claims import Claim
from headroom.scaling.cost.cost_learning import CostLearner
from headroom.scaling.latency.correction import Correction
from headroom.scaling.windows.window_totals import BatchStats

TRUE = CostModel(fixed_s=0.150, per_item_s=0.060, max_batch=8)
"""A batch of one takes 0.21 s, a full one 0.63 s."""
SILENT = Claim(max_batch=8)
"""The server says how large a batch may be, and not what it costs."""
Tick = list[BatchStats]


def ran(batches: float, size: float, mean_s: float, replica: str = "a") -> BatchStats:
    return BatchStats(replica, batches, size, mean_s)


def taught(learner: CostLearner, claim: Claim, ticks: Iterable[Tick]) -> CostLearner:
    """Let ticks of 2 s pass as the decision does: each is compared with the fit of the last."""
    for executed in ticks:
        learner = learner.observe(executed, 2.0, learner.fit(claim))
    return learner


def fitted(learner: CostLearner, claim: Claim = SILENT) -> CostModel:
    cost = learner.fit(claim)
    assert cost is not None
    return cost


def steady(cost: CostModel, ticks: int, *, sizes: tuple[int, ...] = (1, 2, 4, 8)) -> list[Tick]:
    """Five batches of each of the sizes in turn, without noise."""
    return [[ran(5.0, float(sizes[n % len(sizes)]), cost.batch_s(sizes[n % len(sizes)]))]
            for n in range(ticks)]  # fmt: skip


def noisy(cv: float, ticks: int, *, seed: int, sizes: tuple[int, ...] = (1, 2, 4, 8)) -> list[Tick]:
    """Twenty lognormal executions of sizes at random in each interval."""
    random, variance = np.random.default_rng(seed), math.log1p(cv**2)
    size = random.choice(sizes, (ticks, 20))
    factor = random.lognormal(-variance / 2, math.sqrt(variance), (ticks, 20))
    took_s = (TRUE.fixed_s + TRUE.per_item_s * size) * factor
    return [
        [ran(20.0, float(mean), float(mean_s))]
        for mean, mean_s in zip(size.mean(axis=1), took_s.mean(axis=1), strict=True)
    ]


@pytest.mark.parametrize("claim", [SILENT, Claim(max_batch=8, cost=TRUE)], ids=["silent", "claims"])
@pytest.mark.parametrize("cv", [0.0, 0.5])
def test_cost_after_an_hour_of_small_batches_keeps_the_full_one(claim: Claim, cv: float) -> None:
    learner = taught(CostLearner(), claim, noisy(cv, 300, seed=1))
    assert fitted(learner, claim).batch_s(8) == pytest.approx(0.63, rel=0.05)
    spare = taught(learner, claim, noisy(cv, 1800, seed=2, sizes=(1,)))
    assert fitted(spare, claim).batch_s(8) == pytest.approx(0.63, rel=0.05)
    assert fitted(spare, claim).batch_s(1) == pytest.approx(0.21, rel=0.05)


def test_bins_fade_only_when_refreshed() -> None:
    learner = CostLearner().observe([ran(10, 1, 0.2), ran(10, 8, 0.6, "b")], 2.0)
    learner = learner.observe([ran(10, 1, 0.2)], 1800.0)  # a half-life
    by_batches = sorted(sums[0] for sums in learner.bins.values())
    assert by_batches == [10.0, 15.0]
    assert learner.observe([], 1e6) == learner


@pytest.mark.parametrize("claim", [None, SILENT], ids=["no claim", "only the largest batch"])
def test_cost_before_the_first_batch_is_unknown_unless_reported(
    claim: Claim | None,
) -> None:
    assert CostLearner().fit(claim) is None
    assert CostLearner().observe([], 2.0).fit(claim) is None


def test_cost_without_the_largest_batch_is_unknown() -> None:
    assert CostLearner().observe([ran(10, 1, 0.21)], 2.0).fit(None) is None


def test_cost_without_batches_is_the_reported_one() -> None:
    claimed = fitted(CostLearner(), Claim(max_batch=8, cost=TRUE, slots=2))
    assert (claimed.fixed_s, claimed.per_item_s) == pytest.approx((0.150, 0.060))
    assert (claimed.max_batch, claimed.slots, claimed.cv) == (8, 2, 0.0)


def test_weak_prior_loses_weight_as_larger_batches_are_observed() -> None:
    learner = CostLearner().observe([ran(10, 1, 0.21)], 2.0)
    # Batches of one alone: a full batch of 8 might take 8 x 0.21 s.
    assert fitted(learner).batch_s(8) == pytest.approx(1.68)
    errors = []
    for size in (2, 4, 8):
        learner = learner.observe([ran(10, size, TRUE.batch_s(size))], 2.0)
        errors.append(fitted(learner).batch_s(8) / 0.63 - 1)
    assert 0 < errors[2] < errors[1] < errors[0] < 1.68 / 0.63 - 1
    assert errors[2] < 0.02


@pytest.mark.parametrize("largest", [32, 256, 512])
def test_doubt_about_far_larger_batches_fades_like_that_about_near_ones(largest: int) -> None:
    true = CostModel(fixed_s=2.7, per_item_s=0.03, max_batch=largest)
    claim, sizes = Claim(max_batch=largest), (7, 9, 11)
    learner = taught(CostLearner(), claim, steady(true, 60, sizes=sizes))
    assert fitted(learner, claim).batch_s(largest) <= 2.0 * true.batch_s(largest)


def test_cost_ignores_a_hang() -> None:
    learner = taught(CostLearner(), SILENT, steady(TRUE, 50))
    expected = fitted(learner)
    usual = taught(learner, SILENT, [[ran(1, 8, 19.0 * expected.batch_s(8))]])
    assert fitted(usual).batch_s(8) > 1.05 * expected.batch_s(8)
    assert taught(learner, SILENT, [[ran(1, 8, 21.0 * expected.batch_s(8))]]) == learner
    assert taught(learner, SILENT, [[ran(1, 1, 60.0)]]) == learner


@pytest.mark.parametrize("factor", [2.0, 3.0])
@pytest.mark.parametrize("sizes", [(1, 2, 4, 8), (1, 2), (1,)], ids=["all", "small", "ones"])
def test_cost_change_is_learned_within_30_s_for_all_sizes(
    factor: float, sizes: tuple[int, ...]
) -> None:
    new = CostModel(fixed_s=factor * 0.150, per_item_s=factor * 0.060, max_batch=8)
    learner = taught(CostLearner(), SILENT, steady(TRUE, 1800))
    learner = taught(learner, SILENT, steady(new, 15, sizes=sizes))
    for size in (1, 2, 4, 8):
        assert fitted(learner).batch_s(size) == pytest.approx(new.batch_s(size), rel=0.06)


def test_cost_change_of_full_batches_alone_is_learned_for_them() -> None:
    new = CostModel(fixed_s=0.300, per_item_s=0.120, max_batch=8)
    learner = taught(CostLearner(), SILENT, steady(TRUE, 1800))
    learner = taught(learner, SILENT, steady(new, 15, sizes=(8,)))
    assert fitted(learner).batch_s(8) == pytest.approx(1.26, rel=0.2)
    learner = taught(learner, SILENT, steady(new, 30, sizes=(8,)))
    assert fitted(learner).batch_s(8) == pytest.approx(1.26, rel=0.1)


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_cost_after_a_small_change_keeps_the_past(factor: float) -> None:
    new = CostModel(fixed_s=factor * 0.150, per_item_s=factor * 0.060, max_batch=8)
    learner = taught(CostLearner(), SILENT, steady(TRUE, 1800))
    seen = sum(sums[0] for sums in learner.bins.values())
    learner = taught(learner, SILENT, steady(new, 60))
    assert sum(sums[0] for sums in learner.bins.values()) > seen


@pytest.mark.parametrize("seed", range(3))
def test_noise_alone_is_no_cost_change(seed: int) -> None:
    learner = taught(CostLearner(), SILENT, noisy(1.0, 120, seed=seed))
    for executed in noisy(1.0, 1800, seed=100 + seed):
        seen = sum(sums[0] for sums in learner.bins.values())
        learner = learner.observe(executed, 2.0, learner.fit(SILENT))
        assert sum(sums[0] for sums in learner.bins.values()) > 0.5 * seen
    assert fitted(learner).batch_s(8) == pytest.approx(0.63, rel=0.1)


@pytest.mark.parametrize("cv", [0.1, 0.3, 0.6, 1.0])
def test_variation_from_means_of_twenty_is_that_of_one_execution(cv: float) -> None:
    learner = taught(CostLearner(), SILENT, noisy(cv, 1800, seed=3))
    assert fitted(learner).cv == pytest.approx(cv, rel=0.1)


def test_variation_before_ten_differences_is_unknown() -> None:
    learner = CostLearner().observe([ran(10, 1, 0.21)], 2.0)  # before, nothing was expected
    intervals = noisy(1.0, 20, seed=4)
    for executed in intervals[:19]:
        learner = learner.observe(executed, 0.0, TRUE)
    assert fitted(learner).cv == 0.0
    assert fitted(learner.observe(intervals[19], 0.0, TRUE)).cv > 0.3
    assert fitted(taught(CostLearner(), SILENT, steady(TRUE, 100))).cv == 0.0


def test_checkpoint_below_a_kibibyte_restores_what_was_learned() -> None:
    learner = taught(CostLearner(), SILENT, noisy(0.6, 300, seed=5))
    state = State(learner=learner, correction=Correction(logarithm=math.log(1.7), learned_s=900.0))
    written = json.dumps(state.to_checkpoint())
    restored = State.from_checkpoint(json.loads(written))
    assert len(written) < 1024
    assert restored.correction.factor == pytest.approx(1.7)
    assert fitted(restored.learner).batch_s(8) == pytest.approx(fitted(learner).batch_s(8))
    assert fitted(restored.learner).cv == pytest.approx(fitted(learner).cv, rel=1e-4)


GOOD: dict[str, object] = {
    "version": 3,
    "cost": [[0, 10.0, 10.0, 10.0, 2.1, 2.1]],
    "variation": [4.0, 16.0],
    "correction": [1.0],
    "coldStarts": [42.0],
}


@pytest.mark.parametrize("factor", [0.6, 4.0])
def test_checkpoint_with_extreme_values_is_read(factor: float) -> None:
    more = {"correction": [factor], "coldStarts": [0.0, *range(1, 26)]}
    state = State.from_checkpoint(GOOD | more)
    assert state.correction.factor == pytest.approx(factor)
    assert state.cold_starts.seconds == tuple(range(6, 26))
    assert State.from_checkpoint(GOOD | {"coldStarts": [0.0]}).cold_starts.seconds == (0.0,)


def test_checkpoint_with_valid_values_is_read() -> None:
    state = State.from_checkpoint(GOOD)
    assert fitted(state.learner).batch_s(1) == pytest.approx(0.21, rel=0.01)
    assert fitted(state.learner).cv == 0.5
    assert State.from_checkpoint(GOOD | {"variation": [0.0, 0.0]}).learner.variation.cv == 0.0
    assert state.cold_starts.p90_s == 42.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "version must be 3; got 2"),
        ({"version": None}, "version must be 3; got None"),
        ({"cost": None}, "cost must be a list of lists; got None"),
        ({"cost": [3]}, "cost must be a list of numbers; got 3"),
        ({"cost": [[]]}, r"cost must hold a bin and 5 sums; got \[\]"),
        ({"cost": [[1, 2]]}, r"cost must hold a bin and 5 sums; got \[1, 2\]"),
        ({"cost": [[0.5, 1, 1, 1, 1, 1]]}, r"must hold a bin and 5 sums; got \[0.5, "),
        ({"cost": [[0, 1e17, 1e17, 1e17, 1.0, 1.0]]}, "must hold sums of batches"),
        ({"cost": [[0, 1.0, 1.0, 1e17, 1.0, 1.0]]}, "must hold sums of batches"),
        ({"cost": [[0, 1.0, 1.0, 1.0, 1e17, 1.0]]}, "must hold sums of batches"),
        ({"cost": [[0, 1.0, 1.0, 1.0, 1.0, 1e17]]}, "must hold sums of batches"),
        ({"cost": [[65, 1.0, 1.0, 1.0, 1.0, 1.0]]}, "must hold sums of batches"),
        ({"variation": [1e17, 1.0]}, "must hold squares of at most 100 each"),
        ({"coldStarts": [1e17]}, "coldStarts must hold seconds <= 86400"),
        ({"promise": [0.0, 0.0, 0.0, 1e17]}, "late <= ended <= 9"),
        ({"cost": [[0, 1, 1, 1, 0, 1]]}, r"must hold sums > 0; got \[0, 1, 1, 1, 0, "),
        ({"cost": [[0, 0.0, 1, 1, 1, 1]]}, "must hold sums > 0"),
        ({"cost": [[0, 1, 1, 1, -1, 1]]}, r"cost must hold numbers from 0 to 1e\+24; got -1"),
        ({"cost": [[0, 1, 1, 1, "1", 1]]}, "cost must hold numbers; got '1'"),
        ({"variation": None}, "variation must be a list of numbers; got None"),
        ({"variation": [1.0]}, r"must hold a sum of squares and how many .*; got \[1.0\]"),
        (
            {"variation": [1.0, 0.0]},
            r"must hold a sum of squares and how many .*; got \[1.0, 0.0\]",
        ),
        ({"variation": [-1.0, 2.0]}, r"variation must hold numbers from 0 to 1e\+24; got -1"),
        ({"correction": 1.0}, "correction must be a list of numbers; got 1.0"),
        ({"correction": []}, r"correction must hold one number in 0.6..4; got \[\]"),
        ({"correction": [1.0, 1.0]}, r"correction must hold one number in 0.6..4; got \[1.0, "),
        ({"correction": [0.5]}, r"correction must hold one number in 0.6..4; got \[0.5\]"),
        ({"correction": [4.5]}, r"correction must hold one number in 0.6..4; got \[4.5\]"),
        ({"correction": [math.nan]}, r"correction must hold numbers from 0 to 1e\+24; got nan"),
        ({"correction": [True]}, "correction must hold numbers; got True"),
        ({"coldStarts": [math.inf]}, r"coldStarts must hold numbers from 0 to 1e\+24; got inf"),
        ({"cost": [[0, 1, 1, 1e200, 1, 1]]}, r"cost must hold numbers from 0 to 1e\+24; got 1e"),
    ],
)
def test_checkpoint_with_an_invalid_value_is_rejected_with_rule_and_value(
    change: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        State.from_checkpoint(GOOD | change)


@pytest.mark.parametrize("cv", [0.1, 0.3, 0.6])
@pytest.mark.parametrize("sizes", [(1, 2, 4, 8), (8,)], ids=["all", "full"])
@pytest.mark.parametrize("seed", range(3))
def test_cost_change_amid_noise_is_learned_within_30_s(
    cv: float, sizes: tuple[int, ...], seed: int
) -> None:
    learner = taught(CostLearner(), SILENT, noisy(cv, 900, seed=seed))
    doubled = [
        [one._replace(mean_s=2.0 * one.mean_s) for one in executed]
        for executed in noisy(cv, 15, seed=50 + seed, sizes=sizes)
    ]
    learner = taught(learner, SILENT, doubled)
    assert fitted(learner).batch_s(8) == pytest.approx(1.26, rel=0.15)


@pytest.mark.parametrize("seed", range(5))
def test_noise_of_the_first_minutes_is_no_cost_change(seed: int) -> None:
    learner = CostLearner()
    for executed in noisy(1.0, 60, seed=seed):
        seen = sum(sums[0] for sums in learner.bins.values())
        learner = learner.observe(executed, 2.0, learner.fit(SILENT))
        assert sum(sums[0] for sums in learner.bins.values()) > 0.5 * seen


@pytest.mark.parametrize("pair", [(10.0, 2.0, 0.0), (10.0, 0.0, 0.2)], ids=["no time", "no items"])
def test_counters_without_change_are_no_batches(pair: tuple[float, float, float]) -> None:
    assert CostLearner().observe([ran(*pair)], 2.0) == CostLearner()


def fleet(
    costs: dict[str, CostModel], ticks: int, *, load: float = 1.0, cv: float = 0.0
) -> list[Tick]:
    """Replicas under the same share of the load: the slower, the larger its batches."""
    random = np.random.default_rng(7)
    executed = []
    for _ in range(ticks):
        share = load * random.uniform(0.6, 1.4)
        tick = []
        for replica, cost in costs.items():
            size = min(8.0, max(1.0, 8 * share * cost.batch_s(8) / TRUE.batch_s(8)))
            mean_s = cost.batch_s(size) * (1 + cv * random.normal() / math.sqrt(20))
            tick.append(ran(20.0, size, mean_s, replica))
        executed.append(tick)
    return executed


def slower(factor: float) -> CostModel:
    return CostModel(fixed_s=factor * 0.150, per_item_s=factor * 0.060, max_batch=8)


@pytest.mark.parametrize("load", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("factor", [1.2, 1.5, 2.0])
@pytest.mark.parametrize("cv", [0.0, 0.3])
def test_line_with_different_accelerators_is_not_tilted(
    factor: float, load: float, cv: float
) -> None:
    costs = {"a": TRUE, "b": slower(factor), "c": TRUE, "d": slower(factor)}
    cost = fitted(taught(CostLearner(), SILENT, fleet(costs, 900, load=load, cv=cv)))
    assert cost.batch_s(8) == pytest.approx(0.63, rel=0.07)  # of two middle ones the faster
    assert cost.batch_s(1) == pytest.approx(0.21, rel=0.07)
    assert cost.cv == pytest.approx(cv, rel=0.1, abs=0.1)


def test_cost_that_no_line_fits_is_no_variation() -> None:
    # Padded to powers of two, as compiled kernels are: 3 requests take as long as 4.
    steps = {size: 0.150 + 0.060 * 2 ** math.ceil(math.log2(size)) for size in range(1, 9)}
    random = np.random.default_rng(8)
    ticks = [
        [ran(60.0, size, steps[size], replica) for replica, size in zip("ab", sizes, strict=True)]
        for sizes in np.repeat(random.integers(1, 9, (90, 2)), 10, axis=0).tolist()
    ]
    assert fitted(taught(CostLearner(), SILENT, ticks)).cv < 0.5


def test_deleted_replica_keeps_its_share_of_the_cost_but_no_speed() -> None:
    learner = taught(CostLearner(), SILENT, fleet({"a": TRUE, "b": slower(1.5)}, 300))
    left = learner.only({"a"})
    assert set(left.speeds.sums) == set(left.variation.latest) == {"a"}
    assert fitted(left) == fitted(learner)
    assert left.only({"a", "c"}) is left
    assert learner.speeds.factors == pytest.approx({"a": 1.0, "b": 1.5}, rel=0.02)
    assert left.speeds.factors.keys() == left.speeds.recent.keys() == {"a"}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("cv", [0.3, 1.0])
def test_speed_factors_within_chance_are_one(cv: float, seed: int) -> None:
    alone = [noisy(cv, 600, seed=10 * seed + number) for number in range(4)]
    learner = CostLearner()
    for ticks in zip(*alone, strict=True):
        executed = [one._replace(replica=name) for name, (one,) in zip("abcd", ticks, strict=True)]
        learner = learner.observe(executed, 2.0, learner.fit(SILENT))
        assert learner.speeds.factors == {}


def test_replica_that_claims_a_thousandth_of_the_time_teaches_no_cost_afterwards() -> None:
    """Its factor is no measure of its speed: what it reports later is not divided by it."""
    claim = Claim(max_batch=8, cost=TRUE)
    lies = [[ran(1.0, 1.0, 0.00021), ran(1.0, 1.0, 0.21, "b"), ran(1.0, 1.0, 0.21, "c")]] * 12
    truth = [[ran(1.0, 1.0, 0.21), ran(1.0, 1.0, 0.21, "b"), ran(1.0, 1.0, 0.21, "c")]] * 30
    learner = taught(CostLearner(), claim, lies)
    assert learner.speeds.incredible == {"a"}
    assert learner.speeds.pooled(["a", "b", "c"]) == 1.0
    for tick in truth:
        learner = taught(learner, claim, [tick])
        assert fitted(learner, claim).batch_s(1) == pytest.approx(0.21, rel=0.15)
