"""How often a service has its turn among so many, and when."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headroom.controller.scheduling import tick_period


@pytest.mark.parametrize(
    ("services", "expected_s"),
    [
        (0, 2.0),
        (1, 2.0),
        (100, 2.0),
        (133, 2.0),
        (134, 2.5),
        (500, 7.5),
        (1000, 15.0),
        (5000, 75.0),
    ],
)
def test_the_period_stretches_with_the_services(services: int, expected_s: float) -> None:
    assert tick_period.period_s(2.0, services) == expected_s


def test_a_longer_tick_that_was_asked_for_stands() -> None:
    assert tick_period.period_s(60.0, 1000) == 60.0


@settings(max_examples=200)
@given(
    st.floats(0.0, 1e6),
    st.sampled_from([0.5, 2.0, 7.5, 15.0]),
    st.floats(0.0, 1.0, exclude_max=True),
)
def test_slots_lie_a_period_apart_however_it_began(
    due_s: float, period_s: float, phase: float
) -> None:
    first_s = tick_period.next_slot_s(due_s, period_s, phase)
    assert 0.499 * period_s <= first_s - due_s <= 1.501 * period_s
    second_s = tick_period.next_slot_s(first_s, period_s, phase)
    assert second_s - first_s == pytest.approx(period_s, abs=1e-6)


def test_children_of_many_services_are_looked_at_less_often() -> None:
    assert [tick_period.children_every_s(services) for services in (1, 100, 1000)] == [
        30.0,
        30.0,
        300.0,
    ]


def test_a_new_process_has_time_for_the_children_only_where_services_are_many() -> None:
    assert tick_period.startup_delay_s("uid", 100) == 0.0
    starts_s = [tick_period.startup_delay_s(f"uid-{number}", 1000) for number in range(1000)]
    assert 0.0 <= min(starts_s) < 10.0
    assert 260.0 < max(starts_s) <= 270.0
