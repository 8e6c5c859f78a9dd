"""A metrics page is read completely, or rejected with line and rule."""

from __future__ import annotations

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from headroom.telemetry.errors import MalformedExposition
from headroom.telemetry.pages.exposition import ExpositionReader, Series
from headroom.telemetry.pages.recent_layouts import LayoutMemory


def read(page: str, *wanted: str) -> list[tuple[Series, float]]:
    found = ExpositionReader(frozenset(wanted)).read(page)
    return list(zip(found.layout.series, found.values, strict=True))


@pytest.mark.parametrize(
    ("line", "labels", "value"),
    [
        ("m 1", {}, 1.0),
        ("m{} 1", {}, 1.0),
        ('m{a="b"} 1.5e-3', {"a": "b"}, 0.0015),
        ('m{a="b",} 1', {"a": "b"}, 1.0),
        ('m{a="b", c="d"} 1', {"a": "b", "c": "d"}, 1.0),
        ('m{a="with } and , and = and space"} 2', {"a": "with } and , and = and space"}, 2.0),
        (r'm{a="quote \" backslash \\ feed \n"} 1', {"a": 'quote " backslash \\ feed \n'}, 1.0),
        ('m{a=""} 1', {"a": ""}, 1.0),
        ('m{a="ünïcode"} 1', {"a": "ünïcode"}, 1.0),
        ("m 1 1700000000000", {}, 1.0),
        ('m{a="b 5"} 1 -17', {"a": "b 5"}, 1.0),
        ("m\t1", {}, 1.0),
        ("  m   1  ", {}, 1.0),
        ('m{a="b"}1', {"a": "b"}, 1.0),
        ("m 1\r", {}, 1.0),
        ("m +Inf", {}, math.inf),
        ("m -Inf", {}, -math.inf),
    ],
)
def test_line_is_parsed(line: str, labels: dict[str, str], value: float) -> None:
    assert read(f"{line}\n", "m") == [(Series("m", labels), value)]


def test_nan_is_parsed() -> None:
    ((_, value),) = read("m NaN\n", "m")
    assert math.isnan(value)


def test_comments_blank_lines_and_other_metrics_are_skipped() -> None:
    page = '# HELP m x\n# TYPE m counter\n\n   \nother{a="b"} 3\nm 1\n # odd\n'
    assert read(page, "m") == [(Series("m", {}), 1.0)]
    assert read("", "m") == []


@pytest.mark.parametrize(
    ("page", "line", "rule"),
    [
        ("m 1\nm 2", 2, "a page must end with a line feed"),
        ("m 1\nm{\n", 2, "a line must be name{labels} value [timestamp]"),
        ("m\n", 1, "a line must be name{labels} value [timestamp]"),
        ("1m 1\n", 1, "a line must be name{labels} value [timestamp]"),
        ('m{a="b} 1\n', 1, "a line must be name{labels} value [timestamp]"),
        ("m{a=b} 1\n", 1, "a line must be name{labels} value [timestamp]"),
        (r'm{a="\x"} 1' + "\n", 1, "a line must be name{labels} value [timestamp]"),
        ("<html> 1 2 3\n", 1, "a line must be name{labels} value [timestamp]"),
        ("m 1 2 3\n", 1, "a line must be name{labels} value [timestamp]"),
        ("m 1 soon\n", 1, "a line must be name{labels} value [timestamp]"),
        ("m one\n", 1, "a value must be a number, NaN or +Inf"),
        ("m 1_000\n", 1, "a value must be a number, NaN or +Inf"),
        ("m \u0661\n", 1, "a value must be a number, NaN or +Inf"),
        ("unwanted one\nm 1\n", 1, "a value must be a number, NaN or +Inf"),
        ('m{a="b",a="c"} 1\n', 1, "a series must not repeat a label"),
    ],
)
def test_malformed_page_is_rejected_with_line_and_rule(page: str, line: int, rule: str) -> None:
    with pytest.raises(MalformedExposition) as raised:
        read(page, "m")
    assert (raised.value.line, raised.value.rule) == (line, rule)


@pytest.mark.parametrize(
    "line", ['m{a="b"%s+} 1', "m%s+ 1 2 3", 'm{a="b",%s+} 1', "m{%s+} 1", 'm{a="b"}%s+ 1 2 3']
)
def test_hostile_line_is_parsed_in_linear_time(line: str) -> None:
    begun_s = time.process_time()
    with pytest.raises(MalformedExposition):
        read(f"{line % (' ' * 100_000)}\n", "m")
    assert time.process_time() - begun_s < 2.0


