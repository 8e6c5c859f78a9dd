"""A pool to the second: when a shortage counts, its share, and when it is forgotten."""

from __future__ import annotations

import pytest

from headroom.controller.sharing.pool import Pool
from headroom.controller.sharing.pool_member import Member, Seen
from headroom.scaling.accelerator_allocation import Demand


def seen(name: str, desired: int, allocated: int, **more: int) -> Seen:
    leaving, refused = more.pop("leaving", 0), more.pop("refused", 0)
    demand = Demand(name=name, desired=desired, allocated=allocated, **more)
    return Seen(title=name, demand=demand, leaving=leaving, refused=refused)


def short(refused: int = 2, allocated: int = 2) -> Seen:
    return seen("high", 4, allocated, priority=10, refused=refused)


LOW = seen("low", 4, 4, floor=1)


class PoolView:
    """A pool that learns of two services, the lower one first."""

    def __init__(self) -> None:
        self.pool = Pool()

    def at(self, now_s: float, high: Seen, low: Seen = LOW) -> int | None:
        self.pool.note(low, now_s)
        self.pool.note(high, now_s + 0.001)
        grant = self.pool.allocation("low")
        return None if grant is None else grant.replicas

    def every(self, begin_s: int, end_s: int, high: Seen, low: Seen = LOW) -> int | None:
        found = None
        for now_s in range(begin_s, end_s, 2):
            found = self.at(float(now_s), high, low)
        return found


@pytest.mark.parametrize(("asked_s", "overdue"), [(29.9, 0), (30.0, 2), (31.0, 2)])
def test_shortage_begins_after_thirty_seconds(asked_s: float, overdue: int) -> None:
    member = Member(seen=short(), seen_s=100.0)
    for now_s in (100.0, 110.0):
        member.look(short(), now_s, withheld=False)
    assert member.overdue(100.0 + asked_s) == overdue


def test_shortage_is_the_minimum_missing_throughout() -> None:
    member = Member(seen=short(), seen_s=0.0)
    for now_s, refused in ((0.0, 3), (10.0, 1), (20.0, 2), (30.0, 3)):
        member.look(short(refused), now_s, withheld=False)
    assert (member.overdue(30.0), member.overdue(40.0), member.overdue(40.1)) == (1, 1, 2)


def test_shortage_restarts_after_a_tick_without_rejection() -> None:
    member = Member(seen=short(), seen_s=0.0)
    for now_s, refused in ((0.0, 2), (28.0, 0), (30.0, 2)):
        member.look(short(refused), now_s, withheld=False)
    assert member.overdue(59.0) == 0
    member.look(short(2), 60.0, withheld=False)
    assert member.overdue(60.0) == 2


def test_barred_service_is_short_of_its_demand() -> None:
    member = Member(seen=seen("m", 5, 3), seen_s=0.0)
    member.look(seen("m", 5, 3), 0.0, withheld=True)
    assert member.overdue(30.0) == 2
    member.look(seen("m", 5, 3), 31.0, withheld=False)
    assert member.overdue(31.0) == 0


@pytest.mark.parametrize(("silent_s", "floor"), [(59.9, 1), (60.0, 4)])
def test_service_without_tick_for_a_minute_keeps_its_replicas(silent_s: float, floor: int) -> None:
    member = Member(seen=LOW, seen_s=100.0)
    assert member.demand(1, 100.0 + silent_s).floor == floor
    assert member.demand(1, 100.0).overdue == 1


def test_bar_ends_when_less_is_missing() -> None:
    member = Member(seen=short(), seen_s=0.0, barred_until_s=1000.0)
    member.look(short(2), 0.0, withheld=False)
    member.look(short(2), 980.0, withheld=False)
    assert (member.overdue(999.9), member.overdue(1000.0)) == (0, 2)
    member.look(short(1), 990.0, withheld=False)
    assert (member.barred_until_s, member.overdue(990.0)) == (0.0, 1)


def test_held_accelerators_include_terminating_pods() -> None:
    assert seen("a", 9, 3, accelerators=2, leaving=1).held == 8


def test_lower_priority_yields_the_shortage_in_time() -> None:
    view = PoolView()
    assert view.every(0, 30, short()) is None
    assert view.at(30.0, short()) is None  # since its first report, a moment later
    assert view.at(32.0, short()) == 2
    assert view.pool.preempted_by("high") == "low (priority 0) yields 2"
    assert view.pool.preempted_by("low") == ""
    assert view.pool.preempted_by("not in the pool") == ""
    assert len(view.pool) == 2


