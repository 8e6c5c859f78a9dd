"""The error budget, the learned margin and the learned risk level."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.scaling import LatencyCounts, Observation, Pod, PodSample, PodState
from headroom.scaling.evidence.misses import with_risk
from headroom.scaling.promise.error_budget import ErrorBudget, Outcomes, one_alone_is_late
from headroom.scaling.promise.margin import LARGEST, Margin
from headroom.scaling.promise.risk import Risk
from headroom.scaling.state.state import State
from headroom.scaling.values.observation import GatewayRejections
from headroom.scaling.windows.sliding_windows import Windows
from support.fakes_scaling import BOUNDS_S, Service, policy, sample

ALLOWED = 0.05
TICK_S = 2.0


def budget(late_share: float, *, ticks: int = 60, steady: bool = True) -> ErrorBudget:
    """The budget after this many ticks with 20 ended requests each."""
    counted = ErrorBudget()
    for _ in range(ticks):
        outcomes = Outcomes(ended=20.0, late=20.0 * late_share)
        counted = counted.observe(outcomes, TICK_S, steady=steady)
    return counted


def test_burn_rate_is_zero_within_chance() -> None:
    assert budget(0.055).steady_burn(ALLOWED) == 0.0
    assert budget(0.15).steady_burn(ALLOWED) == pytest.approx(3.0, rel=0.01)


def test_misses_of_a_jump_count_for_the_hour_and_not_for_the_margin() -> None:
    jump = budget(1.0, steady=False)
    assert jump.late_share == pytest.approx(1.0)
    assert jump.steady_burn(ALLOWED) == 0.0


def test_few_requests_prove_nothing() -> None:
    assert budget(1.0, ticks=2).late_share is None


@pytest.mark.parametrize(
    ("late_share", "ready", "replicas"),
    [
        pytest.param(0.01, 4, 4, id="unspent"),
        pytest.param(0.10, 4, 5, id="twice the budget: at least one more"),
        pytest.param(0.15, 20, 26, id="three times the budget: 30 % more"),
        pytest.param(0.90, 4, 8, id="most late: twice as many"),
        pytest.param(0.99, 4, 4, id="all fail: no burst does that"),
    ],
)
def test_margin_rises_with_the_burn_rate(late_share: float, ready: int, replicas: int) -> None:
    margin, _ = Margin().observe(budget(late_share), ALLOWED, TICK_S, carrying=ready, ready=ready)
    assert margin.replicas(ready) == replicas


def test_margin_uses_its_evidence_once() -> None:
    margin, rest = Margin().observe(budget(0.5), ALLOWED, TICK_S, carrying=4, ready=4)
    again, _ = margin.observe(rest, ALLOWED, TICK_S, carrying=4, ready=8)
    assert again.beta == margin.beta


def test_margin_stays_while_it_must_not_rise() -> None:
    margin, _ = Margin().observe(budget(0.5), ALLOWED, TICK_S, carrying=0, ready=4)
    assert margin.beta == 0.0


def test_margin_that_changes_nothing_is_undone_after_three_steps() -> None:
    margin, ready, steps = Margin(beta=1.0), 2, [2]
    for _ in range(10):
        margin, _ = margin.observe(budget(0.5), ALLOWED, TICK_S, carrying=1, ready=ready)
        ready = margin.replicas(1)
        steps.append(ready)
    assert steps == [2, 4, 8, 16, *[2] * 7]


@pytest.mark.parametrize(
    ("carries", "late_shares", "steps"),
    [
        pytest.param(1, (0.5, *[0.2] * 5), [2, 3, 5, 8, 2, 2], id="the first one helped"),
        pytest.param(
            2, (0.20, 0.24, 0.21, 0.24, 0.19, 0.2), [3, 5, 8, 2, 2, 2], id="clients cancel a fifth"
        ),
    ],
)
def test_three_steps_in_vain_are_undone_by_what_missed_before_the_first(
    carries: int, late_shares: tuple[float, ...], steps: list[int]
) -> None:
    margin, ready, found = Margin(), carries, list[int]()
    for late_share in late_shares:
        margin, _ = margin.observe(
            budget(late_share), ALLOWED, TICK_S, carrying=carries, ready=ready
        )
        ready = margin.replicas(carries)
        found.append(ready)
    assert found == steps


def test_evidence_of_requests_that_fail_is_not_kept_for_the_time_after() -> None:
    _, rest = Margin().observe(budget(0.99), ALLOWED, TICK_S, carrying=4, ready=4)
    assert rest.steady_burn(ALLOWED) == 0.0


class PartlyLate(Service):
    """A service of which 30 % of the answers take 2 to 4 s, whatever is done."""

    def samples(self) -> tuple[PodSample, ...]:
        shares = tuple(1.0 if bound >= 4.0 else 0.7 for bound in BOUNDS_S)
        return tuple(
            replace(one, latency=LatencyCounts(bounds_s=BOUNDS_S, counts=counts))
            for one in super().samples()
            for counts in [tuple(map(math.prod, zip(shares, one.latency.counts, strict=True)))]
        )


def test_next_step_is_judged_by_what_misses_once_the_replicas_of_the_last_serve() -> None:
    service = PartlyLate(rate_rps=20.0, replicas=3, load_s=60.0)
    steps = list[float]()
    while len(steps) < 2:
        before, decision = service.replicas, service.tick()
        if decision.replicas > before:
            steps.append(service.now_s)
    # 60 s for the start, 60 s until what waited before is answered, 30 s of evidence
    assert steps[1] - steps[0] >= 150.0


def test_requests_that_miss_a_target_out_of_reach_add_no_replica_once_it_is_corrected() -> None:
    service = Service(rate_rps=20.0, replicas=3, policy=policy(latency_target_s=0.1))
    assert not service.run(300).feasible
    service.policy = policy()
    service.run(120)
    assert {decision.replicas for decision in service.decisions} == {3}


def test_margin_fades_while_the_budget_is_unspent() -> None:
    margin = Margin(beta=4.0)
    for _ in range(1800):
        margin, _ = margin.observe(budget(0.0, ticks=10), ALLOWED, TICK_S, carrying=9, ready=21)
    assert 2.8 < margin.beta < 3.4


def test_margin_grows_with_the_square_root_of_the_load() -> None:
    margin = Margin(beta=1.0)
    assert [margin.replicas(number) for number in (0, 1, 4, 16, 100)] == [0, 2, 6, 20, 110]


@given(st.floats(0.0, 1.0), st.integers(1, 500), st.integers(1, 500))
def test_margin_never_asks_for_fewer_and_is_bounded(late: float, carrying: int, ready: int) -> None:
    margin, _ = Margin().observe(budget(late), ALLOWED, TICK_S, carrying=carrying, ready=ready)
    assert 0.0 <= margin.beta <= LARGEST
    assert margin.replicas(carrying) >= carrying


def test_risk_rises_while_the_hour_misses_its_promise_and_falls_slowly() -> None:
    risk, spent, unspent = Risk(), budget(0.06, ticks=1800), budget(0.0, ticks=1800)
    for _ in range(90):  # 5 % of the hour's requests, all late
        risk = risk.observe(Outcomes(ended=20.0, late=20.0), spent, ALLOWED)
    assert risk.level == pytest.approx(1.0)
    for _ in range(900):
        risk = risk.observe(Outcomes(ended=20.0, late=0.0), spent, ALLOWED)
    assert risk.level == pytest.approx(1.0)
    for _ in range(900):
        risk = risk.observe(Outcomes(ended=20.0, late=0.0), unspent, ALLOWED)
    assert 0.4 < risk.level < 0.7


def test_misses_within_the_budget_raise_no_risk() -> None:
    hour = budget(0.02, ticks=1800)
    assert Risk().observe(Outcomes(ended=20.0, late=20.0), hour, ALLOWED).level == 0.0


def test_risk_of_an_idle_service_stays() -> None:
    risk = Risk(level=0.5)
    assert risk.observe(Outcomes(ended=0.0, late=0.0), budget(0.5), ALLOWED) is risk


def test_risk_interpolates_between_usual_and_cautious() -> None:
    assert [Risk(level=level).between(0.6, 0.9) for level in (0.0, 0.5, 1.0)] == pytest.approx(
        [0.6, 0.75, 0.9]
    )


def test_service_at_the_highest_risk_keeps_replicas_for_rarer_peaks_than_it_adds_them_for() -> None:
    usual = policy()
    assert with_risk(usual, State()) is usual
    tuning = with_risk(usual, State(risk=Risk(level=1.0))).tuning
    assert usual.tuning.kept_share < tuning.expected_share < tuning.kept_share < 1.0
    assert tuning.record_ratio == 2.0 * usual.tuning.record_ratio


def windows_of(ended: list[float], late: list[float], missed: float = 0.0) -> Windows:
    """Return what replicas have answered in 2 s, and what a gateway has rejected."""

    def seen(time_s: float, share: float) -> Observation:
        return Observation(
            now_s=time_s,
            current=len(ended),
            pods=tuple(Pod(uid=f"pod-{n}", state=PodState.READY, created_s=0.0) for n in range(9)),
            samples=tuple(
                replace(
                    sample(f"pod-{n}", time_s, share * count),
                    latency=LatencyCounts(
                        bounds_s=(1.0, math.inf), counts=(share * (count - slow), share * count)
                    ),
                )
                for n, (count, slow) in enumerate(zip(ended, late, strict=True))
            ),
            rejected_at_gateway=GatewayRejections(time_s=time_s, requests=share * missed),
        )

    return Windows().absorb(seen(100.0, 0.0)).absorb(seen(102.0, 1.0))


@pytest.mark.parametrize(
    ("late", "missed", "alone"),
    [
        ([101.0, 0.0, 0.0], 0.0, True),
        ([101.0, 20.0, 19.0], 0.0, True),
        ([101.0, 20.0, 21.0], 0.0, False),  # more than 5 % of the others
        ([100.0, 0.0, 0.0], 0.0, False),  # a burst that met one replica
        ([200.0, 200.0, 0.0], 0.0, False),
        ([101.0, 0.0, 0.0], 500.0, False),  # rejected by no replica
        ([0.0, 0.0, 0.0], 500.0, False),
        ([400.0], 0.0, False),
        ([], 0.0, False),
    ],
)
def test_late_replica_is_alone_while_the_others_keep_the_promise(
    late: list[float], missed: float, alone: bool
) -> None:
    windows = windows_of([400.0] * len(late), late, missed)
    assert one_alone_is_late(windows, 1.0, 30.0, ALLOWED) is alone


@pytest.mark.parametrize(("others_late", "alone"), [(0.25, True), (0.5, False)])
def test_worst_of_many_replicas_is_not_alone_if_the_others_miss_more_together(
    others_late: float, alone: bool
) -> None:
    windows = windows_of([15.0] * 17, [6.0, *[others_late] * 16])
    assert one_alone_is_late(windows, 1.0, 30.0, ALLOWED) is alone
