"""Limits in a closed loop: warming replicas, unknown cost, allocations, reasons."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from headroom.scaling import Allocation, Direction, PodSample, PodState, Reason
from headroom.scaling.limits.cold_start import ColdStarts
from support.fakes_scaling import Service, policy


def _over_asked(*measured_s: float, load_s: float = 500.0) -> Service:
    """Two ready replicas at 5/s, and those for a surge of ten seconds still warming."""
    slow = policy(scale_down_stabilization_s=300.0)
    service = Service(rate_rps=12.0, replicas=2, policy=slow, load_s=load_s)
    service.state = replace(service.state, cold_starts=ColdStarts(seconds=measured_s))
    service.run(310)
    assert service.replicas == 2
    service.rate_rps = 40.0
    service.run(10)
    service.rate_rps = 5.0
    service.run(2)
    assert service.replicas > 3
    assert service.decisions[-1].counts.ready == 2
    return service


def _next_change_s(service: Service) -> float:
    """Seconds from the first tick that needs fewer replicas until one is removed."""
    before, begun_s = service.replicas, None
    while service.replicas == before:
        decision = service.tick()
        if begun_s is None and service.state.needed_high.entries[-1][1] < before:
            begun_s = decision.time_s
    assert service.replicas < before
    assert begun_s is not None
    return service.now_s - begun_s


@pytest.mark.parametrize("measured_s", [(), (290.0,)], ids=["none measured", "shorter before"])
def test_warming_replicas_not_needed_wait_for_their_start(measured_s: tuple[float, ...]) -> None:
    service = _over_asked(*measured_s)
    assert _next_change_s(service) == pytest.approx(500.0, abs=12.0)
    assert service.state.cold_starts.seconds[-1] == pytest.approx(500.0, abs=2.0)


def test_replicas_not_needed_that_started_in_time_wait_for_the_hold() -> None:
    service = _over_asked(290.0, load_s=250.0)
    assert _next_change_s(service) == pytest.approx(300.0, abs=2.0)


@dataclass
class Unpriced(Service):
    """Servers that do not say what a batch costs, and have not shown it either."""

    max_batch: int | None = None
    priced: bool = False

    def samples(self) -> tuple[PodSample, ...]:
        if self.priced:
            return super().samples()
        return tuple(replace(s, cost=None, max_batch=self.max_batch) for s in super().samples())


@pytest.mark.parametrize("max_batch", [None, 4], ids=["no claim", "no batch yet"])
@pytest.mark.parametrize("rate_rps", [0.0, 2.0])
def test_unknown_cost_never_scales_down(rate_rps: float, max_batch: int | None) -> None:
    service = Unpriced(rate_rps=rate_rps, replicas=6, max_batch=max_batch)
    decision = service.run(600)
    assert {decision.replicas for decision in service.decisions} == {6}
    assert decision.cost is None
    assert decision.reason is Reason.COST_UNKNOWN


@pytest.mark.parametrize(
    ("scrape", "priced", "reason"),
    [
        (True, False, Reason.COST_UNKNOWN),
        (False, True, Reason.METRICS_MISSING),
        (False, False, Reason.METRICS_MISSING),
    ],
)
def test_reason_at_the_floor_without_metrics_or_cost_is_not_min_replicas(
    scrape: bool, priced: bool, reason: Reason
) -> None:
    service = Unpriced(rate_rps=2.0, replicas=1, priced=priced, scrape=scrape)
    decision = service.run(60)
    assert (decision.replicas, decision.reason) == (1, reason)


def test_cost_that_becomes_unknown_keeps_replicas() -> None:
    service = Unpriced(rate_rps=45.0, replicas=6, priced=True)
    service.run(100)
    service.rate_rps, service.priced = 0.0, False
    service.run(300)
    assert service.replicas == 6
    service.priced = True
    service.run(300)
    assert service.replicas == 1


def test_ready_replicas_of_a_surge_are_kept_for_the_hold() -> None:
    """The replicas for a surge become ready; from then on they count as any other."""
    service = _over_asked()
    service.load_s = 0.0  # all become ready at the next tick
    service.tick()
    decision = service.decisions[-1]
    assert decision.counts.ready == service.replicas
    assert all(pod.state is PodState.READY for pod in service.pods())
    assert _next_change_s(service) > 200.0


HIGHER = "shop/ranker (priority 10)"


def test_allocation_takes_effect_without_a_hold() -> None:
    service = Service(rate_rps=30.0, replicas=5)
    service.run(60)
    current = service.replicas
    assert current >= 4
    service.allocation = Allocation(replicas=2, preempted_by=HIGHER)
    decision = service.tick()
    assert (decision.replicas, decision.direction) == (2, Direction.DOWN)
    assert decision.reason is Reason.YIELDED_TO_PRIORITY
    assert (
        f"{HIGHER} gets the last accelerators (2 instead of {decision.alone})" in decision.message
    )
    assert "no more were needed" not in decision.message
    service.run(60)  # its queue grows meanwhile, and does not swell what it asks for
    decision = service.decisions[-1]
    assert (decision.replicas, decision.direction) == (2, Direction.NONE)
    assert decision.reason is Reason.YIELDED_TO_PRIORITY
    assert decision.alone <= current
    service.allocation = None
    assert service.tick().replicas >= decision.alone
    assert service.state.flaps.recent == ()  # it did not misjudge anything


@pytest.mark.parametrize(
    ("allocation", "least", "replicas"),
    [
        (0, 1, 1),
        (1, 3, 3),  # a floor is never withheld
        (3, 1, 3),
        (9, 1, 4),  # more than it wants
    ],
)
def test_allocation_is_the_maximum_and_the_floor_the_minimum(
    allocation: int, least: int, replicas: int
) -> None:
    service = Service(rate_rps=30.0, replicas=4, policy=policy(min_replicas=least, max_replicas=4))
    service.run(60)
    service.allocation = Allocation(replicas=allocation, preempted_by=HIGHER)
    decision = service.tick()
    assert decision.replicas == replicas
    assert decision.alone == 4


def test_allocation_takes_effect_without_metrics() -> None:
    service = Service(rate_rps=30.0, replicas=4)
    service.run(60)
    service.scrape, service.allocation = False, Allocation(replicas=2, preempted_by=HIGHER)
    assert service.run(60).replicas == 2


def test_reason_while_the_hold_slows_a_scale_down_is_the_hold() -> None:
    service = Service(rate_rps=45.0, replicas=6, policy=policy(scale_down_stabilization_s=60.0))
    service.run(120)
    for _ in range(20):  # each tick of the fall enters the hold with fewer replicas
        service.rate_rps -= 2.0
        service.run(10)
    service.rate_rps = 1.0
    service.run(200)
    lowered = [one for one in service.decisions if one.direction is Direction.DOWN]
    held = [one for one in lowered if one.replicas > 1]
    assert len(held) >= 3
    assert Reason.SCALE_DOWN_STABILIZED in {one.reason for one in held}
    assert Reason.MIN_REPLICAS not in {one.reason for one in held}
    assert lowered[-1].replicas == 1
    assert "scale-down window" in held[-1].message


@pytest.mark.parametrize("ceiling", [1e-310, 1e-300])
def test_ceiling_near_zero_requests_the_most_replicas(ceiling: float) -> None:
    service = Service(rate_rps=9.0, policy=policy(utilization_ceiling=ceiling, max_replicas=7))
    assert service.run(120).replicas == 7
