"""Numbers as people read them."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from headroom.simulator.report import figures


@pytest.mark.parametrize(
    ("show", "value", "shown"),
    [
        (figures.seconds, 0.0021, "2.1 ms"),
        (figures.seconds, 0.0834, "83 ms"),
        (figures.seconds, 1.25, "1.25 s"),
        (figures.seconds, math.inf, "never"),
        (figures.seconds, math.nan, "unknown"),
        (figures.duration, 45.0, "45 s"),
        (figures.duration, 240.0, "4 min"),
        (figures.duration, 9000.0, "2.5 h"),
        (figures.hours, 3.14159, "3.14"),
        (figures.hours, 31.4159, "31.4"),
        (figures.percent, 0.98423, "98.42 %"),
        (figures.percent, 0.999999, "99.99 %"),
        (figures.percent, 1.0, "100.00 %"),
        (figures.compact, 12800.0, "12.8k"),
        (figures.compact, 0.5, "0.5"),
    ],
)
def test_a_number_is_shown_with_few_digits_and_its_unit(
    show: Callable[[float], str], value: float, shown: str
) -> None:
    assert show(value) == shown
