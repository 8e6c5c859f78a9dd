"""Durations: parsing, exact values and rendering."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.api.durations import MAX_LENGTH, PATTERN, Duration

DAY_US = 86_400_000_000


@pytest.mark.parametrize(
    ("text", "seconds", "written"),
    [
        ("0s", 0.0, "0s"),
        ("0h0m", 0.0, "0s"),
        ("250ms", 0.25, "250ms"),
        ("0.5ms", 0.0005, "0.5ms"),
        ("1.5s", 1.5, "1.5s"),
        ("90s", 90.0, "1m30s"),
        ("3m", 180.0, "3m"),
        ("1h30m", 5400.0, "1h30m"),
        ("0.001h", 3.6, "3.6s"),
        ("30m1h", 5400.0, "1h30m"),
        ("1s1s", 2.0, "2s"),
        ("1s0.001ms", 1.000001, "1s0.001ms"),
        ("100s", 100.0, "1m40s"),
    ],
)
def test_duration_parses_and_renders(text: str, seconds: float, written: str) -> None:
    assert Duration.parse(text).seconds == seconds
    assert str(Duration.parse(text)) == written


@pytest.mark.parametrize(
    "text",
    ["", " ", "1s\n", "5", "s", "-5s", "+5s", "2 days", "1d", "1,5s", ".5s", "1.s", "1e3s", "5S",
     "1s ",
     "1234567s", "1.0001s", "1s" * 11, "٣s"],
)  # fmt: skip
def test_invalid_text_is_rejected_with_its_value(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape("numbers with units ms, s, m or h")) as refused:
        Duration.parse(text)
    assert repr(text)[:60] in str(refused.value)


@given(st.integers(min_value=0, max_value=DAY_US).map(Duration))
def test_duration_written_reads_back_exactly(duration: Duration) -> None:
    assert len(str(duration)) <= MAX_LENGTH
    assert Duration.parse(str(duration)) == duration


@given(st.text())
def test_parse_of_any_text_returns_or_raises_value_error(text: str) -> None:
    try:
        duration = Duration.parse(text)
    except ValueError:
        return
    assert duration.microseconds >= 0


@given(st.from_regex(PATTERN, fullmatch=True))
def test_grammar_stays_exact_in_cel_nanoseconds(text: str) -> None:
    if len(text) <= MAX_LENGTH:
        assert Duration.parse(text).microseconds * 1000 < 2**63


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -math.inf, -0.001])
def test_of_seconds_rejects_nan_infinity_and_negative(seconds: float) -> None:
    with pytest.raises(ValueError, match="finite number of seconds of at least 0"):
        Duration.of_seconds(seconds)
