"""The reserve: spare replicas where a start takes longer than an hour's error budget lasts."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes_scaling import Service, policy
from headroom.scaling import State
from headroom.scaling.limits.cold_start import ColdStarts
from headroom.scaling.promise.error_budget import ErrorBudget
from headroom.scaling.promise.reserve import FADE_S, MOST, Reserve
from headroom.scaling.tuning import Component, Tuning
from headroom.scaling.values.decision import Reason

ALLOWED = 0.05
HOUR_S = 3600.0


@pytest.mark.parametrize(
    ("start_s", "allowed", "carrying", "replicas"),
    [
        pytest.param(300.0, 0.05, 2, 2, id="a small service is not doubled"),
        pytest.param(300.0, 0.05, 3, 4, id="a start spends the budget of an hour"),
        pytest.param(300.0, 0.05, 18, 19, id="one of 18"),
        pytest.param(300.0, 0.05, 50, 52, id="with the square root"),
        pytest.param(3600.0, 0.05, 5, 6, id="bounded"),
        pytest.param(100.0, 0.05, 5, 5, id="half of the budget"),
        pytest.param(100.0, 0.05, 20, 21, id="half of the budget of a large service"),
        pytest.param(30.0, 0.05, 100, 100, id="a sixth of the budget"),
        pytest.param(30.0, 0.01, 9, 10, id="a sixth of five times the budget"),
        pytest.param(300.0, 0.5, 100, 100, id="a median has a large budget"),
        pytest.param(300.0, 0.05, 0, 0, id="nothing arrives"),
    ],
)
def test_reserve_grows_with_the_start_over_the_budget(
    start_s: float, allowed: float, carrying: int, replicas: int
) -> None:
    assert Reserve().replicas(carrying, start_s, allowed) == replicas


@given(
    remaining=st.floats(0.0, 1.0),
    carrying=st.integers(0, 10_000),
    start_s=st.floats(0.0, 1e5),
    allowed=st.floats(1e-3, 0.999),
)
def test_reserve_never_asks_for_fewer_and_is_bounded(
    remaining: float, carrying: int, start_s: float, allowed: float
) -> None:
    replicas = Reserve(remaining=remaining).replicas(carrying, start_s, allowed)
    assert carrying <= replicas <= carrying + MOST * math.sqrt(carrying) + 0.5


def after(late_share: float, seconds: float, *, before: Reserve) -> Reserve:
    budget = ErrorBudget(late=1000.0 * late_share, ended=1000.0)
    return before.observe(budget, ALLOWED, seconds)


def test_reserve_fades_over_a_day_in_time() -> None:
    assert after(0.0, FADE_S, before=Reserve()).remaining == pytest.approx(math.exp(-1.0))
    slower = after(0.02, FADE_S, before=Reserve()).remaining
    assert slower == pytest.approx(math.exp(-0.5)), "half of the budget is spent"
    assert after(0.045, FADE_S, before=Reserve()) == Reserve()


def test_reserve_returns_with_an_hour_that_breaks_its_budget() -> None:
    faded = Reserve(remaining=0.2)
    assert after(0.045, 2.0, before=faded) == faded
    assert after(0.05, 2.0, before=faded) == Reserve()


def test_unknown_outcomes_change_no_reserve() -> None:
    faded = Reserve(remaining=0.5)
    assert faded.observe(ErrorBudget(), ALLOWED, FADE_S) == faded


def started(start_s: float, **changes: object) -> Service:
    """A service at a load of three replicas, whose starts took so long."""
    measured = replace(State.initial(), cold_starts=ColdStarts(seconds=(start_s,)))
    return Service(rate_rps=22.0, replicas=3, policy=policy(**changes), state=measured)


def test_slow_start_keeps_a_spare_replica_and_says_why() -> None:
    service = started(300.0)
    service.run(60)
    (change,) = [one for one in service.decisions if one.replicas != one.current]
    assert (change.current, change.replicas, change.reason) == (3, 4, Reason.RESERVE)
    assert "3 for the arrivals and 1 in reserve: a start takes 300s" in change.message
    assert "an hour's error budget lasts 180s" in change.message


@pytest.mark.parametrize(
    ("start_s", "changes"),
    [
        pytest.param(30.0, {}, id="starts are short"),
        pytest.param(300.0, {"max_replicas": 3}, id="maxReplicas"),
        pytest.param(300.0, {"latency_percentile": 0.5}, id="half of the requests may be late"),
        pytest.param(
            300.0, {"tuning": Tuning(without=frozenset({Component.RESERVE}))}, id="left out"
        ),
    ],
)
def test_no_spare_replica(start_s: float, changes: dict[str, object]) -> None:
    service = started(start_s, **changes)
    service.run(60)
    assert {one.replicas for one in service.decisions} == {3}


def test_start_that_was_never_measured_keeps_no_spare_replica() -> None:
    service = Service(rate_rps=22.0, replicas=3)
    service.run(60)
    assert {one.replicas for one in service.decisions} == {3}


def test_reserve_survives_a_restart() -> None:
    state = replace(State.initial(), reserve=Reserve(remaining=0.25))
    assert State.from_checkpoint(state.to_checkpoint()).reserve == state.reserve
    older = {key: value for key, value in state.to_checkpoint().items() if key != "reserve"}
    assert State.from_checkpoint(older).reserve == Reserve()


@pytest.mark.parametrize("value", [[], [2.0], [0.5, 0.5], [-1.0], ["all"], None])
def test_checkpoint_with_an_invalid_reserve_is_rejected(value: object) -> None:
    checkpoint = {**State.initial().to_checkpoint(), "reserve": value}
    with pytest.raises(ValueError, match="checkpoint reserve must"):
        State.from_checkpoint(checkpoint)
