"""Gaps, restarts, clocks and absent replicas around a surge: unknown is neither 0 nor endless."""

from __future__ import annotations

from itertools import pairwise

import pytest

from headroom.scaling import (
    DemandKnown,
    Freshness,
    Observation,
    ReplicaCounts,
    Signal,
    Signals,
    State,
    decide,
)
from headroom.scaling.demand.away import Carried, away_for
from headroom.scaling.demand.hidden_demand import works_off
from headroom.scaling.demand.open_stream import OpenStream
from headroom.scaling.forecast.bursts import burst_rate_rps
from headroom.scaling.latency.tail_latency import TailLatency
from headroom.scaling.rules.queue_rules import for_queue
from headroom.scaling.values.decision_reason import Reason
from headroom.scaling.values.policy import Routing
from headroom.scaling.windows.sliding_windows import Windows
from scaling.demand.saturated_throughput import load
from support.fakes_scaling import BOUNDS_S, COST, Service, policy, ready_pod, sample

TICK_S = 2.0
FULL_RPS = COST.full_batch_rps


@pytest.mark.parametrize(
    ("waiting", "ready", "rate_rps", "replicas"),
    [
        pytest.param(20000.0, 3, None, 9, id="thrice the ready ones at most"),
        pytest.param(20000.0, 1, None, 3, id="of one, three"),
        pytest.param(60.0, 3, None, 4, id="a short queue asks for less"),
        pytest.param(20000.0, 3, 20.0, 15, id="with a known rate as many as work it off"),
    ],
)
def test_queue_of_unknown_age_asks_for_thrice_the_replicas_at_most(
    waiting: float, ready: int, rate_rps: float | None, replicas: int
) -> None:
    """An operator that was away over a step finds a long queue, before it knows any rate."""
    queue = Signal(freshness=Freshness.FRESH, value=waiting, age_s=0.0)
    signals = Signals(standing_queue=queue)
    if rate_rps is not None:
        rate = Signal(freshness=Freshness.FRESH, value=rate_rps, age_s=0.0)
        signals = Signals(standing_queue=queue, arrival_rps=rate)
    found = for_queue(
        policy(),
        TailLatency(cost=COST, percentile=0.95),
        signals,
        counts=ReplicaCounts(ready=ready),
        target_s=1.5,
    )
    assert found is not None
    assert found.replicas == replicas


@pytest.mark.parametrize(
    ("arrived", "answered", "expected"),
    [
        pytest.param(164.0, 256.0, True, id="a queue of a gap is answered"),
        pytest.param(164.0, 161.0, False, id="as many arrive"),
        pytest.param(164.0, 190.0, False, id="within a tenth and chance"),
    ],
)
def test_replicas_that_answer_more_than_arrives_work_off_a_queue(
    arrived: float, answered: float, expected: bool
) -> None:
    assert works_off(load(arrived=arrived, answered=answered)) is expected


def test_queue_that_grew_over_a_gap_hides_nothing_while_it_is_worked_off() -> None:
    """Five new replicas have a level queue; three old ones have longer queues, and get nothing."""
    pods = tuple(ready_pod(f"pod-{number}", created_s=-900.0) for number in range(8))
    state, known = State.initial(), set()
    for number in range(30):
        now_s, samples = TICK_S * number, []
        for pod in pods:
            old = pod in pods[:3]
            ended = FULL_RPS * now_s
            waiting = 1000 - int(ended) if old else 30
            arrived = 1000.0 if old else ended + waiting
            counts = (0.0, 0.0, *(ended for _ in BOUNDS_S[2:]))
            samples.append(sample(pod.uid, now_s, arrived, waiting=waiting, counts=counts))
        seen = Observation(now_s=now_s, current=8, pods=pods, samples=tuple(samples))
        service = policy(routing=Routing.LEAST_IN_FLIGHT, max_replicas=40)
        decision, state = decide(service, state, seen)
        known.add(decision.demand.known)
    assert known == {DemandKnown.EXACT}


def test_queue_that_was_made_unseen_must_be_level_for_long() -> None:
    """Eight replicas answer 32/s while 22/s arrive: within 4 s chance hides what they work off."""
    stream, seen = OpenStream(), load(arrived=176.0, in_flight=400)
    stream = stream.observe(0.0, seen, TICK_S, 28.0)
    assert stream.unseen
    assert stream.observe(2.0, seen, TICK_S, 28.0).unseen
    assert not stream.observe(2.0, load(in_flight=20), TICK_S, 28.0).unseen
    again = OpenStream(points=((0.0, 20),)).observe(2.0, seen, TICK_S, 28.0)
    assert not again.unseen, "a queue that was made within a tick was seen"
    assert again.observe(60.0, seen, TICK_S, 28.0).unseen, "one of a gap was not"


@pytest.mark.parametrize("gap_s", [302.0, 3600.0])
@pytest.mark.parametrize("ahead", [0.0, 1e6])
@pytest.mark.parametrize("rate_rps", [40.0, 80.0])
def test_windows_restart_after_a_long_gap(gap_s: float, ahead: float, rate_rps: float) -> None:
    """Counters show a mean of the time between at best, and may be those of another server."""
    service = Service(rate_rps=40.0, replicas=5)
    service.run(300.0)
    service.scrape = False
    service.run(gap_s)
    service.rate_rps = rate_rps
    for uid in service.arrived:
        service.arrived[uid] += ahead
    service.scrape = True
    returned = [service.tick() for _ in range(60)]
    rates = [one.signals.arrival_rps for one in returned]
    assert not any(rate.fresh for rate in rates[:5])
    for rate in rates[10:]:
        assert rate.value == pytest.approx(rate_rps, rel=0.05)
    assert max(one.replicas for one in returned) <= 3 * 6


