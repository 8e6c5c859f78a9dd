"""Whole runs: times of observations and decisions, scores by hand, same bytes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from headroom.scaling.values.observation import PodState
from headroom.simulator.autoscaler import GroundTruth
from headroom.simulator.plant import Cluster
from headroom.simulator.run import simulate
from headroom.simulator.scenario import Scenario, Workload
from latency_tables import batch_chain
from simulator.fakes_fleet import spec
from simulator.runs_by_hand import Direct, Given, Scheduled, every, random_run, run, same


def test_run_with_same_seed_is_identical_and_with_another_differs() -> None:
    assert same(random_run(1), random_run(1))
    assert not same(random_run(1), random_run(2))


@pytest.mark.parametrize("chunk", [1, 37, 1000])
def test_run_is_independent_of_arrival_chunks(chunk: int) -> None:
    assert same(random_run(1, chunk), random_run(1))


def test_run_conserves_requests_and_littles_law() -> None:
    score = random_run(1).score
    assert score.requests == 4_400
    assert score.failed > 0
    assert score.refused > 0
    assert score.within + score.refused + score.expired + score.failed <= score.requests
    assert score.little_error < 1e-9


def test_quiet_run_has_scores_counted_by_hand() -> None:
    # a request of 1 s at 1, 3, 5 .. s; two replicas, a third requested at 10 s, ready from 40 s and
    # removed idle at 60 s; samples every 5 s
    outcome = run(Scheduled({10.0: 3, 60.0: 2}), every(2.0, 120.0))
    score, timeline = outcome.score, outcome.timeline
    assert (score.requests, score.within, score.attainment) == (60, 60, 1.0)
    assert score.p95_s == pytest.approx(1.0, rel=0.011)
    assert score.gpu_hours == pytest.approx((2 * 120 + 50) / 3600)
    assert score.starting_gpu_hours == pytest.approx(30 / 3600)
    assert [(move.time_s, move.before, move.after) for move in outcome.moves] == [
        (10.0, 2, 3),
        (60.0, 3, 2),
    ]
    assert (score.operations, score.flaps, score.violation_minutes, score.minutes) == (2, 0, 0, 2)
    assert timeline.times_s.tolist() == [5.0 * step for step in range(1, 25)]
    assert timeline.ready.tolist() == [2] * 7 + [3] * 4 + [2] * 13
    assert timeline.warming.tolist() == [0] + [1] * 6 + [0] * 17
    assert timeline.arrival_rps.tolist() == [0.4, 0.6] * 12
    assert (score.peak_ready, score.recover_s) == (3, 0.0)


def test_unfinished_requests_are_misses_in_their_minute_of_arrival() -> None:
    # two replicas take 2 a second, 4 come: after 5 s of queue (t = 5 s) nothing is in time, and at
    # the end half of all still waits; each of the three minutes is violated, those without any end
    # too
    outcome = run(Scheduled(), every(0.25, 180.0), duration_s=180.0)
    score = outcome.score
    assert (score.violation_minutes, score.minutes, score.recover_s) == (3, 3, 180.0)
    assert score.p95_s == math.inf
    assert score.attainment < 0.1


def test_requests_of_last_seconds_get_the_target_to_finish() -> None:
    outcome = run(Scheduled(), np.array([119.5]))
    assert (outcome.score.within, outcome.score.little_error < 1e-9) == (1, True)


def test_scale_request_is_clamped_to_service_bounds() -> None:
    outcome = run(Scheduled({10.0: 1000, 20.0: -5}), np.array([1.0]))
    assert [move.after for move in outcome.moves] == [50, 0]


def test_autoscaler_evaluates_at_its_period_with_last_scrape() -> None:
    scaler = Scheduled(period_s=15.0, scrape_s=10.0)
    run(scaler, every(1.0, 120.0))
    assert [view.now_s for view in scaler.views] == [15.0 * step for step in range(1, 9)]
    # by 30 s those of 0.5 to 28.5 s are answered; the scrape of 30 s comes before the decision
    assert sum(scaler.instants[1].values()) == 29
    assert scaler.views[0].samples == ()


def test_direct_scraper_sees_every_ready_pod() -> None:
    scaler = Direct({10.0: 4}, scrape_s=math.inf)
    run(scaler, every(1.0, 120.0))
    view = scaler.views[99]
    assert view.now_s == 100.0
    assert {one.pod for one in view.samples} == {pod.uid for pod in view.pods}
    assert sum(one.latency.counts[-1] for one in view.samples) == 99
    assert [pod.state for pod in scaler.views[20].pods].count(PodState.WARMING) == 2


def test_services_sharing_a_pool_have_separate_outcomes() -> None:
    scenario = Scenario(
        name="two",
        workloads=tuple(
            Workload(
                spec=spec(name, priority=priority, initial=2),
                arrivals=Given(every(1.0, 120.0), 120.0),
            )
            for name, priority in (("low", 0), ("high", 1))
        ),
        cluster=Cluster(gpus=3),
    )
    low, high = simulate(scenario, lambda _: Scheduled(), 1)
    assert (low.service, low.score.peak_ready) == ("low", 1)
    assert (high.service, high.score.peak_ready) == ("high", 2)
    assert low.score.gpu_hours == pytest.approx(120 / 3600)
    assert (low.score.requests, high.score.requests) == (120, 120)


def test_ground_truth_counts_seconds_and_measures_capacity() -> None:
    seen: list[GroundTruth] = []

    def make(truth: GroundTruth) -> Scheduled:
        seen.append(truth)
        return Scheduled()

    times_s = np.array([0.1, 0.2, 5.9, 119.99])
    arrivals = Given(times_s, 120.0)
    simulate(
        Scenario(name="s", workloads=(Workload(spec=spec(initial=1), arrivals=arrivals),)), make, 1
    )
    (truth,) = seen
    assert np.flatnonzero(truth.arrivals_per_s).tolist() == [0, 5, 119]
    assert (truth.arrivals_per_s.sum(), len(truth.arrivals_per_s)) == (4, 120)
    # services of 1 s: the rate is the utilization at which the 95th percentile of M/D/1 is 5 s
    percentile_s = batch_chain.percentiles(1.0, 1, truth.capacity_rps, [0.95])[0]
    assert percentile_s == pytest.approx(5.0, rel=0.03)


def test_progress_is_reported_until_one() -> None:
    reported: list[float] = []
    scenario = Scenario(
        name="s", workloads=(Workload(spec=spec(initial=1), arrivals=Given(every(1, 60), 60.0)),)
    )
    simulate(scenario, lambda _: Scheduled(), 1, on_progress=reported.append)
    assert reported == sorted(reported)
    assert (reported[0], reported[-1]) == (0.0, 1.0)