@given(st.text(alphabet=st.sampled_from('m{}a="b\\ \n\t1.e+-_#,NaInf'), max_size=60))
def test_any_text_is_parsed_or_rejected(page: str) -> None:
    try:
        found = read(page, "m", "a")
    except MalformedExposition:
        return
    assert all(series.name in ("m", "a") for series, _ in found)


@given(
    st.dictionaries(st.text(max_size=8), st.floats(), max_size=6),
    st.lists(st.floats(min_value=0, max_value=10), max_size=5),
)
def test_official_client_page_matches_its_own_parser(
    gauges: dict[str, float], observed: list[float]
) -> None:
    registry = CollectorRegistry()
    gauge = Gauge("gauge", "of any kind\n", ["label"], registry=registry)
    for label, value in gauges.items():
        gauge.labels(label).set(value)
    Counter("counter", "x", registry=registry).inc(len(observed))
    histogram = Histogram("histogram", "x", registry=registry)
    for seconds in observed:
        histogram.observe(seconds)
    page = generate_latest(registry).decode()
    theirs = [
        (sample.name, dict(sample.labels), repr(sample.value))
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    ]
    names = {name for name, _, _ in theirs}
    ours = [(series.name, dict(series.labels), repr(value)) for series, value in read(page, *names)]
    assert ours == theirs


def test_layout_cache_is_bounded_and_changes_no_result() -> None:
    memory = LayoutMemory()
    reader = ExpositionReader(frozenset({"m"}), memory)
    for first in range(0, 20_000, 100):
        numbers = range(first, first + 100)
        text = "".join(f'm{{n="{number}"}} {number}\n' for number in numbers)
        series = tuple(Series("m", {"n": str(number)}) for number in numbers)
        for _ in range(2):
            page = reader.read(text)
            assert page.layout.series == series
            assert tuple(page.values) == tuple(map(float, numbers))
    assert memory.pages.used[0] <= 16_384


@pytest.mark.parametrize("length", [3000, 200_000])
def test_memory_of_layouts_is_bounded_in_bytes(length: int) -> None:
    memory = LayoutMemory()
    readers = [ExpositionReader(frozenset({"m", other}), memory) for other in "abc"]
    for number in range((5 << 20) // length):
        for _ in range(2):
            readers[number % 3].read(f'm{{n="{number:0{length}}"}} {number}\n')
    assert memory.pages.used[1] <= 4 << 20


@pytest.mark.parametrize(
    ("pages", "series", "times"),
    [
        pytest.param(12, 2000, 1, id="always new series"),
        pytest.param(1, 20_000, 3, id="more series than are remembered"),
        pytest.param(2, 12_000, 3, id="most of the series that are remembered"),
    ],
)
def test_pages_of_one_pod_displace_no_layout_of_others(pages: int, series: int, times: int) -> None:
    """The texts of the others are read before and after, not in between."""
    reader = ExpositionReader(frozenset({"m"}))
    page = "".join(f'm{{n="{number}"}} 1\n' for number in range(200))
    for _ in range(2):  # remembered when it is seen again
        known = reader.read(page).layout
    for turn in range(pages):
        new = "".join(f'm{{n="{turn}-{number}"}} 1\n' for number in range(series))
        for _ in range(times):
            reader.read(new)
    assert reader.read(page).layout is known


def test_pages_with_the_same_lines_share_the_layout() -> None:
    reader = ExpositionReader(frozenset({"a", "b"}))
    reader.read("a 0\nx 0\nb 0\n")  # remembered when it is seen again
    first, second = reader.read("a 1\nx 2\nb 3\n"), reader.read("a 4\nx 5\nb 6\n")
    assert first.layout is second.layout
    assert (tuple(first.values), tuple(second.values)) == ((1.0, 3.0), (4.0, 6.0))
    assert reader.read("b 6\nx 5\na 4\n").layout is not first.layout


def test_layout_counts_all_series() -> None:
    reader = ExpositionReader(frozenset({"a"}))
    assert reader.read("a 1\nx 2\n").layout.lines == 2
    assert reader.read("# TYPE a gauge\n").layout.lines == 0