def test_counters_resume_only_where_a_replica_is_scraped_again() -> None:
    old, new = ready_pod("old", created_s=-900.0), ready_pod("new", created_s=3600.0)
    windows = Windows()

    def seen(now_s: float, *scraped_s: tuple[str, float], arrived: float = 9.0) -> Observation:
        samples = tuple(sample(uid, time_s, arrived) for uid, time_s in scraped_s)
        return Observation(now_s=now_s, current=1, pods=(old, new), samples=samples)

    assert windows.unseen_s(seen(0.0, ("old", 0.0))) == 0.0
    windows = windows.absorb(seen(0.0, ("old", 0.0)))
    assert windows.unseen_s(seen(2.0, ("old", 2.0))) == 0.0
    assert windows.unseen_s(seen(3612.0, ("old", 0.0))) == 0.0, "the same page again"
    assert windows.unseen_s(seen(3612.0, ("new", 3612.0))) == 0.0, "the first page of another"
    both = ("new", 3612.0), ("old", 3612.0)
    assert windows.unseen_s(seen(3612.0, *both)) == 0.0, "nothing has moved in the old page"
    assert windows.unseen_s(seen(3612.0, *both, arrived=12.0)) == 3612.0


@pytest.mark.parametrize("back_s", [2.0, 4.0, 9.0])
@pytest.mark.parametrize("rate_rps", [3.0, 30.0])
def test_clock_that_is_set_back_makes_no_burst(back_s: float, rate_rps: float) -> None:
    state, service = State.initial(), policy()
    pods = (ready_pod("a", created_s=-900.0),)
    for tick in range(60):
        true_s = TICK_S * tick
        now_s = true_s - back_s if true_s > 60.0 else true_s
        seen = Observation(
            now_s=now_s, current=1, pods=pods, samples=(sample("a", now_s, rate_rps * true_s),)
        )
        decision, state = decide(service, state, seen)
        assert burst_rate_rps(service, state.windows, state.last_s or 0.0) is None
        rate = decision.signals.arrival_rps.value
        if rate is not None:
            assert rate == pytest.approx(rate_rps, rel=0.1)


def test_process_that_restarts_while_the_clock_is_set_back_counts_from_zero() -> None:
    pods = (ready_pod("a", created_s=-900.0),)
    windows = Windows()
    for now_s, arrived in ((0.0, 0.0), (10.0, 100.0)):
        one = sample("a", now_s, arrived)
        windows = windows.absorb(Observation(now_s=now_s, current=1, pods=pods, samples=(one,)))
    again = windows.repeating([sample("a", 8.0, 5.0)])
    one = sample("a", 12.0, 25.0)
    after = again.absorb(Observation(now_s=12.0, current=1, pods=pods, samples=(one,)))
    assert after.total(12.0).arrivals == 125.0


@pytest.mark.parametrize(
    ("changes", "ready", "away"),
    [
        pytest.param(((0.0, 3),), 2, 1, id="one of three"),
        pytest.param(((0.0, 3),), 3, 0, id="none"),
        pytest.param(((0.0, 3), (150.0, 8)), 3, 0, id="five were added, and have time to start"),
        pytest.param(((0.0, 3), (150.0, 8)), 2, 1, id="five were added, and one is away"),
        pytest.param(((0.0, 8), (150.0, 3)), 3, 0, id="five were removed"),
        pytest.param(((150.0, 3),), 2, 0, id="it is not known how many were ready"),
        pytest.param((), 2, 0, id="nothing is known"),
    ],
)
def test_replicas_are_away_that_were_requested_a_start_ago(
    changes: tuple[tuple[float, int], ...], ready: int, away: int
) -> None:
    assert away_for(changes, ready, 200.0, 95.0) == away


@pytest.mark.parametrize(
    ("arrived", "away", "missed", "enough"),
    [
        pytest.param(1280.0, 1, False, 4, id="one replaces the one that is away"),
        pytest.param(1280.0, 0, True, 3, id="it is back: three carry the load again"),
        pytest.param(1280.0, 0, False, None, id="none was away: saturation has another cause"),
        pytest.param(1600.0, 1, False, None, id="a quarter more arrives than three carried"),
    ],
)
def test_what_replicas_carried_before_is_enough(
    arrived: float, away: int, missed: bool, enough: int | None
) -> None:
    usual = load(ready=3, arrived=1280.0, answered=1000.0, standing_queue=0.0)
    carried = Carried().observe(usual, 160.0, 30.0, 0)
    assert carried == Carried(ready=3, rate_rps=160.0)
    if missed:
        carried = carried.observe(load(), 160.0, 30.0, 1)
    now = load(arrived=arrived, answered=1280.0)
    carried = carried.observe(now, 160.0, 30.0, away)
    assert carried.enough(now, away) == enough


def test_rollout_asks_for_one_replica_more_and_not_for_half_of_them_again() -> None:
    """One of four is replaced at a time; the others are saturated, and arrivals are as before."""
    service = Service(rate_rps=29.0, replicas=4, load_s=60.0, policy=policy(max_replicas=40))
    service.run(120)
    assert service.replicas == 4
    service.rolling = True
    rules, most = set(), 0
    for _ in range(4):
        service.born.pop(next(iter(service.born)))
        service.scale(service.replicas)
        for _ in range(31):
            service.waiting.update(
                (uid, max(15.0, service.waiting.get(uid, 0.0))) for uid in service.ready()
            )
            decision = service.tick()
            rules |= {one.rule for one in decision.recommendations}
            most = max(most, decision.replicas)
    assert Reason.HIDDEN_DEMAND not in rules
    assert most <= 5
    assert any(
        after > before for before, after in pairwise(one.replicas for one in service.decisions)
    )
