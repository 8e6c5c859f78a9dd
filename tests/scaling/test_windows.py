"""Windows over cumulative counters: what a window holds after every kind of accident."""

from __future__ import annotations

import math

import numpy as np
import pytest

from headroom.scaling.histogram import attainment, percentile
from headroom.scaling.values import Observation, Pod, PodState
from headroom.scaling.windows import Windows
from scaling_world import ready_pod, sample


def watch(
    scrapes: dict[float, dict[str, float]], pods: dict[str, Pod] | None = None
) -> tuple[Windows, Observation]:
    """Feed arrivals counters by time and pod; return the windows and the last observation."""
    windows, observation = Windows(), Observation(now_s=0.0, current=1)
    for now_s, counters in scrapes.items():
        known = pods or {uid: ready_pod(uid, created_s=-100.0) for uid in counters}
        observation = Observation(
            now_s=now_s,
            current=1,
            pods=tuple(pod for pod in known.values() if pod.created_s <= now_s),
            samples=tuple(sample(uid, now_s, value) for uid, value in counters.items()),
        )
        windows = windows.absorb(observation)
    return windows, observation


@pytest.mark.parametrize(
    ("scrapes", "expected"),
    [
        pytest.param({0: {"a": 100}}, 0, id="the first scrape of an old pod is a baseline"),
        pytest.param({0: {"a": 100}, 2: {"a": 110}}, 10, id="a window is a difference"),
        pytest.param(
            {0: {"a": 100}, 2: {}, 4: {"a": 130}}, 30, id="a lost scrape costs no request"
        ),
        pytest.param(
            {0: {"a": 100}, 2: {"a": 110}, 4: {"a": 3}}, 13, id="a restarted process goes on from 0"
        ),
        pytest.param({0: {"a": 100, "b": 50}, 2: {"a": 110, "b": 51}}, 11, id="pods add up"),
        pytest.param(
            {0: {"a": 0}, 2: {"a": 50}, 4: {"a": 50}, 6: {"a": 50}},
            25,
            id="a window of 5 s holds half of what came between 0 and 2",
        ),
    ],
)
def test_arrivals_of_the_last_five_seconds(
    scrapes: dict[float, dict[str, float]], expected: float
) -> None:
    windows, _ = watch(scrapes)
    assert windows.total(5.0).arrivals == pytest.approx(expected)


def test_a_silent_ready_pod_keeps_its_last_window() -> None:
    pods = {"a": ready_pod("a", created_s=-100.0)}
    scrapes: dict[float, dict[str, float]] = {0: {"a": 0}, 2: {"a": 20}, 20: {}}
    windows, _ = watch(scrapes, pods)
    assert windows.total(2.0).arrivals == pytest.approx(20)


def test_a_pod_that_went_counts_only_with_what_it_took() -> None:
    windows, _ = watch({0: {"a": 0, "b": 0}, 2: {"a": 20, "b": 20}})
    gone = Observation(
        now_s=4.0,
        current=1,
        pods=(ready_pod("a", created_s=-100.0),),
        samples=(sample("a", 4, 60),),
    )
    windows = windows.absorb(gone)
    assert windows.total(2.0).arrivals == pytest.approx(40)  # b took nothing since 2 s
    assert windows.total(4.0).arrivals == pytest.approx(80)


def test_a_pod_born_under_our_eyes_counts_from_zero() -> None:
    pods = {
        "a": ready_pod("a", created_s=-100.0),
        "b": ready_pod("b", created_s=1.0, ready_s=3.0),
    }
    scrapes: dict[float, dict[str, float]] = {0: {"a": 0}, 2: {"a": 0}, 4: {"a": 0, "b": 7}}
    windows, _ = watch(scrapes, pods)
    assert windows.total(4.0).arrivals == pytest.approx(7)


def test_older_and_repeated_scrapes_change_nothing() -> None:
    windows, observation = watch({0: {"a": 0}, 2: {"a": 10}})
    stale = Observation(
        now_s=3.0,
        current=1,
        pods=observation.pods,
        samples=(sample("a", 1.0, 5), sample("a", 2, 9)),
    )
    assert windows.absorb(stale).total(10.0).arrivals == pytest.approx(10)


def test_a_pod_that_is_not_ready_is_no_reason_to_hold_its_load() -> None:
    pods = {"a": Pod(uid="a", state=PodState.BROKEN, created_s=-100.0)}
    windows, _ = watch({0: {"a": 0}, 2: {"a": 20}, 60: {}}, pods)
    assert windows.total(5.0).arrivals == 0


BOUNDS = (0.1, 0.2, math.inf)


@pytest.mark.parametrize(
    ("counts", "missed", "expected"),
    [
        ((90, 100, 100), 0, 0.15),
        ((100, 100, 100), 0, 0.095),
        ((0, 0, 0), 0, None),
        ((94, 94, 94), 6, math.inf),
        ((96, 96, 96), 4, 0.1 * 95 / 96),
        ((90, 90, 100), 0, math.inf),
    ],
    ids=[
        "inside a bucket",
        "in the first",
        "no request",
        "misses are +Inf",
        "few misses",
        "beyond",
    ],
)
def test_the_95th_percentile(
    counts: tuple[float, ...], missed: float, expected: float | None
) -> None:
    result = percentile(BOUNDS, np.array(counts, dtype=float), missed, 0.95)
    assert result == (expected if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(
    ("target_s", "missed", "expected"),
    [(0.1, 0, 0.5), (0.15, 0, 0.7), (0.2, 0, 0.9), (5.0, 0, 0.9), (0.2, 100, 0.45)],
)
def test_attainment_counts_misses_as_late(target_s: float, missed: float, expected: float) -> None:
    counts = np.array((50.0, 90.0, 100.0))
    assert attainment(BOUNDS, counts, missed, target_s) == pytest.approx(expected)
