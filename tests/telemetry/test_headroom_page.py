"""One page of Headroom's server yields one sample, or an error that names the metric."""

from __future__ import annotations

import math

import pytest

from headroom.scaling.values.observation import CostModel
from headroom.telemetry.errors import (
    InvalidMetric,
    MissingMetric,
    TelemetryError,
)
from support.pods_world import page
from telemetry.changed_pages import ON_PAGE, OPTIONAL, PAGE, read, with_value, without


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


def test_other_model_is_rejected_and_named() -> None:
    with pytest.raises(MissingMetric, match=r"no series with model='bert'.*model 'resnet'"):
        read(PAGE, model="bert")


def test_two_models_on_a_page_are_distinguished() -> None:
    assert read(PAGE + page(model="bert", served=7), model="bert").arrivals == 7.0


def test_truncated_page_yields_no_sample_at_any_length() -> None:
    for length in range(0, len(PAGE) - 1, 37):
        with pytest.raises(TelemetryError):
            read(PAGE[:length])


def test_cost_of_next_to_nothing_is_refused() -> None:
    """A replica that carries any rate made the bound of requests in flight overflow."""
    page_of = PAGE.replace('headroom_cost_per_item_seconds{model="resnet"} 0.06', "")
    assert page_of != PAGE
    item = 'headroom_cost_per_item_seconds{model="resnet"} 0\n'
    tiny = "".join(
        'headroom_cost_fixed_seconds{model="resnet"} 1e-320\n'
        if line.startswith("headroom_cost_fixed_seconds{")
        else line
        for line in page_of.splitlines(True)
    )
    with pytest.raises(InvalidMetric, match="at least 1e-06 s for the largest batch"):
        read(tiny + item)
