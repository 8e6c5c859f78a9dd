"""The JSON report: golden, stable, read back, and with errors for other texts."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.simulator.outcome import Move, Outcome
from headroom.simulator.report.json_report import InvalidReport, read, written
from support.fakes_outcome import eventful, outcome, timeline

GOLDEN = Path(__file__).with_name("golden.json")
SMALL = (
    outcome(
        timeline_=timeline(2, p95_s=[math.inf, math.nan], arrival_rps=[0.5, 2.0]),
        moves=[Move(time_s=12.0, before=2, after=3, reason="Burst", message='"40/s" → 3')],
        p99_s=math.inf,
    ),
    outcome("clairvoyant", gpu_hours=3.2),
)


def same(one: Outcome, other: Outcome) -> bool:
    """Equal, nan where nan."""
    return written([one]) == written([other]) and all(
        np.array_equal(getattr(one.timeline, name), getattr(other.timeline, name), equal_nan=True)
        for name in one.timeline.__slots__
    )


def test_json_of_small_outcome_is_golden() -> None:
    assert written(SMALL) == GOLDEN.read_text(encoding="utf-8")


def test_json_report_reads_back() -> None:
    whole = (*SMALL, eventful(0.5))
    found = read(written(whole))
    assert len(found) == 3
    assert all(same(one, other) for one, other in zip(whole, found, strict=True))


def test_json_report_has_only_finite_numbers() -> None:
    def refuse(constant: str) -> float:
        raise AssertionError(constant)

    document = json.loads(written(SMALL), parse_constant=refuse)
    assert document["outcomes"][0]["score"]["p99_s"] == "inf"
    assert document["outcomes"][0]["timeline"]["p95_s"] == ["inf", None]
    assert document["summaries"][0]["clairvoyant_ratio"] == {"mean": 1.25, "half_width": None}


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        ('"headroom.simulation/3"', '"headroom.simulation/9"', "format must be"),
        ('"seed": 1', '"seed": 1.5', r"outcomes\[0\].seed must be a whole number; got 1.5"),
        ('"p99_s": "inf"', '"p99_s": "many"', r"score.p99_s must be a number, null or"),
        ('"waiting": [0, 0]', '"waiting": [0]', r"timeline: all arrays must have one length"),
        ('"waiting": [0, 0]', '"waiting": 0', r"timeline.waiting must be an array; got 0"),
        ('"before": 2, ', "", r"outcomes\[0\].moves\[0\] must have 'before'"),
        ('"scenario": "ramp"', '"scenario": null', r"outcomes\[0\].scenario must be a string"),
        ('"format"', "format", "not JSON"),
    ],
)
def test_invalid_json_report_is_rejected_with_its_location(
    before: str, after: str, complaint: str
) -> None:
    text = written(SMALL)
    assert before in text
    with pytest.raises(InvalidReport, match=complaint):
        read(text.replace(before, after))


@given(st.recursive(st.none() | st.integers() | st.text(), st.lists))
def test_any_other_json_is_rejected(document: object) -> None:
    with pytest.raises(InvalidReport):
        read(json.dumps(document))
