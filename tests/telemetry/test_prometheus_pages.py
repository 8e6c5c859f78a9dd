"""The latest complete page of each pod is taken from a Prometheus response."""

from __future__ import annotations

import math
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.profiles import PROFILES
from headroom.telemetry.errors import InvalidMetric
from headroom.telemetry.pages.exposition import ExpositionReader
from headroom.telemetry.prometheus_pages import MalformedResponse, PageReader, ScrapedPage
from headroom.telemetry.samples.accounts import Batch
from headroom.telemetry.samples.pod_samples import PodSamples


def series(name: str, pod: str, *points: tuple[float, str], **labels: str) -> dict[str, Any]:
    metric = {"__name__": name, "pod": pod, "namespace": "shop", "job": "x", **labels}
    return {"metric": metric, "values": [list(point) for point in points]}


def read(*result: dict[str, Any], replica_labels: tuple[str, ...] = ()) -> dict[str, ScrapedPage]:
    return PageReader(replica_labels).read(list(result))


def values(page: ScrapedPage) -> dict[str, float]:
    named = zip(page.page.layout.series, page.page.values, strict=True)
    return {one.name: value for one, value in named}


def test_latest_page_of_each_pod_has_its_scrape_time() -> None:
    found = read(
        series("a", "p", (10.0, "1"), (25.0, "2")),
        series("b", "p", (10.0, "3"), (25.0, "4")),
        series("a", "q", (12.5, "5")),
    )
    assert values(found["p"]) == {"a": 2.0, "b": 4.0}
    assert (found["p"].time_s, found["q"].time_s) == (25.0, 12.5)
    assert values(found["q"]) == {"a": 5.0}


def test_removed_series_is_not_in_the_latest_page() -> None:
    found = read(series("a", "p", (10.0, "1"), (25.0, "2")), series("b", "p", (10.0, "3")))
    assert values(found["p"]) == {"a": 2.0}


def test_two_prometheus_replicas_are_not_added_up() -> None:
    found = read(
        series("a", "p", (20.0, "1"), prometheus_replica="0"),
        series("a", "p", (24.0, "2"), prometheus_replica="1"),
        series("b", "p", (20.0, "3"), prometheus_replica="0"),
    )
    assert values(found["p"]) == {"a": 2.0}
    assert found["p"].time_s == 24.0


def test_two_prometheus_replicas_at_the_same_time_are_not_mixed() -> None:
    both = [
        series("a", "p", (20.0, "7"), ha="0"),
        series("a", "p", (20.0, "7"), ha="1"),
    ]
    assert list(read(*both, replica_labels=("ha",))["p"].page.values) == [7.0]
    # Under a label that is not a replica label they are series of the server itself.
    assert list(read(*both)["p"].page.values) == [7.0, 7.0]


def test_scrape_labels_are_removed() -> None:
    found = read(series("a", "p", (1.0, "1"), instance="10.0.0.1:80", model="m"))
    (one,) = found["p"].page.layout.series
    assert (one.name, dict(one.labels)) == ("a", {"model": "m"})


def test_series_with_and_without_a_label_are_one_page() -> None:
    found = read(series("a", "p", (1.0, "1"), endpoint="/x"), series("b", "p", (1.0, "2")))
    assert values(found["p"]) == {"a": 1.0, "b": 2.0}


def test_nan_reaches_the_reader_that_rejects_it() -> None:
    found = read(
        series("mosec_service_remaining_task", "p", (1.0, "NaN")),
        series("mosec_service_remaining_task", "q", (1.0, "3")),
    )
    samples = PodSamples(PROFILES["mosec"], None, Batch(largest=8))
    assert math.isnan(found["p"].page.values[0])
    with pytest.raises(InvalidMetric, match="finite"):
        samples.take(found["p"].page, pod="p", time_s=1.0)
    assert samples.take(found["q"].page, pod="q", time_s=1.0) is not None


def test_pages_with_the_same_series_share_the_layout() -> None:
    reader = PageReader()
    first = reader.read([series("b", "p", (1.0, "1")), series("a", "p", (1.0, "2"))])
    second = reader.read([series("a", "p", (2.0, "3")), series("b", "p", (2.0, "4"))])
    assert first["p"].page.layout is second["p"].page.layout
    assert list(second["p"].page.values) == [3.0, 4.0]


def test_memory_of_layouts_is_bounded_in_bytes() -> None:
    """A pod of one tenant may have other labels on each page, as long as its scraper lets it."""
    reader = PageReader()
    tracemalloc.start()
    for at in range(400):
        long = {f"l{at}": f"{at}" + "x" * 100_000}
        reader.read([series("m", "p", (float(at), "1"), **long)])
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 12_000_000


def test_page_from_prometheus_reads_like_a_scraped_one() -> None:
    text = (Path(__file__).parent / "pages" / "vllm_second.prom").read_text()
    profile = PROFILES["vllm"]
    scraped = ExpositionReader(profile.metric_names).read(text)
    result = [
        series(one.name, "p", (5.0, repr(value)), **one.labels)
        for one, value in zip(scraped.layout.series, scraped.values, strict=True)
    ]
    batch = Batch(largest=64)
    direct = PodSamples(profile, None, batch).take(text, pod="u", time_s=5.0)
    asked = PodSamples(profile, None, batch).take(
        read(*reversed(result))["p"].page, pod="u", time_s=5.0
    )
    assert asked == direct


@pytest.mark.parametrize(
    "result",
    [
        None,
        {},
        [None],
        [{}],
        [{"metric": [], "values": []}],
        [{"metric": {"a": 1}, "values": []}],
        [{"metric": {}, "values": [[1]]}],
        [{"metric": {}, "values": [["1", "1"]]}],
        [{"metric": {}, "values": [[True, "1"]]}],
        [{"metric": {}, "values": [[1, 1]]}],
        [{"metric": {}, "values": [[1, "1_0"]]}],
        [{"metric": {}, "values": [[1, "one"]]}],
        [{"metric": {}, "values": [[1, "1.2.3"]]}],
        [{"metric": {}, "values": 5}],
    ],
)
def test_malformed_response_is_rejected(result: Any) -> None:
    with pytest.raises(MalformedResponse, match="got"):
        PageReader().read(result)


def test_native_histogram_and_empty_series_are_ignored() -> None:
    assert PageReader().read([{"metric": {"__name__": "a"}, "histograms": [[1, {}]]}]) == {}
    assert PageReader().read([{"metric": {"__name__": "a"}, "values": []}]) == {}


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5) | st.integers(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["metric", "values", "pod", "x"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(JSON | st.lists(st.fixed_dictionaries({"metric": JSON, "values": JSON}), max_size=3))
def test_any_json_is_read_or_rejected(result: Any) -> None:
    try:
        found = PageReader().read(result)
    except MalformedResponse:
        return
    assert all(len(one.page.values) == len(one.page.layout.series) for one in found.values())
