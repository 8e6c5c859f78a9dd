"""Numbers as people read them."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from headroom.simulator.report import number_format


@pytest.mark.parametrize(
    ("show", "value", "shown"),
    [
        (number_format.seconds, 0.0021, "2.1 ms"),
        (number_format.seconds, 0.0834, "83 ms"),
        (number_format.seconds, 1.25, "1.25 s"),
        (number_format.seconds, math.inf, "never"),
        (number_format.seconds, math.nan, "unknown"),
        (number_format.duration, 45.0, "45 s"),
        (number_format.duration, 240.0, "4 min"),
        (number_format.duration, 9000.0, "2.5 h"),
        (number_format.hours, 3.14159, "3.14"),
        (number_format.hours, 31.4159, "31.4"),
        (number_format.percent, 0.98423, "98.42 %"),
        (number_format.percent, 0.999999, "99.99 %"),
        (number_format.percent, 1.0, "100.00 %"),
    ],
)
def test_number_is_formatted_with_few_digits_and_unit(
    show: Callable[[float], str], value: float, shown: str
) -> None:
    assert show(value) == shown