def test_plan_is_made_at_most_once_a_second() -> None:
    pool = Pool()
    for now_s in (0.0, 29.5, 30.4):
        pool.note(LOW, now_s)
        pool.note(short(), now_s)
    assert pool.allocation("low") is None  # planned at 29.5 s, when nothing pressed yet
    pool.note(LOW, 30.5)
    assert pool.allocation("low") is not None


def test_plan_after_a_clock_went_back_is_made_at_once() -> None:
    view = PoolView()
    view.every(1000, 1040, short())
    assert view.pool.allocation("low") is not None
    view.pool.note(seen("high", 2, 2, priority=10), 900.0)
    assert view.pool.allocation("low") is not None


@pytest.mark.parametrize(("refused_s", "stands"), [(599.9, True), (600.0, False)])
def test_shortage_ends_ten_minutes_after_the_last_rejection(refused_s: float, stands: bool) -> None:
    view = PoolView()
    view.every(0, 40, short())
    settled, yielded = short(0, 4), seen("low", 4, 2, floor=1)
    view.every(40, 630, settled, yielded)
    assert view.pool.allocation("low") is not None
    found = view.at(40.0 + refused_s, settled, yielded)  # planned at 40 s as it was seen before
    assert (found is not None) is stands


def test_rejected_lower_priority_prolongs_no_shortage() -> None:
    view = PoolView()
    middle = seen("middle", 2, 1, priority=5, refused=1)
    settled, yielded = short(0, 4), seen("low", 4, 2, floor=1)
    for now_s in range(0, 660, 2):
        view.pool.note(middle, now_s + 0.002)
        view.at(float(now_s), short() if now_s < 40 else settled, LOW if now_s < 40 else yielded)
        grant = view.pool.allocation("low")
        if now_s >= 40:
            assert grant is not None
            who = "high (priority 10)" if now_s < 640 else "middle (priority 5)"
            assert grant.preempted_by == who, now_s


@pytest.mark.parametrize(("dipped_s", "grant"), [(58.0, 2), (64.0, 3)])
def test_free_accelerator_is_given_back_after_a_minute(dipped_s: float, grant: int) -> None:
    view = PoolView()
    view.every(0, 40, short())
    yielded = seen("low", 4, 2, floor=1)
    view.every(40, 50, short(0, 4), yielded)
    less = seen("high", 3, 3, priority=10)
    found = view.every(50, 52 + int(dipped_s), less, yielded)
    assert found == grant


@pytest.mark.parametrize(("freed_s", "grant"), [(58, 2), (64, None)])
def test_all_free_accelerators_are_given_back_after_a_minute(
    freed_s: int, grant: int | None
) -> None:
    view = PoolView()
    view.every(0, 40, short())
    yielded = seen("low", 4, 2, floor=1)
    view.every(40, 50, short(0, 4), yielded)
    content = seen("high", 2, 2, priority=10)
    assert view.every(50, 52 + freed_s, content, yielded) == grant


@pytest.mark.parametrize(("free_s", "gives_up"), [(116, False), (124, True)])
def test_accelerator_free_for_two_minutes_was_yielded_in_vain(free_s: int, gives_up: bool) -> None:
    view = PoolView()
    view.every(0, 40, short())
    found = view.every(40, 42 + free_s, short(), seen("low", 4, 2, floor=1))
    assert (found is None) is gives_up
    assert bool(view.pool.preempted_by("high")) is not gives_up


def test_accelerator_that_moves_counts_once() -> None:
    """For a tick the sum of what two services hold may be one too many; for 6 s it is not."""
    view = PoolView()
    view.every(0, 40, short())
    moved = seen("low", 4, 3, floor=1)
    for now_s in (40.0, 42.0):
        assert view.at(now_s, short(1, 4), moved) == 2
    assert view.at(44.0, short(0, 4), seen("low", 4, 2, floor=1)) == 2


def test_deleted_service_releases_its_accelerators() -> None:
    view = PoolView()
    view.every(0, 40, short())
    view.pool.forget("high")
    assert view.pool.allocation("low") is None
    assert len(view.pool) == 1
    view.pool.forget("high")
    view.pool.forget("low")
    assert not view.pool
