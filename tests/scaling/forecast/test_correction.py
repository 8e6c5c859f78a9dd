"""Correction by measured latency, and the conditions under which it must not learn."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.scaling import (
    CostModel,
    PodSample,
    Policy,
)
from headroom.scaling.forecast.analog_forecast import AnalogForecast
from headroom.scaling.forecast.forecast import Forecast
from headroom.scaling.latency.correction import Correction
from headroom.scaling.latency.tail_latency import TailLatency
from headroom.scaling.state.state import State
from headroom.scaling.steps.latency_model import corrected_target_s
from headroom.scaling.values.latency_counts import LatencyCounts
from headroom.scaling.values.tuning import Component, Tuning
from support.fakes_scaling import BOUNDS_S, COST, Service, policy


def learn(correction: Correction, ratio: float, *, seconds: float, requests: float) -> Correction:
    return correction.observe(
        ratio * 0.5, 0.5, requests=requests, elapsed_s=seconds, constant_s=300.0
    )


@pytest.mark.parametrize(
    ("ratio", "seconds", "requests", "factor"),
    [
        (2.0, 300.0, 200.0, 2.0 ** (1 - 1 / math.e)),  # one time constant: 63 % of the logarithm
        (2.0, 300.0, 1e6, 2.0 ** (1 - 1 / math.e)),  # more requests than enough count no more
        (2.0, 300.0, 100.0, 2.0 ** (1 - math.exp(-0.5))),  # half the requests: half the speed
        (2.0, 1e5, 200.0, 2.0),
        (0.7, 1e5, 200.0, 0.7),
        (2.0, 1e5, 0.0, 1.0),  # without a request nothing is learned
        (1.09, 1e5, 200.0, 1.0),  # dead band
        (1 / 1.09, 1e5, 200.0, 1.0),
        (1.12, 1e5, 200.0, 1.12),
        (9.0, 1e5, 200.0, 4.0),
        (math.inf, 1e5, 200.0, 4.0),  # the percentile fell among the misses
        (0.1, 1e5, 200.0, 0.6),
        (math.inf, 300.0, 200.0, 4.0 ** (1 - 1 / math.e)),
    ],
)
def test_correction_follows_measured_over_modelled_latency(
    ratio: float, seconds: float, requests: float, factor: float
) -> None:
    learned = learn(Correction(), ratio, seconds=seconds, requests=requests)
    assert learned.factor == pytest.approx(factor)
    assert learned.learned_s == seconds


def test_correction_with_opposite_errors_stays_one() -> None:
    twice = learn(Correction(), 1.5, seconds=1.0, requests=200.0)
    assert learn(twice, 1 / 1.5, seconds=1.0, requests=200.0).logarithm == pytest.approx(
        0.0, abs=1e-5
    )


@pytest.mark.parametrize("modelled_s", [0.0, -1.0, math.inf, math.nan])
def test_correction_without_a_modelled_latency_is_unchanged(modelled_s: float) -> None:
    before = Correction(logarithm=0.3, learned_s=10.0)
    assert (
        before.observe(1.0, modelled_s, requests=200.0, elapsed_s=2.0, constant_s=300.0) == before
    )


@given(
    st.lists(st.tuples(st.floats(0.0, math.inf), st.floats(1e-6, 1e6), st.floats(0.0, 1e9))),
    st.floats(0.0, 1e6),
)
def test_correction_stays_within_its_bounds(
    windows: list[tuple[float, float, float]], elapsed_s: float
) -> None:
    correction = Correction()
    for measured_s, modelled_s, requests in windows:
        correction = correction.observe(
            measured_s, modelled_s, requests=requests, elapsed_s=elapsed_s, constant_s=300.0
        )
    assert 0.6 * (1 - 1e-9) <= correction.factor <= 4.0 * (1 + 1e-9)


@pytest.mark.parametrize(
    ("slo_s", "factor", "target_s"),
    [
        (1.5, 1.0, 1.5),
        (1.5, 3.0, 0.5),
        (1.5, 0.75, 2.0),
        (0.5, 4.0, 0.231),  # idle 0.15 + 0.06 = 0.21 s; 1.1 times that
        (0.22, 4.0, 0.22),  # a promise within 10 % of idle is not tightened at all
        (0.1, 4.0, 0.1),  # nor an infeasible one, and it is not relaxed
    ],
)
def test_corrected_target_stays_above_the_idle_latency(
    slo_s: float, factor: float, target_s: float
) -> None:
    tail = TailLatency(cost=COST, percentile=0.95)
    limits = policy(latency_target_s=slo_s)
    assert corrected_target_s(limits, tail, factor) == pytest.approx(target_s)


@given(
    st.floats(0.01, 10.0),
    st.floats(0.6, 4.0),
    st.builds(
        CostModel,
        fixed_s=st.floats(1e-3, 1.0),
        per_item_s=st.floats(0.0, 0.2),
        max_batch=st.sampled_from([1, 8]),
        cv=st.floats(0.0, 1.5),
    ),
)
def test_corrected_target_of_a_feasible_target_stays_feasible(
    slo_s: float, factor: float, cost: CostModel
) -> None:
    tail = TailLatency(cost=cost, percentile=0.95)
    target_s = corrected_target_s(policy(latency_target_s=slo_s), tail, factor)
    assert (tail.idle_s <= slo_s) <= (tail.idle_s <= target_s)


@pytest.mark.parametrize("without_model", [True, False], ids=["no model", "left out"])
def test_corrected_target_without_model_or_component_is_the_target(without_model: bool) -> None:
    tuning = Tuning() if without_model else Tuning(without=frozenset({Component.CORRECTION}))
    tail = None if without_model else TailLatency(cost=COST, percentile=0.95)
    assert corrected_target_s(policy(tuning=tuning), tail, 3.0) == 1.5


@dataclass
class Measured(Service):
    """A service whose answers all take 1.5..2 s, so that the 95th percentile measures 1.975 s.

    Each of its replicas reports the queue that `queued` says for it.
    """

    policy: Policy = field(default_factory=lambda: policy(latency_target_s=4.0, max_replicas=3))
    queued: tuple[int, ...] = (0, 0, 0)

    def samples(self) -> tuple[PodSample, ...]:
        slow = []
        for number, sample in enumerate(super().samples()):
            answered = sample.latency.counts[-1]
            counts = (0.0, 0.0, 0.0, 0.0, answered, answered, answered)
            latency = LatencyCounts(bounds_s=(*BOUNDS_S[:3], 1.5, *BOUNDS_S[4:]), counts=counts)
            slow.append(replace(sample, latency=latency, waiting=self.queued[number]))
        return tuple(slow)

    def learned_s(self) -> float:
        return self.state.correction.learned_s


def test_correction_of_a_fast_model_rises_with_its_time_constant() -> None:
    service = Measured(rate_rps=24.0, replicas=3)
    decision = service.run(330)
    # Learnt from one window after the first tick on: 24/s x 30 s are more than 200 requests.
    assert service.learned_s() == pytest.approx(300.0, abs=2.0)
    modelled_s = TailLatency(cost=COST, percentile=0.95).latency_s(24.0, 3)
    assert decision.correction == pytest.approx((1.975 / modelled_s) ** (1 - 1 / math.e), rel=0.01)


def test_correction_with_too_few_for_the_present_is_unchanged() -> None:
    # 9/s needs two under the ceiling; that it has always fallen to 4/s lets one be enough later
    analogs = AnalogForecast()
    for number in range(300):
        rate_rps = 9.0 if number % 12 < 4 else 4.0
        analogs = analogs.observe(10.0 * number, rate_rps, 60.0)
    state = replace(State.initial(), forecast=Forecast(analogs=analogs))
    alone = policy(latency_target_s=4.0, max_replicas=1)
    service = Measured(rate_rps=9.0, replicas=1, now_s=3000.0, state=state, policy=alone)
    messages = [service.tick().message for _ in range(60)]
    assert any("3.96/s expected (9/s now)" in message for message in messages)
    assert service.learned_s() == 0.0


def test_correction_with_too_few_ready_replicas_is_unchanged() -> None:
    # 9/s is above 0.8 x 10.26/s and below 10.26/s: 2 replicas are needed, one has a node, and what
    # is slow now is the lack of the other.
    service = Measured(rate_rps=9.0, replicas=1, gpus=1)
    decision = service.run(300)
    assert (decision.counts.ready, decision.counts.unschedulable) == (1, 1)
    assert service.learned_s() == 0.0
    service.gpus = 2
    service.run(100)
    assert service.learned_s() > 0.0


def test_correction_after_too_few_replicas_waits_for_a_window() -> None:
    service = Measured(rate_rps=9.0, replicas=1, gpus=1)
    service.run(100)
    service.rate_rps = 5.0  # now one is enough, as soon as the windows have seen it
    while (rate_rps := service.tick().signals.arrival_rps.value) is None or rate_rps > 8.2:
        pass
    enough_s = service.now_s
    while service.learned_s() == 0.0:
        assert service.tick().counts.ready == 1
    assert service.now_s - enough_s == 30.0


def test_correction_after_a_change_of_ready_replicas_waits_for_a_window() -> None:
    service = Measured(rate_rps=8.0, replicas=2)
    service.run(100)
    service.scale(3)  # a person; ready after 5 s, seen at the third tick
    service.run(6)
    assert service.decisions[-1].counts.ready == 3
    before_s = service.learned_s()
    assert before_s > 0
    service.run(28)
    assert service.learned_s() == before_s
    service.run(2)
    assert service.learned_s() == before_s + 2.0


@pytest.mark.parametrize(
    ("queued", "first_learned_s"),
    [
        ((0, 0, 0), 30.0),
        ((2, 2, 2), 30.0),  # 6 wait, 3 x 4 may
        ((100, 0, 0), None),  # the backlog of a surge at one replica
        ((100, 50, 0), 30.0 + 90.0),  # the median has a queue: all have a share in it
        ((10, 10, 10), 30.0 + 90.0),  # four windows
    ],
)
def test_correction_counts_a_queue_only_if_all_replicas_keep_one(
    queued: tuple[int, ...], first_learned_s: float | None
) -> None:
    service = Measured(rate_rps=24.0, replicas=3, queued=queued)
    begun_s = service.now_s + service.tick_s
    while service.learned_s() == 0.0 and service.now_s - begun_s < 200.0:
        service.tick()
    learned_at_s = service.now_s - begun_s if service.learned_s() else None
    assert learned_at_s == first_learned_s


def test_correction_with_silent_pods_is_unchanged() -> None:
    service = Measured(rate_rps=24.0, replicas=3)
    service.run(60)
    service.scrape = False
    service.run(10)
    before_s = service.learned_s()
    service.run(60)
    assert service.learned_s() == before_s
