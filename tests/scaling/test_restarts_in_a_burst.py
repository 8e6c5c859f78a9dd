"""An operator that restarts in a burst: the first pages are compared with the rate of before."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pytest

from headroom.scaling import Freshness, Observation, State, decide
from support.fakes_scaling import Service, policy, ready_pod, sample

BEFORE_RPS, BURST_RPS, REPLICAS = 20.0, 80.0, 3
NOW_S, KNOWN_AFTER_S = 1310.0, 12.0


@dataclass(frozen=True, kw_only=True)
class Restart:
    """A restart of the operator of a service with this load before and after it."""

    before_rps: float = BEFORE_RPS
    after_rps: float = BURST_RPS
    away_s: float = 0.0
    """Time without an operator; the time of the checkpoint is before that."""

    def service(self) -> Service:
        """Return the service, observed until the restart and by no tick after it."""
        found = Service(
            rate_rps=self.before_rps,
            replicas=REPLICAS,
            load_s=30.0,
            policy=policy(max_replicas=40),
        )
        found.run(300)
        assert found.replicas == REPLICAS
        found.state = State.from_checkpoint(json.loads(json.dumps(found.state.to_checkpoint())))
        found.now_s += self.away_s
        found.rate_rps = self.after_rps
        return found


def test_burst_after_a_restart_is_answered_as_fast_as_without_one() -> None:
    service = Restart().service()
    assert service.run(2.0).replicas == REPLICAS, "one page shows no rate"
    asked = [service.tick().replicas for _ in range(3)]
    assert asked[0] > REPLICAS, "two pages and the rate of before show a burst"
    assert asked[1] >= 10, "what arrives needs ten"
    assert service.decisions[-1].signals.arrival_rps.freshness is Freshness.MISSING
    assert max(one.replicas for one in service.decisions[-4:]) <= 18


@pytest.mark.parametrize(
    "restart",
    [
        pytest.param(Restart(after_rps=BEFORE_RPS), id="the load is as before"),
        pytest.param(Restart(after_rps=0.0), id="the load is gone"),
        pytest.param(Restart(after_rps=30.0, away_s=400.0), id="the rate of before is old"),
    ],
)
def test_rate_of_before_a_restart_buys_nothing(restart: Restart) -> None:
    service = restart.service()
    for _ in range(int(KNOWN_AFTER_S / service.tick_s)):
        assert service.tick().replicas == REPLICAS


@pytest.mark.parametrize(("missed", "asks"), [(0.0, True), (0.1, True), (0.6, False)])
def test_excess_is_no_burst_while_many_requests_miss(missed: float, *, asks: bool) -> None:
    """Clients that try again after each miss send more than before, and want no more."""
    state, pods = Restart().service().state, (ready_pod("a", created_s=-900.0),)
    replicas = []
    for number in range(4):
        now_s = NOW_S + 2.0 * number
        arrived = 2.0 * number * BURST_RPS
        page = sample("a", now_s, arrived, missed=missed * arrived)
        seen = Observation(now_s=now_s, current=REPLICAS, pods=pods, samples=(page,))
        decision, state = decide(policy(max_replicas=40), state, seen)
        replicas.append(decision.replicas)
    assert replicas[0] == REPLICAS
    assert (max(replicas) > REPLICAS) is asks


def test_noise_after_a_restart_buys_nothing() -> None:
    chance = np.random.default_rng(7)
    service = Restart(after_rps=BEFORE_RPS).service()
    saved = service.state
    for _ in range(40):
        service.state = State.from_checkpoint(saved.to_checkpoint())
        for _ in range(5):
            service.rate_rps = chance.poisson(2.0 * BEFORE_RPS) / 2.0
            assert service.tick().replicas == REPLICAS
