"""One page of our server yields one sample, or an error that names the metric."""

from __future__ import annotations

import math
import re

import pytest

from headroom.profiles.headroom import HEADROOM
from headroom.scaling.values.observation import CostModel, PodSample
from headroom.telemetry.errors import (
    InvalidMetric,
    MissingMetric,
    RepeatedPage,
    TelemetryError,
)
from headroom.telemetry.headroom_page import read_sample
from headroom.telemetry.pod_samples import PodSamples
from pods_world import page

GENERATION = frozenset(HEADROOM.generation.metric_names() if HEADROOM.generation else ())
TOKEN_LATENCIES = {
    "headroom_time_to_first_token_seconds_bucket",
    "headroom_time_per_output_token_seconds_bucket",
}
RETRIED = 'headroom_requests_retried_total{model="resnet"} 6\n'
PAGE = page(model="resnet", served=40) + 'headroom_scrapes_total{model="resnet"} 7\n' + RETRIED
OPTIONAL = {
    "headroom_max_batch_size",
    "headroom_cost_fixed_seconds",
    "headroom_cost_per_item_seconds",
    "headroom_scrapes_total",
    "headroom_requests_retried_total",
}
NOT_ON_PAGE = GENERATION | TOKEN_LATENCIES | {"headroom_request_duration_seconds_sum"}
ON_PAGE = HEADROOM.metric_names - NOT_ON_PAGE | {"headroom_max_batch_size"}


def read(text: str, model: str = "resnet") -> PodSample:
    return read_sample(text, pod="uid-1", model=model, time_s=12.0)


def without(metric: str) -> str:
    return "".join(line for line in PAGE.splitlines(True) if not line.startswith(metric))


def with_value(metric: str, value: str) -> str:
    return re.sub(rf"^({metric}(?:{{[^}}]*}})?) .*$", rf"\1 {value}", PAGE, flags=re.MULTILINE)


def test_page_yields_a_sample() -> None:
    sample = read(PAGE)
    assert (sample.pod, sample.time_s, sample.arrivals, sample.missed) == ("uid-1", 12.0, 40.0, 0.0)
    assert (sample.batches, sample.batch_items) == (40.0, 40.0)
    assert sample.batch_seconds == pytest.approx(40 * 0.21)
    assert sample.cost == CostModel(fixed_s=0.15, per_item_s=0.06, max_batch=4)
    assert len(sample.latency.bounds_s) == 81
    assert sample.latency.bounds_s[-1] == math.inf
    assert sample.latency.counts[-1] == 40.0


def test_every_outcome_except_ok_is_a_miss() -> None:
    label = 'headroom_requests_total{model="resnet",outcome='
    outcomes = {"refused": 1, "expired": 2, "cancelled": 3, "failed": 4, "invented": 5}
    extra = "".join(f'{label}"{outcome}"}} {count}\n' for outcome, count in outcomes.items())
    assert read(PAGE + extra).missed == 15.0


def test_further_tries_are_read_and_an_older_server_reports_none() -> None:
    assert read(PAGE).retried == 6.0
    assert read(without("headroom_requests_retried_total")).retried == 0.0


def test_bucket_order_does_not_matter() -> None:
    lines = PAGE.splitlines(True)
    assert read("".join(reversed(lines))) == read(PAGE)


@pytest.mark.parametrize(
    "metric",
    sorted(ON_PAGE - OPTIONAL),
)
def test_missing_required_metric_is_named(metric: str) -> None:
    with pytest.raises(MissingMetric) as raised:
        read(without(metric))
    assert raised.value.metric == metric


@pytest.mark.parametrize("metric", ["headroom_cost_fixed_seconds", "headroom_max_batch_size"])
def test_missing_cost_model_is_none(metric: str) -> None:
    assert read(without(metric)).cost is None


def test_zero_cost_is_none() -> None:
    unmeasured = with_value("headroom_cost_fixed_seconds", "0")
    unmeasured = unmeasured.replace('headroom_cost_per_item_seconds{model="resnet"} 0.06', "")
    assert read(unmeasured).cost is None


@pytest.mark.parametrize("value", ["NaN", "-1", "+Inf"])
@pytest.mark.parametrize("metric", sorted(ON_PAGE))
def test_impossible_value_is_rejected(metric: str, value: str) -> None:
    with pytest.raises(InvalidMetric) as raised:
        read(with_value(metric, value))
    assert raised.value.metric == metric


@pytest.mark.parametrize("metric", sorted(ON_PAGE))
def test_finite_but_absurd_value_is_rejected(metric: str) -> None:
    """1e300 of a cost overflows in the decision's squares; 1e18 batches outweigh all others."""
    for value in ("1e300", "1e18"):
        with pytest.raises(InvalidMetric) as raised:
            read(with_value(metric, value))
        assert raised.value.metric == metric


