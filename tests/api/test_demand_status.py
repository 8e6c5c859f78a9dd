"""The demand in status: a lower or an upper bound is shown as one."""

from __future__ import annotations

import pytest

from headroom.api.service_status.demand_status import DemandStatus, demand_status, rate_text
from headroom.api.service_status.slo_status import SloStatus
from headroom.scaling.values.decision import Decision
from headroom.scaling.values.decision_reason import Direction, Reason
from headroom.scaling.values.demand import Demand, DemandKnown
from headroom.scaling.values.signals import Freshness, Signal, Signals

PINNED_CLIENTS = "64 requests in flight at 2 saturated replicas"


def decided(demand: Demand, counted_rps: float | None = None) -> Decision:
    fresh = Freshness.MISSING if counted_rps is None else Freshness.FRESH
    return Decision(
        time_s=0.0,
        current=2,
        replicas=2,
        direction=Direction.NONE,
        reason=Reason.WITHIN_TARGET,
        message="",
        demand=demand,
        signals=Signals(arrival_rps=Signal(freshness=fresh, value=counted_rps)),
    )


@pytest.mark.parametrize(
    ("demand", "counted_rps", "rate", "sentence"),
    [
        (Demand(), 160.0, "160/s", "160/s"),
        (Demand(rate_rps=42.0), 40.0, "42/s", "42/s"),
        (
            Demand(
                known=DemandKnown.AT_LEAST,
                rate_rps=160.0,
                at_most_rps=533.3,
                detail=PINNED_CLIENTS,
            ),
            158.0,
            ">=160/s",
            f"at least 160/s ({PINNED_CLIENTS}); up to 533/s",
        ),
        (Demand(known=DemandKnown.AT_LEAST), 160.0, ">=160/s", "at least 160/s"),
        (
            Demand(known=DemandKnown.INCLUDES_RETRIES, rate_rps=80.0, detail="31% of 374/s missed"),
            374.0,
            "<=80/s",
            "at most 80/s (31% of 374/s missed)",
        ),
    ],
    ids=["counted", "forecast", "hidden", "hidden without evidence", "retries"],
)
def test_demand_by_what_is_known_of_it(
    demand: Demand, counted_rps: float, rate: str, sentence: str
) -> None:
    shown = demand_status(decided(demand, counted_rps))
    assert shown is not None
    assert (shown.known, shown.rate, shown.sentence) == (demand.known, rate, sentence)
    assert DemandStatus.model_validate(shown.manifest()) == shown


@pytest.mark.parametrize("rate_rps", [None, float("inf")])
def test_demand_without_a_rate_is_none(rate_rps: float | None) -> None:
    assert demand_status(decided(Demand(rate_rps=rate_rps))) is None


def test_demand_of_another_version_is_shown_as_its_text() -> None:
    later = DemandStatus(known="Guessed", rate="~9/s", requests_per_second=9.0)
    assert later.sentence == "~9/s"


@pytest.mark.parametrize(
    ("rate_rps", "text"),
    [(0.0, "0/s"), (0.254, "0.254/s"), (160.4, "160/s"), (999.6, "1000/s"), (12345.6, "12346/s")],
)
def test_rate_keeps_its_integer_part(rate_rps: float, text: str) -> None:
    assert rate_text(rate_rps) == text


@pytest.mark.parametrize(
    ("late_share", "margin", "sentence"),
    [
        (0.031, 1.4, "margin 1.4x: 3.1% of the last hour's requests were late"),
        (1.0, 4.0, "margin 4x: 100% of the last hour's requests were late"),
        (0.0, 1.0, "margin 1x: 0% of the last hour's requests were late"),
        (None, 1.4, ""),
        (0.031, None, ""),
    ],
)
def test_margin_is_shown_with_its_cause(
    late_share: float | None, margin: float | None, sentence: str
) -> None:
    slo = SloStatus(error_budget_remaining=1.0, late_share=late_share, margin=margin)
    assert slo.sentence == sentence
