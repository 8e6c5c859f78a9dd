"""Whole runs: what is seen and decided when, faults by schedule, scores by hand, same bytes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from headroom.scaling.values.observation import PodState
from headroom.scaling.values.policy import Routing
from headroom.simulator.autoscaler import GroundTruth, ScaleRequest, View
from headroom.simulator.capacity import capacity_rps
from headroom.simulator.closed_loop import closed_loop
from headroom.simulator.compiled.plant_layout import Column
from headroom.simulator.outcome import Outcome
from headroom.simulator.plant import Clients, Cluster, Server, ServiceSpec
from headroom.simulator.run import simulate
from headroom.simulator.scenario import Fault, FaultKind, Scenario, Times, Workload
from latency_tables import batch_chain
from simulator.fakes_fleet import spec
from simulator.fakes_plant import poisson


@dataclass(frozen=True)
class Given:
    """Arrivals as they are written down, in chunks of so many."""

    times_s: Times
    duration_s: float
    chunk: int = 10**6

    def chunks(self, seed: int) -> Iterator[Times]:
        for start in range(0, len(self.times_s), self.chunk):
            yield self.times_s[start : start + self.chunk]


@dataclass
class Scheduled:
    """Asks for what its schedule says, and keeps what it was shown."""

    schedule: Mapping[float, int] = field(default_factory=dict)
    period_s: float = 1.0
    scrape_s: float = 5.0
    views: list[View] = field(default_factory=list)
    instants: list[dict[str, float]] = field(default_factory=list)
    name: str = "scheduled"

    def evaluate(self, view: View) -> ScaleRequest:
        self.views.append(view)
        self.instants.append(dict(view.metrics.instant(Column.ANSWERED)))
        due = [replicas for time_s, replicas in self.schedule.items() if time_s <= view.now_s]
        return ScaleRequest(replicas=due[-1] if due else view.replicas, reason="Schedule")


@dataclass
class Direct(Scheduled):
    """The same, asking the pods itself."""

    restarted: int = 0

    def restart(self) -> None:
        self.restarted += 1


def every(seconds: float, until_s: float) -> Times:
    return np.arange(0.5 * seconds, until_s, seconds)


def run(
    autoscaler: Scheduled,
    times_s: Times,
    *faults: Fault,
    duration_s: float = 120.0,
    service: ServiceSpec | None = None,
    cluster: Cluster | None = None,
    chunk: int = 10**6,
    seed: int = 1,
) -> Outcome:
    scenario = Scenario(
        name="by hand",
        workloads=(
            Workload(
                spec=service or spec(initial=2, routing=Routing.ROUND_ROBIN),
                arrivals=Given(times_s, duration_s, chunk),
            ),
        ),
        cluster=cluster or Cluster(),
        faults=faults,
    )
    (outcome,) = simulate(scenario, lambda _: autoscaler, seed)
    return outcome


def same(one: Outcome, other: Outcome) -> bool:
    """Whether two outcomes are the same to the last bit."""

    def flat(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return value.tobytes()
        if dataclasses.is_dataclass(value):
            return [flat(getattr(value, each.name)) for each in dataclasses.fields(value)]
        return value.hex() if isinstance(value, float) else value

    return bool(flat(one) == flat(other))


def random_run(seed: int, chunk: int = 10**6) -> Outcome:
    service = spec(
        server=Server(fixed_s=0.2, per_item_s=0.1, max_batch=4, cv=0.5),
        initial=2,
        target_s=2.0,
        routing=Routing.RANDOM,
        clients=Clients(timeout_s=4.0, max_waiting=30),
    )
    fault = Fault(kind=FaultKind.POD_KILL, start_s=150.0, share=0.3)
    return run(
        Scheduled({20.0: 5, 100.0: 3, 200.0: 6, 250.0: 1}),
        poisson(15.0, 4_400, seed=3),
        fault,
        duration_s=300.0,
        service=service,
        chunk=chunk,
        seed=seed,
    )


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


def fault(kind: FaultKind, **settings: float) -> Fault:
    return Fault(kind=kind, start_s=30.0, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(("share", "answer"), [(1.0, 0), (0.5, 2), (0.25, 3), (0.01, 3)])
def test_scrape_loss_hits_the_same_share_of_pods(share: float, answer: int) -> None:
    scaler = Direct()
    run(
        scaler,
        every(1.0, 120.0),
        fault(FaultKind.SCRAPE_LOSS, duration_s=40.0, share=share),
        service=spec(initial=4),
    )
    during = scaler.views[30:69]
    assert {len(view.samples) for view in during} == {answer}
    assert len({tuple(one.pod for one in view.samples) for view in during}) == 1
    assert {len(view.samples) for view in scaler.views[:29] + scaler.views[70:]} == {4}
    assert {len(instant) for instant in scaler.instants[30:69]} == {answer}


def test_metrics_restart_empties_store_and_restarts_scraper() -> None:
    scaler = Direct(scrape_s=20.0)
    run(scaler, every(1.0, 120.0), fault(FaultKind.METRICS_RESTART))
    assert scaler.restarted == 1
    assert [len(instant) for instant in scaler.instants[27:41]] == [2, 2, *[0] * 10, 2, 2]


def test_slow_pods_are_slow_until_fault_ends() -> None:
    # of two, one takes 4 s per request instead of 1 from 30 to 60 s, and gets one every 2 s
    outcome = run(
        Scheduled(),
        every(1.0, 120.0),
        fault(FaultKind.SLOW_PODS, duration_s=30.0, share=0.5, factor=4.0),
    )
    waiting = dict(
        zip(outcome.timeline.times_s.tolist(), outcome.timeline.waiting.tolist(), strict=True)
    )
    assert waiting[30.0] == 0
    assert waiting[60.0] == pytest.approx(15 - 7.5, abs=1.5)
    assert waiting[120.0] == 0


def test_costly_requests_take_longer_until_fault_ends() -> None:
    outcome = run(
        Scheduled(),
        every(1.0, 120.0),
        fault(FaultKind.COSTLY_REQUESTS, duration_s=30.0, factor=1.5),
    )
    p95_s = dict(
        zip(outcome.timeline.times_s.tolist(), outcome.timeline.p95_s.tolist(), strict=True)
    )
    assert p95_s[30.0] == pytest.approx(1.0, rel=0.011)
    assert p95_s[50.0] == pytest.approx(1.5, rel=0.011)
    assert p95_s[80.0] == pytest.approx(1.0, rel=0.011)


def test_slow_starts_take_longer_until_fault_ends() -> None:
    # cold starts of 30 s; twice that if they begin from 30 to 70 s: ready at 50, 120 and 110 s
    outcome = run(
        Scheduled({20.0: 3, 60.0: 4, 80.0: 5}),
        every(1.0, 180.0),
        fault(FaultKind.SLOW_STARTS, duration_s=40.0, factor=2.0),
        duration_s=180.0,
    )
    times_s, ready = outcome.timeline.times_s, outcome.timeline.ready
    first_s = [float(times_s[ready >= count][0]) for count in (3, 4, 5)]
    assert first_s == [50.0, 110.0, 120.0]
    assert outcome.score.starting_gpu_hours == pytest.approx((30 + 60 + 30) / 3600)


def limited_run(seed: int = 1, **limits: Any) -> Outcome:
    """Eight a second want to, six are served: two replicas of 3 a second, later three."""
    service = spec(
        server=Server(fixed_s=1 / 3, per_item_s=0.0, cv=0.3),
        initial=2,
        target_s=1.0,
        clients=Clients(**limits),
    )
    scaler = Scheduled({60.0: 3})
    return run(scaler, poisson(8.0, 960) * 0.999, service=service, seed=seed)


def test_requests_that_wait_at_clients_are_late_and_hidden() -> None:
    outcome = limited_run(connections=8)
    score, timeline = outcome.score, outcome.timeline
    assert (score.requests, timeline.waiting.max() <= 8, score.peak_waiting <= 8) == (
        960,
        True,
        True,
    )
    assert score.peak_unsent == pytest.approx(8 * 90 - 6 * 90, abs=40)
    assert score.tries < 960
    assert score.attainment < 0.2
    assert score.violation_minutes == 2
    assert score.little_error < 1e-9


def test_retries_are_tries_and_not_requests() -> None:
    score = limited_run(timeout_s=1.5, retries=2, backoff_s=0.5).score
    assert score.requests == 960
    assert 1.3 * 960 < score.tries <= 3 * 960
    assert score.within + score.refused + score.expired + score.failed < score.requests
    assert score.little_error < 1e-9


def test_run_of_users_counts_what_they_ask() -> None:
    service = spec(
        target_s=2.0, initial=2, clients=Clients(users=((0.0, 4), (60.0, 8)), think_s=3.0)
    )
    scenario = Scenario(name="users", workloads=(closed_loop(service, 120.0),))
    (outcome,) = simulate(scenario, lambda _: Scheduled(), 1)
    (again,) = simulate(scenario, lambda _: Scheduled(), 1)
    assert same(outcome, again)
    assert outcome.score.requests == pytest.approx(60 * 4 / 4.05 + 60 * 8 / 4.8, rel=0.2)
    assert outcome.score.tries == outcome.score.requests
    assert outcome.score.little_error < 1e-9


def test_truth_of_users_is_the_demand_of_a_healthy_service() -> None:
    seen: list[GroundTruth] = []

    def make(truth: GroundTruth) -> Scheduled:
        seen.append(truth)
        return Scheduled()

    service = spec(target_s=5.0, clients=Clients(users=((0.0, 4), (60.0, 8)), think_s=3.0))
    scenario = Scenario(name="users", workloads=(closed_loop(service, 120.0),))
    simulate(scenario, make, 1)
    counts = seen[0].arrivals_per_s
    assert counts[60:].sum() == pytest.approx(2 * counts[:60].sum(), abs=2)
    assert 60 * 4 / 6.0 < counts[:60].sum() < 60 * 4 / 4.0


@pytest.mark.parametrize("routing", [Routing.RANDOM, Routing.STICKY, Routing.CENTRAL])
def test_capacity_is_measured_with_clients_that_do_not_limit(routing: Routing) -> None:
    """Neither patience nor a single connection nor retries change what a replica can do."""
    plain = spec(routing=routing, server=Server(fixed_s=0.1, per_item_s=0.0), target_s=1.0)
    one = capacity_rps(dataclasses.replace(plain, clients=Clients(connections=1)), 2)
    limits = Clients(connections=50, timeout_s=0.5, retries=3, max_waiting=1)
    assert capacity_rps(dataclasses.replace(plain, clients=limits), 2) == one
    users = Clients(users=3, retries=1)
    assert capacity_rps(dataclasses.replace(plain, clients=users), 2) == one
    if routing is not Routing.STICKY:
        assert capacity_rps(plain, 2) == one
    assert 0.4 * 10 < one < 10


def test_queue_in_front_says_what_it_rejected_to_whoever_asks_the_pods() -> None:
    """4/s at one replica that answers 1/s, two may wait in front: the others are refused."""
    service = spec(initial=1, routing=Routing.CENTRAL, clients=Clients(max_waiting=2))
    asking, scraping = Direct(), Scheduled()
    for one in (asking, scraping):
        run(one, every(0.25, 120.0), service=service)
    assert all(view.rejected is None for view in scraping.views)
    rejected = [view.rejected.requests for view in asking.views if view.rejected is not None]
    assert len(rejected) == len(asking.views)
    assert rejected == sorted(rejected)
    last = asking.views[-1]
    seen = rejected[-1] + sum(sample.arrivals for sample in last.samples)
    assert seen == pytest.approx(4 * last.now_s, abs=3), "all but those that wait in front"
    assert rejected[-1] > 300
    direct = Direct()
    run(direct, every(1.0, 120.0))
    assert all(view.rejected is None for view in direct.views), "no queue in front"


def test_killed_pods_are_replaced() -> None:
    outcome = run(Scheduled(), every(1.0, 120.0), fault(FaultKind.POD_KILL, share=0.5))
    timeline, times = outcome.timeline, outcome.timeline.times_s
    assert timeline.ready[times == 35.0] == 1
    assert timeline.warming[times == 35.0] == 1
    assert timeline.ready[times == 60.0] == 2
    assert outcome.score.starting_gpu_hours == pytest.approx(30 / 3600)


def test_lost_node_takes_its_gpus_until_fault_ends() -> None:
    outcome = run(
        Scheduled(),
        every(1.0, 180.0),
        fault(FaultKind.NODE_LOSS, duration_s=60.0, share=0.5),
        cluster=Cluster(gpus=2),
        duration_s=180.0,
    )
    timeline, times = outcome.timeline, outcome.timeline.times_s
    assert timeline.unschedulable[(times >= 30) & (times < 90)].tolist() == [1] * 12
    assert timeline.warming[(times >= 90) & (times < 120)].tolist() == [1] * 6
    assert timeline.ready[times >= 120].tolist() == [2] * 13
    # one pod throughout, one for 30 s, its successor from 90 s
    assert outcome.score.gpu_hours == pytest.approx((180 + 30 + 90) / 3600)


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
    told: list[float] = []
    scenario = Scenario(
        name="s", workloads=(Workload(spec=spec(initial=1), arrivals=Given(every(1, 60), 60.0)),)
    )
    simulate(scenario, lambda _: Scheduled(), 1, on_progress=told.append)
    assert told == sorted(told)
    assert (told[0], told[-1]) == (0.0, 1.0)
