"""Pages of one server in turn: counters that fall, batches that none executes, repeats."""

from __future__ import annotations

import re

import pytest

from headroom.profiles.headroom import HEADROOM
from headroom.scaling.values.observation import PodSample
from headroom.telemetry.errors import (
    InvalidMetric,
    RepeatedPage,
)
from headroom.telemetry.samples.pod_samples import PodSamples
from support.pods_world import page
from telemetry.changed_pages import PAGE, read, with_value, without


class Pages:
    """Two pages of one server, two seconds apart."""

    def __init__(self) -> None:
        self.samples = PodSamples(HEADROOM, "resnet")
        self.samples.take(page(model="resnet", served=1000, running=3), pod="uid-1", time_s=12.0)

    def then(self, text: str, time_s: float = 14.0) -> PodSample | None:
        return self.samples.take(text, pod="uid-1", time_s=time_s)


def test_all_counters_fall_when_a_process_restarts() -> None:
    sample = Pages().then(page(model="resnet", served=5))
    assert sample is not None
    assert sample.arrivals == 5


def test_counter_that_falls_alone_is_rejected_until_the_page_before_is_old() -> None:
    fallen = page(model="resnet", served=1010).replace(
        'duration_seconds_count{model="resnet"} 1010', 'duration_seconds_count{model="resnet"} 10'
    )
    pages = Pages()
    with pytest.raises(InvalidMetric, match=r"seconds_count must not fall while .* rises; got 10"):
        pages.then(fallen)
    assert pages.then(fallen, time_s=140.0) is not None


def test_seconds_that_fall_alone_are_rejected() -> None:
    """A lone fall is a wrong page; what came after it would be an execution of hours."""
    true = page(model="resnet", served=1010)
    name = 'headroom_execution_duration_seconds_sum{model="resnet"}'
    (line,) = [line for line in true.splitlines() if line.startswith(name)]
    with pytest.raises(InvalidMetric, match=r"seconds_sum must not fall while .* rises; got 0.5"):
        Pages().then(true.replace(line, f"{name} 0.5"))


def test_bucket_that_falls_alone_is_rejected() -> None:
    with pytest.raises(InvalidMetric, match="duration_seconds_bucket must not fall in one bucket"):
        Pages().then(page(model="resnet", served=1010, late=500))


@pytest.mark.parametrize(
    ("late", "time_s", "accepted"), [(3, 14.0, True), (30, 14.0, False), (30, 50.0, True)]
)
def test_requests_longer_than_the_interval_were_in_flight_before(
    late: int, time_s: float, accepted: bool
) -> None:
    """The late ones take more than a minute."""
    text = page(model="resnet", served=1050, late=late)
    text = re.sub(r'(le="(?:[4-9]|[1-3][0-9])[^"]*"}) .*', rf"\g<1> {1050 - late}", text)
    if accepted:
        assert Pages().then(text, time_s) is not None
        return
    with pytest.raises(InvalidMetric, match="must contain at most 3 requests longer than"):
        Pages().then(text, time_s)


def second_page(
    batches: float, items: float, seconds: float, first: str = PAGE
) -> PodSample | None:
    """Read a first page, and two seconds later PAGE on which these were added."""
    pages = PodSamples(HEADROOM, "resnet")
    pages.take(first, pod="uid-1", time_s=12.0)
    added = {
        "headroom_execution_duration_seconds_count": 40 + batches,
        "headroom_batch_size_sum": 40 + items,
        "headroom_execution_duration_seconds_sum": 40 * 0.21 + seconds,
        "headroom_scrapes_total": 8,
    }
    text = PAGE
    for metric, value in added.items():
        text = re.sub(rf"^({metric}(?:{{[^}}]*}})?) .*$", rf"\1 {value}", text, flags=re.MULTILINE)
    return pages.take(text, pod="uid-1", time_s=14.0)


@pytest.mark.parametrize(
    ("batches", "items", "seconds"),
    [
        (0, 0, 0.0),
        (1, 4, 0.4),
        (10, 40, 4.0),
        (10, 10, 2.1),
        (1, 0, 0.2),
        (0, 4, 0.0),
        (1, 4, 80.0),
        (1, 4, 2 * 86_400.0),
    ],
)
def test_batches_of_a_server_are_accepted(batches: float, items: float, seconds: float) -> None:
    """The counters of one page may be one batch apart."""
    assert second_page(batches, items, seconds) is not None


@pytest.mark.parametrize("name", ["unknown", "8"])
def test_batch_may_be_as_large_as_the_page_before_says(name: str) -> None:
    """A server that loads another version may begin to state its largest batch, or change it."""
    metric = "headroom_max_batch_size"
    first = without(metric) if name == "unknown" else with_value(metric, name)
    items = 4 if name == "unknown" else 16
    assert second_page(1, items, 0.4, first) is not None


@pytest.mark.parametrize(
    ("batches", "items", "seconds", "metric"),
    [
        (1, 104, 0.4, "headroom_batch_size_sum"),
        (10, 45, 4.0, "headroom_batch_size_sum"),
        (10, 1e12, 4.0, "headroom_batch_size_sum"),
        (1e12, 40, 4.0, "headroom_execution_duration_seconds_count"),
        (10, 8, 4.0, "headroom_execution_duration_seconds_count"),
        (1, 4, 2 * 86_401.0, "headroom_execution_duration_seconds_sum"),
    ],
)
def test_batches_that_no_server_executes_are_rejected(
    batches: float, items: float, seconds: float, metric: str
) -> None:
    with pytest.raises(InvalidMetric) as raised:
        second_page(batches, items, seconds)
    assert raised.value.metric == metric


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (with_value("headroom_requests_waiting", "1.5"), "must be a whole number"),
        (with_value("headroom_max_batch_size", "0"), "must be at least 1"),
        (
            PAGE + 'headroom_requests_waiting{model="resnet"} 1\n',
            "must appear once with its labels",
        ),
        (PAGE.replace('le="+Inf"', 'le="100"'), "must have +Inf as its last bound"),
        (PAGE.replace('le="0.001"', 'le="NaN"'), "must have numbers as values of le"),
        (PAGE.replace('le="0.001"', 'le="low"'), "must have numbers as values of le"),
        (PAGE.replace('le="0.001"', 'le="0.00115"'), "must appear once with its labels"),
        (PAGE.replace('le="0.001"', 'le="1.15e-3"'), "must have each bound once"),
        (re.sub(r'(le="0.001"}) 0', r"\1 7", PAGE), "must not decrease from bound to bound"),
    ],
)
def test_contradictory_page_is_rejected(text: str, rule: str) -> None:
    with pytest.raises(InvalidMetric) as raised:
        read(text)
    assert raised.value.rule == rule


def test_repeated_page_is_rejected() -> None:
    samples = PodSamples(HEADROOM, "resnet")
    assert samples.take(PAGE, pod="uid-1", time_s=12.0)
    with pytest.raises(
        RepeatedPage, match="headroom_scrapes_total must increase with each page; got 7 again"
    ):
        samples.take(PAGE, pod="uid-1", time_s=14.0)
    assert samples.take(PAGE, pod="uid-2", time_s=14.0), "of another pod"
    for number, time_s in (("9", 16.0), ("1", 18.0)):  # another reader between; a restart
        page = with_value("headroom_scrapes_total", number)
        later = samples.take(page, pod="uid-1", time_s=time_s)
        assert later is not None
        assert later.time_s == time_s
