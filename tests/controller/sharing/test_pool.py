"""A pool over time: a scheduler that places fitting pods, services that request their share."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headroom.controller.sharing.pool import (
    FORGET_AFTER_S,
    GIVE_BACK_AFTER_S,
    IN_VAIN_AFTER_S,
    RETRIED_AFTER_S,
    Pool,
)
from headroom.controller.sharing.pool_member import ATTENDED_S, HOLD_S, Seen
from headroom.scaling.accelerator_allocation import Demand

TICK_S = 2.0


@dataclass
class Service:
    """One service: desired, current and terminating replicas, and when they are gone."""

    name: str
    desired: int
    priority: int = 0
    floor: int = 1
    size: int = 1
    allocated: int = 0
    asked: int = 0
    leaving_s: list[float] = field(default_factory=list)
    history: list[int] = field(default_factory=list)


@dataclass
class Plant:
    """Nodes of equal size; a replica stands on one. Services tick one after the other."""

    services: list[Service]
    nodes: int
    node_size: int = 1
    drain_s: float = 10.0
    pool: Pool = field(default_factory=Pool)
    now_s: float = 1000.0

    def __getitem__(self, name: str) -> Service:
        return next(one for one in self.services if one.name == name)

    def run(self, seconds: float) -> None:
        for _ in range(int(seconds / TICK_S)):
            for one in self.services:
                self._tick(one)
            self.now_s += TICK_S

    def allocated(self) -> dict[str, int]:
        return {one.name: one.allocated for one in self.services}

    def _tick(self, one: Service) -> None:
        for other in self.services:
            other.leaving_s = [at_s for at_s in other.leaving_s if at_s > self.now_s]
            self._place(other)
        grant = self.pool.allocation(one.name)
        one.asked = max(
            one.floor, one.desired if grant is None else min(one.desired, grant.replicas)
        )
        leave = max(0, one.allocated - one.asked)
        one.allocated -= leave
        one.leaving_s += [self.now_s + self.drain_s] * leave
        self._place(one)
        one.history.append(one.allocated)
        demand = Demand(
            name=one.name,
            priority=one.priority,
            desired=max(one.floor, one.desired),
            allocated=one.allocated,
            floor=one.floor,
            accelerators=one.size,
        )
        seen = Seen(
            title=one.name,
            demand=demand,
            leaving=len(one.leaving_s),
            refused=one.asked - one.allocated,
        )
        self.pool.note(seen, self.now_s)

    def _place(self, one: Service) -> None:
        while one.allocated < one.asked and self._fits(one.size):
            one.allocated += 1

    def _fits(self, size: int) -> bool:
        """Small replicas are spread, one node after the other: the worst for a large one."""
        used = [0] * self.nodes
        for other in sorted(self.services, key=lambda one: -one.size):
            for _ in range(other.allocated + len(other.leaving_s)):
                used[used.index(min(used))] += other.size
        return bool(used) and min(used) + size <= self.node_size


def _full(*, drain_s: float = 10.0) -> Plant:
    """Six accelerators: `high` has 2 of the 4 that it wants, `low` has 4 of 5."""
    services = [
        Service("high", desired=2, priority=10),
        Service("low", desired=4),
    ]
    plant = Plant(services, nodes=6, drain_s=drain_s)
    plant.run(60)
    assert plant.allocated() == {"high": 2, "low": 4}
    plant["low"].desired = 5
    plant["high"].desired = 4
    return plant


def test_shortage_preempts_after_the_hold() -> None:
    plant = _full()
    plant.run(HOLD_S - 2)
    assert plant.allocated() == {"high": 2, "low": 4}
    plant.run(6)
    assert plant["low"].allocated == 2
    assert plant.pool.preempted_by("high") == "low (priority 0) yields 2"
    plant.run(12)
    assert plant.allocated() == {"high": 4, "low": 2}
    assert plant.pool.preempted_by("high") == ""
    grant = plant.pool.allocation("low")
    assert grant
    assert (grant.replicas, grant.preempted_by) == (2, "high (priority 10)")


@pytest.mark.parametrize("drain_s", [0.0, 10.0, 120.0, 900.0])
def test_shortage_preempts_only_once(drain_s: float) -> None:
    plant = _full(drain_s=drain_s)
    plant.run(HOLD_S + drain_s + 60)
    assert plant.allocated() == {"high": 4, "low": 2}
    assert min(plant["low"].history[30:]) == 2


def test_short_shortage_preempts_nothing() -> None:
    plant = _full()
    for _ in range(10):
        plant["high"].desired = 4
        plant.run(HOLD_S - 6)
        plant["high"].desired = 2
        plant.run(6)
    assert plant["low"].history[30:] == [4] * len(plant["low"].history[30:])


def test_free_accelerators_are_given_back() -> None:
    plant = _full()
    plant.run(60)
    assert plant.allocated() == {"high": 4, "low": 2}
    plant["high"].desired = 3
    plant.run(GIVE_BACK_AFTER_S - 10)
    assert plant["low"].allocated == 2
    plant["high"].desired = 4  # a dip: the place is still free
    plant.run(4)
    assert plant.allocated() == {"high": 4, "low": 2}
    plant["high"].desired = 3
    plant.run(GIVE_BACK_AFTER_S + 20)
    assert plant.allocated() == {"high": 3, "low": 3}


def test_yielding_service_asks_again_after_ten_minutes() -> None:
    plant = _full()
    plant.run(60)
    plant.run(FORGET_AFTER_S)
    assert plant.pool.allocation("low") is None
    assert plant["low"].asked == 5
    assert plant.allocated() == {"high": 4, "low": 2}
    plant.nodes = 8
    plant.run(10)
    assert plant.allocated() == {"high": 4, "low": 4}


def test_unused_yielded_accelerators_are_given_back() -> None:
    """A replica of 2 on nodes of 2 that small ones share: two free ones lie apart."""
    big = Service("big", desired=1, priority=10, floor=1, size=2)
    plant = Plant([Service("low", desired=6), big], nodes=3, node_size=2)
    plant["low"].asked = 6
    plant["low"].allocated = 6
    plant.run(HOLD_S + 20)
    assert plant.allocated() == {"low": 4, "big": 0}
    plant.run(IN_VAIN_AFTER_S + GIVE_BACK_AFTER_S)
    assert plant.allocated() == {"low": 6, "big": 0}
    before = len(plant["low"].history)
    plant.run(RETRIED_AFTER_S - 120)
    assert set(plant["low"].history[before:]) == {6}
    plant.run(240)
    assert min(plant["low"].history[before:]) == 4, "after half an hour it is tried again"


def test_service_without_ticks_yields_nothing() -> None:
    plant = _full()
    plant.services.append(Service("held", desired=3, allocated=3, asked=3))
    plant.nodes = 9
    plant["high"].desired = 2
    plant.run(10)
    lost = plant.services.pop()
    plant.nodes = 6  # its three are beyond the reach of the others
    plant.run(ATTENDED_S)
    plant["high"].desired = 5
    plant.run(60)
    assert (plant.allocated(), lost.allocated) == ({"high": 5, "low": 1}, 3)


def test_middle_priority_yields_up_and_preempts_down() -> None:
    plant = Plant(
        [
            Service("high", desired=1, priority=10),
            Service("middle", desired=3, priority=5),
            Service("low", desired=4),
        ],
        nodes=8,
    )
    plant.run(60)
    assert plant.allocated() == {"high": 1, "middle": 3, "low": 4}
    plant["high"].desired = 3
    plant.run(60)
    assert plant.allocated() == {"high": 3, "middle": 3, "low": 2}
    plant["middle"].desired = 5  # it may not ask, and is short all the same
    plant.run(HOLD_S + GIVE_BACK_AFTER_S + 20)
    assert plant.allocated() == {"high": 3, "middle": 4, "low": 1}
    plant["high"].desired = 6
    plant.run(60)
    assert plant.allocated() == {"high": 6, "middle": 1, "low": 1}


_SERVICES = st.lists(
    st.builds(
        Service,
        name=st.sampled_from("abcd"),
        desired=st.integers(0, 5),
        priority=st.integers(0, 2),
        floor=st.integers(1, 2),
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda one: one.name,
)


@given(_SERVICES, st.integers(1, 12), st.sampled_from([0.0, 10.0, 60.0]))
@settings(max_examples=40)
def test_steady_load_satisfies_priorities_in_order(
    services: list[Service], nodes: int, drain_s: float
) -> None:
    plant = Plant(services, nodes=nodes, drain_s=drain_s)
    plant.run(420)
    settled = plant.allocated()
    plant.run(200)
    assert plant.allocated() == settled
    for one in services:
        if one.allocated < max(one.desired, one.floor):
            lower = [other for other in services if other.priority < one.priority]
            assert all(other.allocated <= other.floor for other in lower)


@given(_SERVICES, st.integers(1, 12))
@settings(max_examples=40)
def test_service_shrinks_only_for_a_higher_priority(services: list[Service], nodes: int) -> None:
    plant = Plant(services, nodes=nodes)
    before = plant.allocated()
    for _ in range(150):
        plant.run(TICK_S)
        for one in services:
            if one.allocated < before[one.name]:
                assert one.allocated >= one.floor
                assert any(other.priority > one.priority for other in services)
        before = plant.allocated()
