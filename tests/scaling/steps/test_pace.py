"""Requests that take long: windows follow them, and few of them prove little."""

from __future__ import annotations

import math

import pytest

from headroom.scaling import State, decide
from headroom.scaling.demand.throughput import saturated_answers
from headroom.scaling.frozen import replace
from headroom.scaling.steps.pace import at_pace
from headroom.scaling.values.observation import CostModel, Observation
from headroom.scaling.values.policy import Policy, Routing
from headroom.scaling.windows.sliding_windows import Windows
from headroom.simulator.arrivals import PoissonArrivals, shapes
from headroom.simulator.autoscalers import catalogue
from headroom.simulator.cold_start import ColdStart
from headroom.simulator.outcome import Outcome
from headroom.simulator.plant import Network, Server, ServiceSpec
from headroom.simulator.run import simulate
from headroom.simulator.scenario import Scenario, Workload
from support.fakes_scaling import COST, ready_pod, sample

MANY = CostModel(fixed_s=0.0, per_item_s=1e-4, max_batch=8)
SLOW = CostModel(fixed_s=0.0, per_item_s=1.0, max_batch=1)
IMAGE = CostModel(fixed_s=0.0, per_item_s=45.0, max_batch=1)
POLICY = Policy(latency_target_s=135.0, max_replicas=60, routing=Routing.LEAST_IN_FLIGHT)


@pytest.mark.parametrize(
    ("cost", "pace"),
    [
        pytest.param(None, 1.0, id="unknown"),
        pytest.param(COST, 1.0, id="many requests per second"),
        pytest.param(replace(IMAGE, per_item_s=4.0), 1.0, id="as long as the shortest window"),
        pytest.param(replace(IMAGE, per_item_s=5.0), 1.25, id="a little longer"),
        pytest.param(IMAGE, 11.25, id="one request in 45 s"),
        pytest.param(replace(IMAGE, max_batch=4), 11.25, id="four of 45 s each, one by one"),
        pytest.param(replace(IMAGE, fixed_s=45.0, per_item_s=0.0, max_batch=4), 2.8125, id="four"),
        pytest.param(replace(IMAGE, slots=16), 1.0, id="sixteen at a time"),
        pytest.param(replace(IMAGE, per_item_s=3600.0), 30.0, id="an hour, or a hang"),
    ],
)
def test_no_window_is_shorter_than_a_replica_takes_for_a_request(
    cost: CostModel | None, pace: float
) -> None:
    policy = at_pace(POLICY, cost)
    assert policy.pace == pytest.approx(pace)
    assert policy.burst_windows_s == pytest.approx([pace * one for one in POLICY.burst_windows_s])
    assert policy.stable_window_s == pytest.approx(30.0 * pace)
    assert policy.known_after_s == pytest.approx(max(12.0, 4.0 * pace))


def test_long_window_is_exact_with_few_points() -> None:
    windows = Windows()
    pods = (ready_pod("a", created_s=-100.0), ready_pod("b", created_s=-100.0))
    for tick in range(500):
        samples = (sample("a", 2 * tick, 10 * tick), sample("b", 2 * tick, tick))
        heard = samples if tick % 7 else samples[:1]
        observation = Observation(now_s=2.0 * tick, current=2, pods=pods, samples=heard)
        windows = windows.absorb(observation, 337.5)
    assert windows.total(337.5).arrivals == pytest.approx(11 * 337.5 / 2, rel=0.01)
    assert windows.total(45.0).arrivals == pytest.approx(11 * 45.0 / 2, rel=0.01)
    assert len(windows.series.points) < 80


def test_window_that_was_not_kept_is_not_watched() -> None:
    windows, pods = Windows(), (ready_pod("a", created_s=-100.0),)
    for tick in range(300):
        longest_s = 337.5 if tick >= 150 else 30.0
        observation = Observation(
            now_s=2.0 * tick, current=1, pods=pods, samples=(sample("a", 2 * tick, tick),)
        )
        windows = windows.absorb(observation, longest_s)
        watched_s = windows.watched_s(2.0 * tick, 337.5)
        if tick >= 150:
            assert windows.total(watched_s).arrivals == pytest.approx(watched_s / 2)
    assert watched_s == 337.5


