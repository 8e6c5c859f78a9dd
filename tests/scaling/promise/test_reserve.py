"""The reserve: spare replicas where a start takes longer than an hour's error budget lasts."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.scaling import State
from headroom.scaling.forecast.forecast import Expected, Rates
from headroom.scaling.latency.tail_latency import TailLatency
from headroom.scaling.limits.cold_start import ColdStarts
from headroom.scaling.promise.error_budget import ErrorBudget
from headroom.scaling.promise.reserve import FADE_S, MOST, Reserve, Usual
from headroom.scaling.rules.rule_inputs import RuleInputs
from headroom.scaling.rules.rule_results import evaluate_rules
from headroom.scaling.values.decision import ReplicaCounts
from headroom.scaling.values.decision_reason import Reason
from headroom.scaling.values.policy import Routing
from headroom.scaling.values.signals import Freshness, Signal, Signals
from headroom.scaling.values.tuning import Component, Tuning
from support.fakes_scaling import COST, Service, policy

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


@pytest.mark.parametrize(
    ("start_s", "spent", "carrying", "replicas"),
    [
        pytest.param(100.0, 0.0, 5, 5, id="half of the budget"),
        pytest.param(100.0, 0.13, 5, 5, id="a little of it is spent"),
        pytest.param(100.0, 0.15, 5, 6, id="a start spends more than half of what is left"),
        pytest.param(100.0, 0.51, 5, 7, id="half is left"),
        pytest.param(100.0, 5.0, 5, 7, id="nothing is left"),
        pytest.param(300.0, 0.0, 5, 6, id="a start spends the budget"),
        pytest.param(300.0, 0.15, 5, 7, id="a start spends more than the budget"),
        pytest.param(300.0, 0.9, 1, 1, id="the only replica is not doubled"),
        pytest.param(300.0, 0.0, 2, 3, id="one of two"),
        pytest.param(30.0, 0.0, 20, 20, id="a sixth of the budget"),
        pytest.param(30.0, 0.5, 20, 21, id="a third of what is left"),
    ],
)
def test_reserve_of_a_generating_service_grows_as_its_budget_is_spent(
    start_s: float, spent: float, carrying: int, replicas: int
) -> None:
    usual = Usual(rate_rps=0.0, spent=spent)
    assert Reserve().replicas(carrying, start_s, ALLOWED, usual) == replicas


@pytest.mark.parametrize(
    ("hour_rps", "ended", "spent"),
    [
        pytest.param(0.0, 10_000.0, 0.2, id="no rate is known: of what has ended"),
        pytest.param(1.0, 500.0, 100.0 / 180.0, id="of an hour at its mean rate"),
        pytest.param(1.0, 7200.0, 100.0 / 360.0, id="of what has ended, if that is more"),
    ],
)
def test_budget_is_that_of_an_hour(hour_rps: float, ended: float, spent: float) -> None:
    usual = Usual.of(3.0, hour_rps, ErrorBudget(late=100.0, ended=ended), ALLOWED)
    assert usual.rate_rps == 3.0
    assert usual.spent == pytest.approx(spent)


def test_nothing_is_spent_where_nothing_has_arrived() -> None:
    assert Usual.of(0.0, 0.0, ErrorBudget(), ALLOWED) == Usual(rate_rps=0.0, spent=0.0)


def reserved(rate_rps: float, usual: Usual | None, start_s: float = 300.0) -> int:
    """The replicas that the reserve requests at this rate."""
    rates = Rates(for_ceiling_rps=rate_rps, for_latency_rps=rate_rps)
    results = evaluate_rules(
        RuleInputs(
            policy=policy(),
            expected=Expected(later=rates, most=rates, burst_rps=None),
            signals=Signals(arrival_rps=Signal(freshness=Freshness.FRESH, value=rate_rps)),
            tail=TailLatency(cost=COST, percentile=0.95, routing=Routing.LEAST_IN_FLIGHT),
            counts=ReplicaCounts(ready=5),
            target_s=1.5,
            reserve=Reserve(),
            usual=usual,
            start_s=start_s,
        )
    )
    found = [one.replicas for one in results.recommendations if one.rule is Reason.RESERVE]
    return found[0] if found else 0


def test_peak_by_chance_uses_the_reserve_and_adds_none() -> None:
    usual = Usual(rate_rps=22.0, spent=0.0)
    assert reserved(22.0, usual) == reserved(26.0, usual) == 4
    assert reserved(26.0, Usual(rate_rps=26.0, spent=0.0)) == 5


def test_reserve_falls_with_the_rate() -> None:
    assert reserved(12.0, Usual(rate_rps=40.0, spent=0.0)) == 3


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
