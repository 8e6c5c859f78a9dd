"""Period of evaluations by number of services, and the turn of each service."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headroom.controller.scheduling import tick_period


@given(st.integers(0, 10_000))
def test_period_is_the_shortest_step_within_the_evaluation_budget(services: int) -> None:
    """At most 1000 evaluations in 15 s, in steps of half a second, never below the tick."""
    period_s = tick_period.period_s(2.0, services)
    assert period_s >= 2.0
    assert period_s % 0.5 == 0.0
    assert services / period_s <= 1000 / 15.0 + 1e-9
    assert period_s == 2.0 or services / (period_s - 0.5) > 1000 / 15.0


def test_period_for_a_thousand_services_is_fifteen_seconds() -> None:
    assert (tick_period.period_s(2.0, 133), tick_period.period_s(2.0, 1000)) == (2.0, 15.0)


def test_longer_configured_tick_is_kept() -> None:
    assert tick_period.period_s(60.0, 1000) == 60.0


@settings(max_examples=200)
@given(
    st.floats(0.0, 1e6),
    st.sampled_from([0.5, 2.0, 7.5, 15.0]),
    st.floats(0.0, 1.0, exclude_max=True),
)
def test_slots_are_one_period_apart(due_s: float, period_s: float, phase: float) -> None:
    first_s = tick_period.next_slot_s(due_s, period_s, phase)
    assert 0.499 * period_s <= first_s - due_s <= 1.501 * period_s
    second_s = tick_period.next_slot_s(first_s, period_s, phase)
    assert second_s - first_s == pytest.approx(period_s, abs=1e-6)


def test_children_of_many_services_are_checked_less_often() -> None:
    assert [tick_period.children_every_s(services) for services in (1, 100, 1000)] == [
        30.0,
        30.0,
        300.0,
    ]


def test_startup_delay_is_zero_for_few_services() -> None:
    assert tick_period.startup_delay_s("uid", 100) == 0.0
    starts_s = [tick_period.startup_delay_s(f"uid-{number}", 1000) for number in range(1000)]
    assert 0.0 <= min(starts_s) < 10.0
    assert 260.0 < max(starts_s) <= 270.0
