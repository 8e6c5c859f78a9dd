"""A selector matches exactly its matchers, whatever their characters."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.telemetry.promql import equals, one_of, recent

TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=20)
_MATCHER = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)(=~|=)"((?:[^"\\\n]|\\[\\"n])*)"')


def parsed(selector: str) -> list[tuple[str, str, str]]:
    """Parse a range selector by PromQL's rules: Go strings, matchers separated by commas."""
    body, window = re.fullmatch(r"\{(.*)\}\[([0-9]+)ms\]", selector, re.DOTALL).groups()  # type: ignore[union-attr]
    assert int(window) > 0
    found = []
    while body:
        match = _MATCHER.match(body)
        assert match is not None, body
        unescaped = re.sub(r"\\(.)", lambda one: {"n": "\n"}.get(one[1], one[1]), match[3])
        found.append((match[1], match[2], unescaped))
        body = body[match.end() :].removeprefix(",")
    return found


def test_selector_for_two_pods() -> None:
    matchers = [
        one_of("__name__", ["vllm:num_requests_running"]),
        equals("namespace", "shop"),
        one_of("pod", ["b-2", "a.1"]),
    ]
    assert recent(matchers, 45.0) == (
        '{__name__=~"vllm:num_requests_running",namespace="shop",pod=~"a\\\\.1|b\\\\-2"}[45000ms]'
    )


@pytest.mark.parametrize(
    "value",
    ['"} or vector(1) #', "a\\", 'a\\"', "\n", "$1", "{{.}}", "", "a,b=c", "日本", "|", ".*"],
)
def test_label_value_never_becomes_syntax(value: str) -> None:
    read = parsed(recent([equals("pod", value), one_of("job", [value])], 1.0))
    assert read[0] == ("pod", "=", value)
    assert re.fullmatch(read[1][2], value)
    assert not re.fullmatch(read[1][2], value + "x")


@given(st.lists(TEXT, min_size=1, max_size=4), TEXT)
def test_any_values_are_matched_exactly(values: list[str], other: str) -> None:
    ((_, _, exact), (_, _, pattern)) = parsed(
        recent([equals("a", values[0]), one_of("b", values)], 2.5)
    )
    assert exact == values[0]
    assert all(re.fullmatch(pattern, value) for value in values)
    assert (re.fullmatch(pattern, other) is not None) == (other in values)


@pytest.mark.parametrize("label", ["", "1a", "a b", 'a"', "ä", "a\n"])
def test_invalid_label_is_rejected(label: str) -> None:
    with pytest.raises(ValueError, match="a label must be letters, digits and _"):
        equals(label, "x")


def test_invalid_label_value_is_rejected() -> None:
    with pytest.raises(ValueError, match="a label's value must be text"):
        equals("a", "\ud800")


@pytest.mark.parametrize("window_s", [0.0, -1.0, 0.0001, 90_000.0])
def test_window_out_of_bounds_is_rejected(window_s: float) -> None:
    with pytest.raises(ValueError, match="window must be above 0 s and at most a day"):
        recent([equals("a", "b")], window_s)


def test_selector_without_matcher_is_rejected() -> None:
    with pytest.raises(ValueError, match="a selector must have a matcher"):
        recent([], 1.0)
