"""The metrics page: names and types, one consistent instant, parsed by the reference parser."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from headroom_server.engine import StageTimes
from headroom_server.lifecycle import Phase
from headroom_server.scheduling.cost_model import CostModel
from headroom_server.scheduling.entries import CloseReason
from headroom_server.telemetry.accounting import STAGES, Batch, Ledger, Outcome
from headroom_server.telemetry.histograms import LATENCY_BOUNDS_S, Histogram, label
from headroom_server.telemetry.metrics import render
from headroom_server.telemetry.snapshot import DeviceStatus, Snapshot

STAGE_TIMES = StageTimes(0.1, 0.2, 0.4, 0.3)
NAMES = {
    "requests_received": "counter",
    "requests_retried": "counter",
    "requests": "counter",
    "requests_refused": "counter",
    "requests_invalid": "counter",
    "deadlines_met": "counter",
    "deadlines_missed": "counter",
    "device_busy_seconds": "counter",
    "device_wasted_seconds": "counter",
    "batch_close": "counter",
    "requests_waiting": "gauge",
    "requests_running": "gauge",
    "oldest_waiting_seconds": "gauge",
    "max_batch_size": "gauge",
    "predicted_queue_delay_seconds": "gauge",
    "saturation": "gauge",
    "cost_residual_p95_ratio": "gauge",
    "cost_fixed_seconds": "gauge",
    "cost_per_item_seconds": "gauge",
    "capacity_requests_per_second": "gauge",
    "ready": "gauge",
    "draining": "gauge",
    "scrapes": "counter",
    "startup_phase_seconds": "gauge",
    "request_duration_seconds": "histogram",
    "queue_duration_seconds": "histogram",
    "execution_duration_seconds": "histogram",
    "batch_size": "histogram",
    "padding_ratio": "histogram",
    "batch_stage_duration_seconds": "histogram",
    "batch_budget_ratio": "gauge",
    "engine_info": "gauge",
}


def snapshot(
    ledger: Ledger,
    *,
    cost: CostModel | None = None,
    waiting: int = 0,
    devices: Sequence[DeviceStatus] = (DeviceStatus(1.0, True),),
) -> Snapshot:
    return Snapshot(
        model="m",
        engine="emulated",
        device="emulated",
        emulated=True,
        ledger=ledger,
        waiting=waiting,
        oldest_waiting_s=0.5,
        delay_s=None if cost is None else 0.02,
        saturation=None if cost is None else 0.3,
        max_batch_size=8,
        budget_share=1.0,
        devices=devices,
        cost=cost,
        ready=True,
        draining=False,
        phase_s={Phase.INIT: 0.1, Phase.LOAD: 2.0, Phase.WARM: 1.0, Phase.SELFTEST: 0.5},
    )


def samples(ledger: Ledger, **fields: object) -> dict[str, float]:
    text = render(snapshot(ledger, **fields)).decode()  # type: ignore[arg-type]
    return {
        sample.name
        + "".join(f"|{v}" for k, v in sample.labels.items() if k != "model"): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_page_has_every_metric_with_its_type() -> None:
    cost = CostModel.from_warm_up([(1, 0.0065), (8, 0.01)])
    text = render(snapshot(Ledger(), cost=cost)).decode()
    families = {f.name: f.type for f in text_string_to_metric_families(text)}
    assert families == {f"headroom_{name}": kind for name, kind in NAMES.items()}


def test_latency_buckets_are_fixed() -> None:
    ledger = Ledger()
    text = render(snapshot(ledger)).decode()
    prefix = 'headroom_request_duration_seconds_bucket{model="m",le="'
    labels = [
        line.removeprefix(prefix).split('"')[0] for line in text.splitlines() if prefix in line
    ]
    assert labels == [*(format(0.001 * 1.15**k, ".6g") for k in range(80)), "+Inf"]


def test_device_label_exists_only_for_several_devices() -> None:
    cost = CostModel.from_warm_up([(1, 0.0065), (8, 0.01)])
    ledger = Ledger()
    ledger.busy_s = 3.0
    one = samples(ledger, cost=cost)
    assert one["headroom_device_busy_seconds_total"] == 3.0
    assert one["headroom_capacity_requests_per_second"] == pytest.approx(800)
    assert "headroom_device_healthy" not in one
    three = (DeviceStatus(1.0, True), DeviceStatus(2.0, True), DeviceStatus(0.0, False))
    seen = samples(ledger, cost=cost, devices=three)
    assert [seen[f"headroom_device_busy_seconds_total|{n}"] for n in range(3)] == [1.0, 2.0, 0.0]
    assert [seen[f"headroom_device_healthy|{n}"] for n in range(3)] == [1, 1, 0]
    assert seen["headroom_capacity_requests_per_second"] == pytest.approx(1600), "two of three"


def test_unmeasured_series_are_absent() -> None:
    assert "headroom_cost_fixed_seconds" not in samples(Ledger())
    assert "headroom_capacity_requests_per_second" not in samples(Ledger())


@given(st.lists(st.sampled_from(Outcome)), st.integers(0, 20), st.integers(0, 20))
def test_received_equals_outcomes_plus_in_flight(
    outcomes: list[Outcome], waiting: int, running: int
) -> None:
    ledger = Ledger()
    for outcome in outcomes:
        ledger.received += 1
        ledger.end(outcome, 0.01)
    ledger.received += waiting + running
    seen = samples(ledger, waiting=waiting)
    ended = {one: seen[f"headroom_requests_total|{one}"] for one in Outcome}
    assert seen["headroom_requests_received_total"] == sum(ended.values()) + waiting + running
    assert seen["headroom_requests_running"] == running
    assert (
        seen["headroom_request_duration_seconds_count"]
        == ended[Outcome.OK] + ended[Outcome.INVALID]
    )


@pytest.mark.parametrize(
    ("outcome", "took_s", "met", "missed"),
    [
        (Outcome.OK, 0.5, 1, 0),
        (Outcome.OK, 1.0, 1, 0),
        (Outcome.OK, 1.1, 0, 1),
        (Outcome.REFUSED, 0.1, 0, 1),
        (Outcome.EXPIRED, 1.0, 0, 1),
        (Outcome.FAILED, 0.1, 0, 1),
        (Outcome.CANCELLED, 0.1, 0, 0),
        (Outcome.INVALID, 0.1, 0, 0),
    ],
)
def test_deadline_is_met_by_an_answer_in_time_only(
    outcome: Outcome, took_s: float, met: int, missed: int
) -> None:
    ledger = Ledger()
    ledger.end(outcome, took_s)  # without a deadline nothing is met or missed
    ledger.end(outcome, took_s, 1.0)
    assert (ledger.deadlines_met, ledger.deadlines_missed) == (met, missed)


@pytest.mark.parametrize(
    ("failed", "wasted"),
    [
        (False, {"failed": 0.0, "padding": 0.5, "late": 0.375, "cancelled": 0.75}),
        (True, {"failed": 2.0, "padding": 0.0, "late": 0.0, "cancelled": 0.0}),
    ],
)
def test_batch_is_counted_with_the_time_that_it_wasted(
    failed: bool, wasted: dict[str, float]
) -> None:
    ledger = Ledger()
    for _ in range(2):  # of 1 s, a quarter of it padding
        ledger.record_batch(
            Batch(4, 1.0, (0.1, 0.2), CloseReason.FULL, failed, 0.25, 0.5, 0.25, STAGE_TIMES)
        )
    seen = samples(ledger)
    assert {why: seen[f"headroom_device_wasted_seconds_total|{why}"] for why in wasted} == wasted
    histograms = {"execution_duration_seconds": (2, 2.0), "batch_size": (2, 8.0)}
    histograms |= {"queue_duration_seconds": (4, 0.6), "padding_ratio": (2, 0.5)}
    for name, (count, total) in histograms.items():
        assert seen[f"headroom_{name}_count"] == count
        assert seen[f"headroom_{name}_sum"] == pytest.approx(total)
    stage = "headroom_batch_stage_duration_seconds_sum"
    times = [seen[f"{stage}|{one}"] for one in STAGES]
    assert times == pytest.approx([2 * one for one in STAGE_TIMES])
    assert seen["headroom_device_busy_seconds_total"] == 2.0


@given(st.lists(st.floats(0.0, 100.0), max_size=50))
def test_histogram_counts_values_at_or_below_each_bound(values: list[float]) -> None:
    histogram = Histogram(LATENCY_BOUNDS_S)
    for value in values:
        histogram.observe(value)
    so_far = 0
    for bound, count in zip(histogram.bounds, histogram.counts, strict=False):
        so_far += count
        assert so_far == sum(value <= bound for value in values)
    assert histogram.count == len(values)
    assert histogram.total == pytest.approx(sum(values))


def test_latency_bounds_differ_by_at_most_15_percent() -> None:
    bounds = [float(label(bound)) for bound in LATENCY_BOUNDS_S]
    assert all(b / a <= 1.1501 for a, b in pairwise(bounds))
