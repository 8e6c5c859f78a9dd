"""Clients in a run: waiting requests, retries, users, and their effect on the autoscaler."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from headroom.scaling.values.policy import Routing
from headroom.simulator.autoscaler import GroundTruth
from headroom.simulator.capacity import capacity_rps
from headroom.simulator.clients import Clients
from headroom.simulator.closed_loop import closed_loop
from headroom.simulator.outcome import Outcome
from headroom.simulator.plant import Server
from headroom.simulator.run import simulate
from headroom.simulator.scenario import Scenario
from simulator.fakes_fleet import spec
from simulator.fakes_plant import poisson
from simulator.runs_by_hand import Direct, Scheduled, every, run, same


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


def test_queue_in_front_reports_what_it_rejected_to_each_direct_scraper() -> None:
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
