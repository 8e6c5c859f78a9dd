"""The cost of a batch follows from request counters, however long an execution and a tick are."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from headroom.api.service_spec.custom_metrics import CustomMetrics
from headroom.scaling.values.observation import PodSample
from headroom.telemetry.samples.accounts import Batch
from headroom.telemetry.samples.pod_samples import PodSamples

PROFILE = CustomMetrics.model_validate(
    {
        "inFlight": {"name": "in_flight"},
        "answered": {"name": "done_total"},
        "runningTime": {"name": "run_seconds_total"},
    }
).to_profile(8000)
TICK_S, LASTED_S = 2.0, 600.0


def saturated(slots: int, together: int, took_s: float) -> list[tuple[float, int]]:
    """Return when requests end, and how many, if each of the slots always works, one by one."""
    number = int(slots * LASTED_S / took_s)
    return [((one + 1) * took_s / slots, together) for one in range(number)]


def executed(
    batch: Batch, ends: Sequence[tuple[float, int]], took_s: float, restart_s: float = LASTED_S
) -> tuple[float, float]:
    """Return the size and the seconds of a batch, as they are derived until the end."""
    samples = PodSamples(PROFILE, None, batch)
    sample: PodSample | None = None
    for tick in range(int(LASTED_S / TICK_S)):
        now_s = tick * TICK_S
        begun_s = restart_s if now_s >= restart_s else 0.0
        done = sum(number for end_s, number in ends if begun_s < end_s <= now_s)
        page = f"in_flight 1\ndone_total {done}\nrun_seconds_total {done * took_s}\n"
        sample = samples.take(page, pod="u", time_s=1000.0 + now_s)
    assert sample is not None
    return sample.batch_items / sample.batches, sample.batch_seconds / sample.batches


@pytest.mark.parametrize("took_s", [0.5, 2.0, 3.0, 5.0, 30.0])
@pytest.mark.parametrize(("slots", "largest"), [(1, 1), (1, 8), (2, 1), (4, 1), (4, 8)])
def test_full_batches_of_a_saturated_replica(slots: int, largest: int, took_s: float) -> None:
    size, mean_s = executed(
        Batch(largest=largest, slots=slots), saturated(slots, largest, took_s), took_s
    )
    assert size == pytest.approx(largest, rel=0.1)
    assert mean_s / size == pytest.approx(took_s / largest, rel=0.01)


@pytest.mark.parametrize("took_s", [0.5, 5.0, 30.0])
def test_requests_that_join_a_running_batch(took_s: float) -> None:
    size, mean_s = executed(Batch(largest=8), saturated(8, 1, took_s), took_s)
    assert size == pytest.approx(8.0, rel=0.05)
    assert mean_s == pytest.approx(took_s, rel=0.05)


@pytest.mark.parametrize(
    ("together", "took_s", "seen"),
    [
        (1, 0.5, 1),
        (1, 5.0, 1),
        (1, 30.0, 1),
        (8, 0.5, 2),  # on average, over the 2 s of its page
        (8, 5.0, 8),
        (8, 30.0, 8),
    ],
)
def test_idle_time_before_a_batch_is_not_its_own(together: int, took_s: float, seen: int) -> None:
    ends = [(minute * 60.0 + took_s, together) for minute in range(10)]
    size, mean_s = executed(Batch(largest=8), ends, took_s)
    assert size == pytest.approx(seen)
    assert mean_s == pytest.approx(took_s)


def test_time_in_the_queue_that_counts_as_execution_time_is_left_out() -> None:
    """A full batch ends every 4 s; each request was 36 s in the queue before."""
    size, mean_s = executed(Batch(largest=8), saturated(1, 8, 4.0), 40.0)
    assert size == pytest.approx(8.0)
    assert mean_s == pytest.approx(4.0, rel=0.01)


def test_restarted_server_begins_with_a_time_of_its_own() -> None:
    """Its last request ended 98 s before, so that the first new one may seem to take as long."""
    ends = [(2.0, 1), (4.0, 1), (107.0, 1)]
    _, mean_s = executed(Batch(largest=1), ends, 5.0, restart_s=102.0)
    assert mean_s == pytest.approx(5.0)
