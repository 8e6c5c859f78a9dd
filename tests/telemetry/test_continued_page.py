"""A series that a server drops takes nothing from its sums, and adds nothing when it is back."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Mapping

import pytest

from headroom.api.service_spec.custom_metrics import CustomMetrics
from headroom.profiles import PROFILES, Profile
from headroom.telemetry.errors import MissingMetric
from headroom.telemetry.pages.exposition import Series
from headroom.telemetry.samples.accounts import Batch
from headroom.telemetry.samples.pod_samples import PodSamples

PROFILE = CustomMetrics.model_validate(
    {
        "inFlight": {"name": "in_flight", "absentIsZero": True},
        "answered": {"name": "done_total", "absentIsZero": True},
        "missed": {"name": "failed_total", "absentIsZero": True},
        "latency": {"name": "took_seconds", "absentIsZero": True},
        "runningTime": {"name": "run_seconds_total", "absentIsZero": True},
    }
).to_profile(8000)
Page = Mapping[str, tuple[int, int]]
"""Requests by worker: finished ones, and running ones."""


def text(page: Page, bound: str = "1") -> str:
    lines = ["up 1"]
    for worker, (done, running) in page.items():
        lines += [
            f'in_flight{{worker="{worker}"}} {running}',
            f'done_total{{worker="{worker}"}} {done}',
            f'run_seconds_total{{worker="{worker}"}} {0.1 * done}',
            f'took_seconds_bucket{{worker="{worker}",le="{bound}"}} {done}',
            f'took_seconds_bucket{{worker="{worker}",le="+Inf"}} {done}',
        ]
    return "\n".join(lines) + "\n"


def read(*pages: str) -> list[tuple[float, float, int]]:
    """Return arrivals, answers and requests in flight by each page."""
    samples = PodSamples(PROFILE, None, Batch(largest=8))
    found = []
    for number, page in enumerate(pages):
        one = samples.take(page, pod="u", time_s=100.0 + 2.0 * number)
        assert one is not None
        answered = one.latency.counts[-1] if one.latency.counts else 0.0
        found.append((one.arrivals, answered, one.waiting + one.running))
    return found


BOTH: Page = {"a": (1_000_000, 3), "b": (500_000, 2)}


@pytest.mark.parametrize(
    ("then", "arrivals", "answered", "in_flight"),
    [
        pytest.param({"b": (500_080, 2)}, 1_500_082, 1_500_080, 2, id="one is gone"),
        pytest.param({"b": (500_080, 2), "c": (7, 1)}, 1_500_090, 1_500_087, 3, id="another came"),
        pytest.param({"c": (7, 1)}, 1_500_008, 1_500_007, 1, id="all are others"),
        pytest.param({}, 1_500_005, 1_500_000, 0, id="none is left"),
        pytest.param({"b": (60, 2)}, 62, 60, 2, id="the process restarted"),
        pytest.param({"a": (9, 0), "b": (60, 2)}, 71, 69, 2, id="it restarted with all series"),
    ],
)
def test_sum_goes_on_without_a_series(
    then: Page, arrivals: int, answered: int, in_flight: int
) -> None:
    assert read(text(BOTH), text(then))[1] == (arrivals, answered, in_flight)


def test_series_that_is_back_goes_on() -> None:
    without: Page = {"b": (500_080, 0)}
    back: Page = {"a": (1_000_040, 0), "b": (500_160, 0)}
    taken = read(text(BOTH), text(without), text(without), text(back))
    assert [answered for _, answered, _ in taken] == [1_500_000, 1_500_080, 1_500_080, 1_500_200]


def test_series_of_a_process_that_restarted_without_any_start_at_zero() -> None:
    taken = read(text(BOTH), text({}), text({"b": (60, 2)}), text({"a": (1, 0), "b": (90, 0)}))
    assert [answered for _, answered, _ in taken] == [1_500_000, 1_500_000, 60, 91]


def test_buckets_with_other_bounds_start_at_zero() -> None:
    later = text({"b": (2_000_000, 0)}, bound="2")
    assert [answered for _, answered, _ in read(text(BOTH), later)] == [1_500_000, 2_000_000]


def test_other_series_on_each_page_are_not_kept_without_bound() -> None:
    samples = PodSamples(PROFILE, None, Batch(largest=8))
    for number in range(40):
        page = text({f"w{number}-{one}": (1, 0) for one in range(10)})
        assert samples.take(page, pod="u", time_s=100.0 + number) is not None
    source = samples.readings["u"].source
    assert source is not None
    assert len(source.values) < 1100


def test_page_of_another_server_is_rejected_though_series_are_known() -> None:
    samples = PodSamples(PROFILES["mlserver"], None, Batch(largest=8))
    page = (
        'python_info{version="3"} 1\n'
        'rest_server_requests_total{path="/v2/models/m/infer",status_code="200"} 90\n'
    )
    assert samples.take(page, pod="u", time_s=100.0) is not None
    with pytest.raises(MissingMetric):
        samples.take("go_info 1\n", pod="u", time_s=102.0)


@pytest.mark.parametrize(
    ("services", "pods", "layouts"),
    [
        pytest.param(1, 30, 1, id="many pods with series of their own"),
        pytest.param(6, 1, 8, id="custom metrics of many services"),
    ],
)
def test_what_is_kept_of_all_pods_is_bounded_whatever_they_send(
    services: int, pods: int, layouts: int
) -> None:
    """Without a bound of all, 60 000 and 96 000 series are kept; each takes some 600 bytes."""
    names = [f"done_{one}_total" for one in range(services)]
    kept = {one: PodSamples(named(one), None, Batch(largest=8)) for one in names}
    for turn, (one, samples) in itertools.product(range(2 * layouts), kept.items()):
        for pod in range(pods):
            page = hostile(one, f"{pod}-{turn // 2}")
            samples.take(page, pod=f"{pod}", time_s=100.0 + 2.0 * turn)
    gc.collect()
    assert sum(type(one) is Series for one in gc.get_objects()) < 41_000


def named(counter: str) -> Profile:
    metrics = {"inFlight": {"name": "in_flight"}, "answered": {"name": counter}}
    metrics["runningTime"] = {"name": "run_seconds_total"}
    return CustomMetrics.model_validate(metrics).to_profile(8000)


def hostile(counter: str, mark: str) -> str:
    lines = "".join(f'{counter}{{a="{mark}-{number}"}} 0\n' for number in range(2000))
    return f"in_flight 1\nrun_seconds_total 0\n{lines}"
