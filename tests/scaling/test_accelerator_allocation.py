"""Allocation of the last accelerators: floors, then classes, then fairness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headroom.scaling.accelerator_allocation import Demand, share


def _demand(name: str, **numbers: int) -> Demand:
    return Demand(name=name, **numbers)


HIGH = _demand("high", priority=10, desired=4, allocated=2, floor=1, overdue=2)
LOW = _demand("low", desired=5, allocated=4, floor=1)


@pytest.mark.parametrize(
    ("why", "demands", "accelerators", "allocations"),
    [
        ("an unknown pool withholds nothing", [HIGH, LOW], None, {"high": 4, "low": 5}),
        ("enough for all", [HIGH, LOW], 9, {"high": 4, "low": 5}),
        ("what presses takes from a lower class", [HIGH, LOW], 6, {"high": 4, "low": 2}),
        (
            "a short shortage takes no allocated replica",
            [replace(HIGH, overdue=0), LOW],
            6,
            {"high": 2, "low": 4},
        ),
        (
            "only as many as press",
            [replace(HIGH, overdue=1), LOW],
            6,
            {"high": 3, "low": 3},
        ),
        (
            "down to the floor and no further",
            [replace(HIGH, desired=9, overdue=7), replace(LOW, floor=3)],
            6,
            {"high": 3, "low": 3},
        ),
        (
            "an equal class keeps its replicas",
            [replace(HIGH, priority=0), LOW],
            6,
            {"high": 2, "low": 4},
        ),
        (
            "a higher class keeps its replicas, even while a floor below is missing",
            [
                _demand("high", priority=10, desired=6, allocated=6, floor=1),
                _demand("low", desired=1, floor=1, overdue=1),
            ],
            6,
            {"high": 6, "low": 0},
        ),
        (
            "what is free goes to floors first, whatever the class",
            [
                _demand("high", priority=10, desired=6, allocated=2, floor=1),
                _demand("low", desired=2, floor=1),
            ],
            4,
            {"high": 3, "low": 1},
        ),
        (
            # 7 of the 9 that stand remain. In order of shares: 0/3, 0/8, 1/8, 2/8, 1/3, 3/8, 4/8,
            # then 5/8 and 2/3 (a's sixth and b's third), which go to the class above.
            "of a class the better satisfied yields first",
            [
                _demand("high", priority=1, desired=2, overdue=2),
                _demand("a", desired=8, allocated=6),
                _demand("b", desired=3, allocated=3),
            ],
            9,
            {"high": 2, "a": 5, "b": 2},
        ),
        (
            # 0/2 and 0/6 tie and the name decides; then 1/6, 2/6, and 3/6 ties with 1/2.
            "of a class the worse satisfied gets the next free one",
            [_demand("a", desired=2), _demand("b", desired=6)],
            5,
            {"a": 2, "b": 3},
        ),
        (
            "a replica too large for the whole class below takes nothing in vain",
            [_demand("high", priority=9, desired=1, accelerators=8, overdue=1), LOW],
            6,
            {"high": 0, "low": 5},
        ),
        (
            "large replicas go whole",
            [
                _demand("high", priority=9, desired=1, overdue=1),
                _demand("low", desired=2, allocated=2, accelerators=4),
            ],
            8,
            {"high": 1, "low": 1},
        ),
        ("nodes that are gone leave the floors", [HIGH, LOW], 3, {"high": 2, "low": 1}),
        ("no demand", [], 6, {}),
    ],
)
def test_share_of_the_last_accelerators_follows_the_order(
    why: str, demands: Sequence[Demand], accelerators: int | None, allocations: dict[str, int]
) -> None:
    assert share(demands, accelerators) == allocations
    assert share(list(reversed(demands)), accelerators) == allocations


@pytest.mark.parametrize("wrong", [{"desired": -1}, {"overdue": -1}, {"accelerators": 0}])
def test_demand_with_a_wrong_count_is_rejected(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="a demand must have replicas >= 0"):
        _demand("a", **{"desired": 1, **wrong})


def _pool(sizes: st.SearchStrategy[int]) -> st.SearchStrategy[list[Demand]]:
    count = st.integers(0, 6)
    return st.lists(
        st.builds(
            Demand,
            name=st.sampled_from("abcdef"),
            priority=st.integers(-1, 2),
            desired=count,
            allocated=count,
            floor=count,
            accelerators=sizes,
            overdue=count,
        ),
        max_size=5,
        unique_by=lambda demand: demand.name,
    )


_ALIKE = _pool(st.just(1))
_MIXED = _pool(st.integers(1, 4))


def _held(demands: Sequence[Demand]) -> int:
    return sum(one.accelerators * one.allocated for one in demands)


@given(_MIXED, st.integers(0, 80))
@settings(max_examples=300)
def test_share_never_exceeds_demand_or_pool(demands: list[Demand], accelerators: int) -> None:
    allocations = share(demands, accelerators)
    assert all(0 <= allocations[one.name] <= one.desired for one in demands)
    assert sum(one.accelerators * allocations[one.name] for one in demands) <= accelerators
    for one in demands:  # no accelerator stays free that a service could use
        used = sum(other.accelerators * allocations[other.name] for other in demands)
        assert allocations[one.name] == one.desired or one.accelerators > accelerators - used


@given(_ALIKE, st.integers(0, 40))
@settings(max_examples=300)
def test_share_with_more_accelerators_never_shrinks(
    demands: list[Demand], accelerators: int
) -> None:
    before, after = share(demands, accelerators), share(demands, accelerators + 1)
    assert all(after[name] >= allocation for name, allocation in before.items())


@given(_ALIKE, st.integers(0, 40), st.integers(0, 4), st.integers(1, 3))
@settings(max_examples=300)
def test_share_with_a_higher_priority_never_shrinks(
    demands: list[Demand], accelerators: int, which: int, by: int
) -> None:
    if not demands:
        return
    one = demands[which % len(demands)]
    raised = [replace(d, priority=d.priority + by) if d is one else d for d in demands]
    assert share(raised, accelerators)[one.name] >= share(demands, accelerators)[one.name]


@given(_MIXED, st.integers(0, 8))
@settings(max_examples=500)
def test_allocated_replica_is_lost_only_to_an_overdue_higher_class(
    demands: list[Demand], free: int
) -> None:
    allocations = share(demands, _held(demands) + free)
    for one in demands:
        kept = min(one.allocated, one.desired)
        if allocations[one.name] >= kept:
            continue
        assert allocations[one.name] >= min(kept, one.floor)
        assert any(
            other.priority > one.priority
            and other.overdue
            and allocations[other.name] > other.allocated
            for other in demands
        )


@given(_MIXED, st.integers(0, 40))
@settings(max_examples=200)
def test_share_of_settled_services_stays_the_same(demands: list[Demand], free: int) -> None:
    """An allocation that was carried out is allocated again: nothing oscillates."""
    accelerators = _held(demands) + free
    allocations = share(demands, accelerators)
    settled = [replace(one, allocated=allocations[one.name]) for one in demands]
    assert share([replace(one, overdue=0) for one in settled], accelerators) == allocations
