"""A change of routing decides nothing until it has been measured."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headroom.scaling.latency.correction import Correction
from headroom.scaling.state.routing_transition import RoutingTransition
from headroom.scaling.values.policy import Routing
from support.fakes_scaling import Service, policy

RANDOM, LEAST = Routing.RANDOM, Routing.LEAST_IN_FLIGHT
CONSTANT_S = 300.0
OLD = Correction(logarithm=0.5, learned_s=900.0)


def switched(now_s: float = 100.0) -> RoutingTransition:
    first, _ = RoutingTransition().observe(RANDOM, OLD, 0.0, CONSTANT_S)
    routing_transition, correction = first.observe(LEAST, OLD, now_s, CONSTANT_S)
    assert correction == Correction()
    return routing_transition


def test_routing_found_at_the_start_is_no_change() -> None:
    routing_transition, correction = RoutingTransition().observe(LEAST, OLD, 0.0, CONSTANT_S)
    assert (routing_transition.former, correction) == (None, OLD)
    assert routing_transition.effective_routing(LEAST, OLD) == (LEAST, OLD.factor)


def test_former_routing_decides_with_its_own_correction() -> None:
    learning = Correction(logarithm=-0.4, learned_s=299.0)
    routing_transition, kept = switched().observe(LEAST, learning, 101.0, CONSTANT_S)
    assert kept == learning
    assert routing_transition.effective_routing(LEAST, learning) == (RANDOM, OLD.factor)


def test_new_routing_decides_once_corrected() -> None:
    learned = Correction(logarithm=-0.4, learned_s=300.0)
    routing_transition, kept = switched().observe(LEAST, learned, 700.0, CONSTANT_S)
    assert routing_transition.effective_routing(LEAST, kept) == (LEAST, learned.factor)


@pytest.mark.parametrize(("after_s", "routing"), [(1799.5, RANDOM), (1800.0, LEAST)])
def test_routing_transition_without_requests_ends_after_half_an_hour(
    after_s: float, routing: Routing
) -> None:
    routing_transition, kept = switched().observe(LEAST, Correction(), 100.0 + after_s, CONSTANT_S)
    assert routing_transition.effective_routing(LEAST, kept)[0] is routing


def test_routing_changed_back_restores_its_correction() -> None:
    routing_transition, kept = switched().observe(
        RANDOM, Correction(learned_s=50.0), 150.0, CONSTANT_S
    )
    assert kept == OLD
    assert routing_transition == RoutingTransition(seen=RANDOM)


def test_third_routing_keeps_the_first_in_effect() -> None:
    routing_transition, kept = switched().observe(Routing.STICKY, Correction(), 150.0, CONSTANT_S)
    assert routing_transition.effective_routing(Routing.STICKY, kept) == (RANDOM, OLD.factor)


@pytest.mark.parametrize(("before", "after"), [(RANDOM, LEAST), (LEAST, RANDOM)])
def test_routing_change_alone_keeps_the_replicas(before: Routing, after: Routing) -> None:
    service = Service(rate_rps=60.0, replicas=8, policy=policy(routing=before))
    service.run(240)
    stood = service.replicas
    service.policy = replace(service.policy, routing=after)
    service.run(200)
    assert service.replicas == stood
    service.run(2000)
    assert service.state.routing_transition == RoutingTransition(seen=after)
