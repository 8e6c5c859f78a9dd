"""A change of routing decides nothing until it has been measured."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headroom.scaling.latency.correction import Correction
from headroom.scaling.routing_transition import Rerouting
from headroom.scaling.values import Routing
from scaling_world import Service, policy

RANDOM, LEAST = Routing.RANDOM, Routing.LEAST_IN_FLIGHT
CONSTANT_S = 300.0
OLD = Correction(logarithm=0.5, learnt_s=900.0)


def switched(now_s: float = 100.0) -> Rerouting:
    first, _ = Rerouting().observe(RANDOM, OLD, 0.0, CONSTANT_S)
    rerouting, correction = first.observe(LEAST, OLD, now_s, CONSTANT_S)
    assert correction == Correction()
    return rerouting


def test_what_is_found_at_a_start_is_no_change() -> None:
    rerouting, correction = Rerouting().observe(LEAST, OLD, 0.0, CONSTANT_S)
    assert (rerouting.former, correction) == (None, OLD)
    assert rerouting.acting(LEAST, OLD) == (LEAST, OLD.kappa)


def test_the_former_tables_decide_with_their_own_correction() -> None:
    learning = Correction(logarithm=-0.4, learnt_s=299.0)
    rerouting, kept = switched().observe(LEAST, learning, 101.0, CONSTANT_S)
    assert kept == learning
    assert rerouting.acting(LEAST, learning) == (RANDOM, OLD.kappa)


def test_the_new_tables_decide_once_corrected() -> None:
    learnt = Correction(logarithm=-0.4, learnt_s=300.0)
    rerouting, kept = switched().observe(LEAST, learnt, 700.0, CONSTANT_S)
    assert rerouting.acting(LEAST, kept) == (LEAST, learnt.kappa)


@pytest.mark.parametrize(("after_s", "routing"), [(1799.5, RANDOM), (1800.0, LEAST)])
def test_without_requests_it_ends_after_half_an_hour(after_s: float, routing: Routing) -> None:
    rerouting, kept = switched().observe(LEAST, Correction(), 100.0 + after_s, CONSTANT_S)
    assert rerouting.acting(LEAST, kept)[0] is routing


def test_a_change_back_takes_up_the_former_correction() -> None:
    rerouting, kept = switched().observe(RANDOM, Correction(learnt_s=50.0), 150.0, CONSTANT_S)
    assert kept == OLD
    assert rerouting == Rerouting(seen=RANDOM)


def test_a_third_routing_leaves_the_first_in_charge() -> None:
    rerouting, kept = switched().observe(Routing.STICKY, Correction(), 150.0, CONSTANT_S)
    assert rerouting.acting(Routing.STICKY, kept) == (RANDOM, OLD.kappa)


@pytest.mark.parametrize(("before", "after"), [(RANDOM, LEAST), (LEAST, RANDOM)])
def test_a_switch_moves_no_replica_by_itself(before: Routing, after: Routing) -> None:
    service = Service(rate_rps=60.0, replicas=8, policy=policy(routing=before))
    service.run(240)
    stood = service.replicas
    service.policy = replace(service.policy, routing=after)
    service.run(200)
    assert service.replicas == stood
    service.run(2000)
    assert service.state.rerouting == Rerouting(seen=after)
