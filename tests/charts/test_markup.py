"""Elements and shapes: escaped text, coordinates to a tenth, gaps in lines."""

from __future__ import annotations

import math

import pytest

from headroom.charts.axes import compact
from headroom.charts.markup import Markup, joined, tag
from headroom.charts.svg import band, marks, path

EVIL = "</b><script>&\"'"


def test_plain_text_and_attributes_are_escaped_and_markup_is_kept() -> None:
    element = tag("b", EVIL, Markup("<i>x</i>"), None, title=EVIL)
    assert "<script>" not in element
    assert element.endswith("<i>x</i></b>")
    assert joined(["<", Markup("<br>")]) == "&lt;<br>"


def test_what_would_turn_around_the_rest_of_a_line_is_spelled() -> None:
    """A replica's last words, in a condition: `not ready` may not read `ready`."""
    assert tag("b", "a\u202eb\x1b", title="\u2066") == r'<b title="\u2066">a\u202eb\x1b</b>'


def test_attributes_without_value_are_left_out_and_names_get_hyphens() -> None:
    assert tag("input", class_="a", aria_label="b", checked=True, hidden=False, id=None) == (
        '<input class="a" aria-label="b" checked>'
    )
    assert tag("line", x1=1.04, x2=2) == '<line x1="1" x2="2"></line>'


def test_line_with_missing_value_lifts_the_pen() -> None:
    points = [(0.0, 1.0), (1.0, math.nan), (2.0, 3.0), (3.0, 3.0), (4.0, 5.0)]
    assert path(points) == "M0 1M2 3L3 3L4 5"
    assert path(points, steps=True) == "M0 1M2 3H3H4V5"
    assert path([]) == ""


def test_band_is_closed_and_marks_repeat_their_shape() -> None:
    assert band([(0.0, 1.0), (2.0, 1.0)], [(0.0, 3.0), (2.0, 4.0)]) == "M0 1H2V4V3H0Z"
    assert band([], []) == ""
    assert marks([(1.0, 2.0), (3.0, 4.0)], "v5") == "M1 2v5M3 4v5"


@pytest.mark.parametrize(
    ("value", "shown"), [(12800.0, "12.8k"), (0.5, "0.5"), (math.inf, "inf"), (math.nan, "unknown")]
)
def test_number_at_a_tick_is_compact(value: float, shown: str) -> None:
    assert compact(value) == shown