@pytest.mark.parametrize(
    ("metric", "most", "above"),
    [
        ("headroom_batch_size_sum", 2**53, 2**53 + 2),
        ("headroom_cost_fixed_seconds", 86_400, 86_401),
        ("headroom_max_batch_size", 2**20, 2**20 + 1),
    ],
)
def test_bound_is_what_a_server_can_have(metric: str, most: int, above: int) -> None:
    read(with_value(metric, str(most)))
    with pytest.raises(InvalidMetric, match="must be at most"):
        read(with_value(metric, str(above)))


@pytest.mark.parametrize(
    "metric", ["headroom_requests_waiting", "headroom_requests_received_total"]
)
def test_series_that_are_finite_and_whose_sum_is_not_are_rejected(metric: str) -> None:
    parts = [f'{metric}{{model="resnet",part="{part}"}} 1.7e308\n' for part in "ab"]
    with pytest.raises(InvalidMetric, match=f"{metric} must be at most"):
        read(without(metric) + "".join(parts))


@pytest.mark.parametrize(("waiting", "rule"), [(2**24, None), (2**24 + 1, "must be at most")])
def test_queue_is_bounded_by_what_a_server_can_hold(waiting: int, rule: str | None) -> None:
    text = with_value("headroom_requests_waiting", str(waiting))
    text = text.replace(
        'received_total{model="resnet"} 40', f'received_total{{model="resnet"}} {40 + waiting}'
    )
    if rule is None:
        assert read(text).waiting == waiting
        return
    with pytest.raises(InvalidMetric, match=rule):
        read(text)


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("headroom_requests_received_total", 23),
        ("headroom_requests_received_total", 57),
        ("headroom_requests_waiting", 17),
        ("headroom_requests_running", 17),
    ],
)
def test_request_that_is_nowhere_or_in_two_places_is_rejected(metric: str, value: int) -> None:
    with pytest.raises(InvalidMetric, match=r"received_total must be the 40 answered, 0 missed"):
        read(with_value(metric, str(value)))


def test_requests_between_two_counters_of_a_page_are_accepted() -> None:
    assert read(with_value("headroom_requests_running", "16")).running == 16


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


def second_page(batches: float, items: float, seconds: float) -> PodSample | None:
    """Read PAGE, and two seconds later a page on which these were added."""
    pages = PodSamples(HEADROOM, "resnet")
    pages.take(PAGE, pod="uid-1", time_s=12.0)
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
    ],
)
def test_batches_of_a_server_are_accepted(batches: float, items: float, seconds: float) -> None:
    """The counters of one page may be one batch apart."""
    assert second_page(batches, items, seconds) is not None


@pytest.mark.parametrize(
    ("batches", "items", "seconds", "metric"),
    [
        (1, 104, 0.4, "headroom_batch_size_sum"),
        (10, 45, 4.0, "headroom_batch_size_sum"),
        (10, 1e12, 4.0, "headroom_batch_size_sum"),
        (1e12, 40, 4.0, "headroom_execution_duration_seconds_count"),
        (10, 8, 4.0, "headroom_execution_duration_seconds_count"),
        (1, 4, 1e9, "headroom_execution_duration_seconds_sum"),
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


def test_other_model_is_rejected_and_named() -> None:
    with pytest.raises(MissingMetric, match=r"no series with model='bert'.*model 'resnet'"):
        read(PAGE, model="bert")


def test_two_models_on_a_page_are_distinguished() -> None:
    assert read(PAGE + page(model="bert", served=7), model="bert").arrivals == 7.0


def test_truncated_page_yields_no_sample_at_any_length() -> None:
    for length in range(0, len(PAGE) - 1, 37):
        with pytest.raises(TelemetryError):
            read(PAGE[:length])


def test_repeated_page_is_rejected() -> None:
    samples = PodSamples(HEADROOM, "resnet")
    assert samples.take(PAGE, pod="uid-1", time_s=12.0)
    with pytest.raises(
        RepeatedPage, match="headroom_scrapes_total must increase with each page; got 7 again"
    ):
        samples.take(PAGE, pod="uid-1", time_s=14.0)
    assert samples.take(PAGE, pod="uid-2", time_s=14.0), "of another pod"
    for number, time_s in (("9", 16.0), ("1", 18.0)):  # somebody else looked; it began anew
        page = with_value("headroom_scrapes_total", number)
        later = samples.take(page, pod="uid-1", time_s=time_s)
        assert later is not None
        assert later.time_s == time_s