@pytest.mark.parametrize(
    ("cost", "ready", "ceiling", "window_s", "share"),
    [
        pytest.param(MANY, 24, 0.8, 8.0, 0.9, id="many requests"),
        pytest.param(MANY, 24, 0.95, 8.0, 0.975, id="many requests, near full"),
        pytest.param(SLOW, 1, 0.8, 8.0, 0.9, id="one replica: chance adds one more"),
        pytest.param(SLOW, 24, 0.5, 8.0, 0.9, id="few requests, and a low ceiling"),
        pytest.param(SLOW, 24, 0.8, 8.0, 0.96, id="few requests: chance would add twelve"),
        pytest.param(SLOW, 10, 0.8, 8.0, math.inf, id="fewer: 80 of 80 may be chance"),
        pytest.param(SLOW, 10, 0.8, 16.0, 0.95, id="and in a longer window"),
        pytest.param(SLOW, 10, 0.95, 16.0, math.inf, id="near full: only a queue counts"),
        pytest.param(IMAGE, 14, 0.8, 8.0, math.inf, id="none ends in the window"),
    ],
)
def test_answers_prove_saturation_where_chance_does_not_explain_them(
    cost: CostModel, ready: int, ceiling: float, window_s: float, share: float
) -> None:
    policy = at_pace(replace(POLICY, utilization_ceiling=ceiling), cost)
    least = saturated_answers(policy, cost, ready, window_s)
    assert least / (ready * cost.full_batch_rps * window_s) == pytest.approx(share, abs=0.005)


def outcome(server: Server, policy: Policy, rate_rps: float, seconds: float) -> Outcome:
    spec = ServiceSpec(
        name="images",
        policy=policy,
        server=server,
        network=Network(routing=policy.routing),
        cold_start=ColdStart.of(60.0),
        drain_s=200.0,
    )
    profile = shapes.constant(duration_s=seconds, rps=rate_rps)
    workload = Workload(spec=spec, arrivals=PoissonArrivals(profile=profile, stream="images"))
    scenario = Scenario(name="long", workloads=(workload,))
    return simulate(scenario, lambda truth: catalogue.make("headroom", truth), 1)[0]


def test_few_long_requests_keep_their_replicas_at_a_steady_load() -> None:
    """13.5 are served at once, so 17 replicas keep the ceiling; 31 to 60 ran before."""
    server = Server(fixed_s=0.0, per_item_s=45.0, cv=0.25)
    found = outcome(server, POLICY, 0.3, 7200.0)
    assert found.score.attainment > 0.99
    desired = found.timeline.desired[len(found.timeline.desired) // 2 :]
    assert 16 <= desired.min() <= desired.max() <= 21
    assert sum(move.time_s > 3600.0 for move in found.moves) <= 6


def test_service_that_may_work_near_full_keeps_its_replicas() -> None:
    """Seven replicas at 0.86 of their throughput became eleven by chance, five times an hour."""
    policy = Policy(latency_target_s=1.8, utilization_ceiling=0.95, routing=Routing.LEAST_IN_FLIGHT)
    found = outcome(Server(fixed_s=0.0, per_item_s=0.3, cv=0.2), policy, 20.0, 3600.0)
    assert found.score.attainment > 0.98
    assert found.timeline.desired[60:].max() <= 9


def test_clock_that_jumps_ahead_by_a_day_adds_nothing() -> None:
    policy = Policy(latency_target_s=1.0, routing=Routing.LEAST_IN_FLIGHT)
    pods = tuple(ready_pod(f"pod-{number}", created_s=-100.0) for number in range(2))
    state, ahead_s, most = State.initial(), 0.0, 0
    for tick in range(300):
        if tick == 200:
            ahead_s = 86_400.0
        now_s = 2.0 * tick + ahead_s
        samples = tuple(
            replace(sample(pod.uid, now_s, 20.0 * tick), cost=COST, max_batch=COST.max_batch)
            for pod in pods
        )
        observation = Observation(now_s=now_s, current=2, pods=pods, samples=samples)
        decision, state = decide(policy, state, observation)
        if tick > 150:
            most = max(most, decision.replicas) if tick >= 200 else decision.replicas
    assert most <= decision.replicas
