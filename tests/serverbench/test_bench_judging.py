"""Judgement of a promise: it holds, does not hold, or was not measured."""

from __future__ import annotations

import math

import pytest

from serverbench.judgement.comparison import COLUMNS, cell, side_by_side
from serverbench.judgement.findings import Findings
from serverbench.judgement.judging import judged
from serverbench.records import Case, Record
from serverbench.servers import BARE, OURS

ALL = tuple(Case)
SERVERS = (OURS, BARE, "triton", "mosec")


def record(
    case: Case, server: str, number: int = 0, error: str = "", **values: float | None
) -> Record:
    return Record(
        case=case, server=server, round=number, fingerprint="f", values=values, error=error
    )


def rows(*records: Record, cases: tuple[Case, ...]) -> dict[str, bool | None]:
    figures = judged(Findings(records), cases, SERVERS)
    return {figure.name: figure.holds for figure in figures}


def test_a_ratio_is_the_median_of_its_rounds_and_not_of_its_sides() -> None:
    light = [
        record(Case.LIGHT, name, number, p50_ms=value)
        for name, values in ((OURS, (7.0, 9.0, 7.1)), (BARE, (7.0, 8.9, 6.0)))
        for number, value in enumerate(values)
    ]
    # 1.000, 1.011 and 1.183: the noisy round decides nothing
    assert rows(*light, cases=(Case.LIGHT,))["20/s: p50 to that of bare ASGI"] is True


@pytest.mark.parametrize(("ours", "holds"), [(16.6, True), (16.8, False)])
def test_the_best_peer_is_the_one_to_beat(ours: float, holds: bool) -> None:
    steady = (
        record(Case.STEADY, OURS, p95_ms=ours),
        record(Case.STEADY, "triton", p95_ms=16.7),
        record(Case.STEADY, "mosec", p95_ms=24.9),
        record(Case.STEADY, BARE, p95_ms=10.0),
    )
    assert rows(*steady, cases=(Case.STEADY,)) == {
        "300/s: p95, against the best peer's (triton)": holds
    }


@pytest.mark.parametrize(
    ("ours", "share", "wanted"),
    [(750.0, 0.981, (True, True)), (700.0, 0.981, (True, False)), (740.0, 0.97, (False, True))],
)
def test_the_highest_rate_is_near_the_ideal_and_above_every_peer(
    ours: float, share: float, wanted: tuple[bool, bool]
) -> None:
    knee = (
        record(Case.KNEE, OURS, highest_rps=ours, ideal_rps=765.0, share=share),
        record(Case.KNEE, "triton", highest_rps=700.0),
        record(Case.KNEE, "mosec", highest_rps=650.0),
    )
    assert tuple(rows(*knee, cases=(Case.KNEE,)).values()) == wanted


def test_missing_measurement_fails_its_figure() -> None:
    figures = judged(Findings([]), ALL, SERVERS)
    promised = [figure for figure in figures if figure.promised]
    assert len(promised) >= 18
    assert {figure.holds for figure in promised} == {False}
    assert {figure.measured for figure in promised} == {"not measured"}


def test_rate_that_no_server_holds_is_reported() -> None:
    none = record(Case.STEADY, "triton", p95_ms=None)
    steady = rows(record(Case.STEADY, OURS, p95_ms=17.0), none, cases=(Case.STEADY,))
    assert list(steady.values()) == [True], "triton's p95 was infinite"


def test_an_overload_is_held_against_capacity_and_the_calm_before() -> None:
    measured = record(
        Case.OVERLOAD,
        OURS,
        good_rps=721.0,
        capacity_rps=800.0,
        refused_p50_ms=0.6,
        calm_p50_ms=10.0,
        recovery_p50_ms=15.1,
    )
    assert list(rows(measured, cases=(Case.OVERLOAD,)).values()) == [True, True, False]


@pytest.mark.parametrize(("off", "holds"), [(0.0, True), (1.0, False)])
def test_a_soak_wants_every_counter_right(off: float, holds: bool) -> None:
    measured = record(
        Case.SOAK,
        OURS,
        minutes=10.0,
        requests=380_000.0,
        growth_mb=0.4,
        lost=0.0,
        p95_ms=30.0,
        disagreement=off,
    )
    judgements = rows(measured, cases=(Case.SOAK,)).values()
    assert [one for one in judgements if one is not None] == [True, True, holds]


def test_comparison_shows_servers_as_multiples_of_ours() -> None:
    found = Findings(
        [
            record(Case.CPU, OURS, cpu_ms=0.25),
            record(Case.CPU, "litserve", cpu_ms=1.8),
            record(Case.CPU, "ray", cpu_ms=None),
        ]
    )
    (column,) = [column for column in COLUMNS if column.case is Case.CPU]
    assert cell(found, column, OURS) == "0.25"
    assert cell(found, column, "litserve") == "1.80 (7.20)"
    assert cell(found, column, "ray") == "none"
    assert cell(found, column, "mosec") == ""
    assert side_by_side(found, (Case.SOAK,), (OURS,), ("ours",)) is None


def test_failed_measurement_is_explained_once() -> None:
    why = "ray: ended with 1"
    found = Findings([record(Case.IDLE, "ray", error=why), record(Case.KNEE, "ray", error=why)])
    assert found.errors(ALL, ("ray",)) == [("ray", why)]
    assert math.isnan(found.median(Case.IDLE, "ray", "rss_mb"))
