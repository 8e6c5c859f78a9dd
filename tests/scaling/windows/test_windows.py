"""Windows over cumulative counters: restarts, lost scrapes, new and deleted pods."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headroom.scaling.values.latency_counts import LatencyCounts
from headroom.scaling.values.observation import Observation, Pod, PodSample, PodState
from headroom.scaling.windows.by_replica import executed_batches
from headroom.scaling.windows.counter_series import HORIZON_S
from headroom.scaling.windows.histogram import (
    at_least_late,
    attainment,
    nearest,
    percentile,
    rebinned,
    undecided,
)
from headroom.scaling.windows.sample_intake import GAP_S
from headroom.scaling.windows.sliding_windows import Windows
from headroom.scaling.windows.window_totals import BatchStats
from support.fakes_scaling import ready_pod, sample, watch


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
def test_arrivals_of_the_last_5_seconds(
    scrapes: dict[float, dict[str, float]], expected: float
) -> None:
    windows, _ = watch(scrapes)
    assert windows.total(5.0).arrivals == pytest.approx(expected)


def test_silent_ready_pod_keeps_its_last_window() -> None:
    pods = {"a": ready_pod("a", created_s=-100.0)}
    scrapes: dict[float, dict[str, float]] = {0: {"a": 0}, 2: {"a": 20}, 20: {}}
    windows, _ = watch(scrapes, pods)
    assert windows.total(2.0).arrivals == pytest.approx(20)


def test_deleted_pod_counts_with_its_requests_until_then() -> None:
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


def test_pod_created_after_the_first_tick_has_no_baseline() -> None:
    pods = {
        "a": ready_pod("a", created_s=-100.0),
        "b": ready_pod("b", created_s=1.0, ready_s=3.0),
    }
    scrapes: dict[float, dict[str, float]] = {0: {"a": 0}, 2: {"a": 0}, 4: {"a": 0, "b": 7}}
    windows, _ = watch(scrapes, pods)
    assert windows.total(4.0).arrivals == pytest.approx(7)


def test_old_and_repeated_scrapes_change_nothing() -> None:
    windows, observation = watch({0: {"a": 0}, 2: {"a": 10}})
    stale = Observation(
        now_s=3.0,
        current=1,
        pods=observation.pods,
        samples=(sample("a", 1.0, 5), sample("a", 2, 9)),
    )
    assert windows.absorb(stale).total(10.0).arrivals == pytest.approx(10)


def test_pod_that_is_not_ready_keeps_no_load() -> None:
    pods = {"a": Pod(uid="a", state=PodState.BROKEN, created_s=-100.0)}
    windows, _ = watch({0: {"a": 0}, 2: {"a": 20}, 60: {}}, pods)
    assert windows.total(5.0).arrivals == 0


@pytest.mark.parametrize("tick_s", [2.0, 30.0])
def test_silent_pod_keeps_its_last_window_while_others_are_scraped(tick_s: float) -> None:
    pods = {uid: ready_pod(uid, created_s=-100.0) for uid in "ab"}
    scrapes = {2.0 * tick: {"a": 10.0 * min(tick, 15), "b": 0.0} for tick in range(31)}
    scrapes |= {60.0 + tick_s * tick: {"b": 0.0} for tick in range(1, 300)}
    windows, _ = watch(scrapes, pods)
    assert windows.arrivals([30.0, 40.0, 60.0]) == pytest.approx([0, 50, 150])
    assert windows.total(20.0, ago_s=25.0).arrivals == pytest.approx(75)
    assert len(windows.series.times_s) <= HORIZON_S / 2.0 + 2


def test_series_are_bounded_and_drop_deleted_pods() -> None:
    pods = {uid: ready_pod(uid, created_s=-100.0) for uid in "ab"}
    scrapes = {2.0 * tick: {"a": 1.0 * tick, "b": 1.0 * tick} for tick in range(200)}
    windows, _ = watch(scrapes, pods)
    points = HORIZON_S / 2.0 + 2  # the one at the horizon and the one before it
    assert len(windows.series.times_s) <= points
    alone = {"a": pods["a"]}
    for tick in range(200, 240):
        windows = windows.absorb(
            Observation(
                now_s=2.0 * tick,
                current=1,
                pods=tuple(alone.values()),
                samples=(sample("a", 2.0 * tick, tick),),
            )
        )
    assert list(windows.series.columns) == ["a"]
    assert windows.total(10.0).arrivals == pytest.approx(5)


WIDE = (0.1, 0.4, math.inf)


def upgraded(uid: str, now_s: float, arrivals: float) -> PodSample:
    """A scrape of a server version with other buckets, in which half of all took over 0.1 s."""
    counts = (arrivals / 2, arrivals, arrivals)
    latency = LatencyCounts(bounds_s=WIDE, counts=counts)
    return replace(sample(uid, now_s, arrivals), latency=latency)


def of_both(now_s: float, samples: tuple[PodSample, ...]) -> Observation:
    pods = tuple(ready_pod(uid, created_s=-100.0) for uid in "ab")
    return Observation(now_s=now_s, current=2, pods=pods, samples=samples)


@pytest.mark.parametrize("newest_first", [False, True])
def test_pods_with_other_histogram_bounds_count_during_a_rollout(newest_first: bool) -> None:
    windows, _ = watch({0: {"a": 0, "b": 0}, 2: {"a": 20, "b": 20}})
    known_s = windows.bounds_s
    for now_s, arrivals in ((4.0, 0.0), (6.0, 40.0)):
        samples = (sample("a", now_s, 20 + arrivals), upgraded("b", now_s, arrivals))
        windows = windows.absorb(of_both(now_s, samples[::-1] if newest_first else samples))
    total = windows.total(2.0)
    assert windows.bounds_s is known_s
    assert (total.arrivals, total.latency[-1]) == (80, 80)


def test_new_histogram_bounds_of_all_pods_restart_the_series() -> None:
    windows, _ = watch({0: {"a": 0, "b": 0}, 2: {"a": 20, "b": 20}})
    for now_s, arrivals in ((4.0, 30.0), (6.0, 34.0)):
        samples = (upgraded("a", now_s, arrivals), upgraded("b", now_s, arrivals))
        windows = windows.absorb(of_both(now_s, samples))
    total = windows.total(30.0)
    assert (total.arrivals, total.latency.tolist()) == (8, [4, 8, 8])


@pytest.mark.parametrize(
    ("bounds_s", "expected"),
    [
        pytest.param((0.2, math.inf), (20, 40), id="interpolated between bounds"),
        pytest.param((0.05, 0.3, math.inf), (5, 30, 40), id="from zero below the first"),
        pytest.param((0.3, 9.0, math.inf), (30, 30, 40), id="slow above the last finite one"),
        pytest.param((), (), id="no grid"),
    ],
)
def test_histogram_on_other_bounds(
    bounds_s: tuple[float, ...], expected: tuple[float, ...]
) -> None:
    latency = LatencyCounts(bounds_s=(0.1, 0.3, math.inf), counts=(10, 30, 40))
    assert rebinned(latency, bounds_s).counts == pytest.approx(expected)
    assert rebinned(LatencyCounts(bounds_s=(), counts=()), bounds_s).counts == (0,) * len(bounds_s)


def test_interval_of_batches_is_reported_once() -> None:
    pods = (ready_pod("a", created_s=-100.0),)
    windows, seen = Windows(), []
    for now_s, batches in ((0.0, (10.0, 30.0, 5.0)), (2.0, (14.0, 42.0, 7.0)), (4.0, None)):
        heard = () if batches is None else (sample("a", now_s, 0, batches=batches),)
        windows = windows.absorb(Observation(now_s=now_s, current=1, pods=pods, samples=heard))
        seen.append(executed_batches(windows))
    assert seen == [[], [BatchStats("a", 4.0, 3.0, 0.5)], []]


@dataclass
class Plain:
    """One pod's whole history, kept and looked up in the plainest way."""

    times_s: list[float]
    arrivals: list[float]
    scraped: float
    ready: bool = True

    def read(self, time_s: float, scraped: float) -> None:
        step = scraped - self.scraped
        self.arrivals.append(self.arrivals[-1] + (step if step >= 0 else scraped))
        self.times_s.append(time_s)
        self.scraped = scraped

    def within(self, now_s: float, window_s: float, ago_s: float) -> float:
        end_s = (self.times_s[-1] if self.ready else now_s) - ago_s
        late, early = np.interp([end_s, end_s - window_s], self.times_s, self.arrivals)
        return float(late - early)


TICKS = st.lists(
    st.tuples(
        st.sampled_from([1.0, 2.0, 7.0, 40.0]),
        st.lists(
            st.sampled_from(["heard", "heard", "silent", "restarted", "gone"]),
            min_size=4,
            max_size=4,
        ),
        st.booleans(),
        st.floats(0.0, 50.0),
    ),
    min_size=1,
    max_size=25,
)


@given(TICKS)
@settings(max_examples=100)
def test_windows_equal_plain_histories(
    ticks: list[tuple[float, list[str], bool, float]],
) -> None:
    now_s, windows = 0.0, Windows().absorb(Observation(now_s=0.0, current=1))
    plain: dict[str, Plain] = {}
    alive: dict[str, float] = {}
    heard_s = -math.inf
    for step_s, fates, comes, more in ticks:
        now_s += step_s
        samples = []
        for number, uid in enumerate(list(alive)):
            fate, history = fates[number % len(fates)], plain[uid]
            if fate == "gone":
                del alive[uid]
                history.ready = False
            elif fate != "silent":
                scraped = more if fate == "restarted" else history.scraped + more
                history.read(now_s, scraped)
                samples.append(sample(uid, now_s, scraped))
        if comes:
            uid, born_s = f"pod-{len(plain)}", now_s - step_s / 2
            alive[uid] = born_s
            gap = windows.series.columns and GAP_S < now_s - heard_s < math.inf
            zero_s = min(born_s, heard_s) if gap else born_s
            plain[uid] = Plain(times_s=[zero_s], arrivals=[0.0], scraped=0.0)
            plain[uid].read(now_s, more)
            samples.append(sample(uid, now_s, more))
        pods = tuple(ready_pod(uid, created_s=born_s) for uid, born_s in alive.items())
        heard_s = now_s if samples else heard_s
        before, said = windows, windows.total(30.0)
        windows = windows.absorb(
            Observation(now_s=now_s, current=1, pods=pods, samples=tuple(samples))
        )
        again = before.total(30.0)
        assert (again.arrivals, list(again.latency)) == (said.arrivals, list(said.latency))
        for window_s, ago_s in ((4.0, 0.0), (30.0, 0.0), (30.0, 30.0)):
            expected = sum(one.within(now_s, window_s, ago_s) for one in plain.values())
            total = windows.total(window_s, ago_s=ago_s)
            assert total.arrivals == pytest.approx(expected, abs=1e-6)
            assert total.ended == pytest.approx(expected, abs=1e-6)
        [short] = windows.arrivals([4.0])
        assert short == pytest.approx(windows.total(4.0).arrivals, abs=1e-6)


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
        ((0, 95, 95), 5, 0.2),
        ((0, 0, 0), 3, math.inf),
        ((0, 0.5, 0.5), 0, 0.195),
    ],
    ids=[
        "inside a bucket",
        "in the first",
        "no request",
        "misses are +Inf",
        "few misses",
        "beyond",
        "as many misses as are allowed",
        "misses alone",
        "part of a request",
    ],
)
def test_percentile_95_of_histograms(
    counts: tuple[float, ...], missed: float, expected: float | None
) -> None:
    result = percentile(BOUNDS, np.array(counts, dtype=float), missed, 0.95)
    assert result == (expected if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(
    ("target_s", "missed", "expected"),
    [
        (0.1, 0, 0.5),
        (0.05, 0, 0.25),
        (0.15, 0, 0.7),
        (0.2, 0, 0.9),
        (5.0, 0, 0.9),
        (0.2, 100, 0.45),
        (5.0, 100, 0.45),
    ],
)
def test_attainment_with_misses_counts_them_as_late(
    target_s: float, missed: float, expected: float
) -> None:
    counts = np.array((50.0, 90.0, 100.0))
    assert attainment(BOUNDS, counts, missed, target_s) == pytest.approx(expected)


def test_percentile_with_few_or_no_requests() -> None:
    none, half = np.zeros(3), np.array((0.25, 0.5, 0.5))
    assert attainment(BOUNDS, none, 0.0, 0.2) is None
    assert attainment(BOUNDS, none, 0.5, 0.2) == 0.0
    assert attainment(BOUNDS, half, 0.0, 0.1) == 0.5
    assert attainment((math.inf,), np.array((4.0,)), 0.0, 0.2) == 0.0
    assert percentile((), np.empty(0), 2.0, 0.5) == math.inf
    assert percentile((), np.empty(0), 0.0, 0.5) is None


@pytest.mark.parametrize(
    ("bounds_s", "counts", "target_s", "late"),
    [
        pytest.param(
            (0.2, 0.3, 0.4, math.inf), (4, 6, 8, 10), 0.35, 3.0, id="narrow: interpolated"
        ),
        pytest.param((0.25, 0.5, 1.0, math.inf), (4, 9, 10, 10), 0.7, 0.0, id="twice as wide"),
        pytest.param((1.0, 2.5, math.inf), (6, 8, 10), 0.25, 4.0, id="coarse: those above it"),
        pytest.param((1.0, 2.5, math.inf), (6, 8, 10), 2.0, 2.0, id="coarse, not the first"),
        pytest.param((50.0, 62.0, math.inf), (6, 7, 10), 50.0, 4.0, id="at a bound"),
        pytest.param((50.0, 62.0, math.inf), (6, 7, 10), 135.0, 0.0, id="above the last: none"),
    ],
)
def test_only_answers_that_took_longer_for_certain_are_late(
    bounds_s: tuple[float, ...], counts: tuple[float, ...], target_s: float, late: float
) -> None:
    found = at_least_late(bounds_s, np.array(counts, dtype=float), target_s)
    assert float(found) == pytest.approx(late)


@pytest.mark.parametrize(
    ("bounds_s", "counts", "missed", "target_s", "bounds_of_both_s"),
    [
        pytest.param((0.25, 0.5, 1.0, math.inf), (4, 9, 10, 10), 0, 0.7, (0.5, 1.0), id="wide"),
        pytest.param((0.25, 0.5, 1.0, math.inf), (4, 9, 10, 10), 0, 0.5, None, id="at a bound"),
        pytest.param((0.25, 0.5, 1.0, math.inf), (4, 10, 10, 10), 0, 0.7, None, id="another: met"),
        pytest.param((0.25, 0.5, 1.0, math.inf), (4, 7, 8, 10), 0, 0.7, None, id="another: missed"),
        pytest.param((0.25, 0.5, 1.0, math.inf), (4, 9, 10, 10), 1, 0.7, None, id="by misses"),
        pytest.param((0.5, 0.7, 1.0, math.inf), (4, 9, 10, 10), 0, 0.8, None, id="narrow"),
        pytest.param((50.0, 62.0, math.inf), (6, 7, 10), 0, 135.0, (62.0, math.inf), id="above"),
        pytest.param((0.5, 1.0, math.inf), (0, 0, 0), 0, 0.7, None, id="no request"),
    ],
)
def test_target_and_percentile_in_one_wide_bucket_are_not_compared(
    bounds_s: tuple[float, ...],
    counts: tuple[float, ...],
    missed: float,
    target_s: float,
    bounds_of_both_s: tuple[float, float] | None,
) -> None:
    found = undecided(bounds_s, np.array(counts, dtype=float), missed, 0.95, target_s)
    assert found == bounds_of_both_s


@pytest.mark.parametrize(
    ("measured_s", "expected_s", "nearest_s"),
    [
        pytest.param(1.2, 3.0, 1.2, id="narrow: as measured"),
        pytest.param(0.95, 0.2, 0.2, id="coarse: as expected"),
        pytest.param(0.95, 3.0, 1.0, id="coarse, and less than expected"),
        pytest.param(math.inf, 70.0, 70.0, id="above the last, as expected"),
        pytest.param(math.inf, 0.5, 2.0, id="above the last: at least that"),
    ],
)
def test_measured_percentile_corrects_no_more_than_its_bucket_shows(
    measured_s: float, expected_s: float, nearest_s: float
) -> None:
    assert nearest((1.0, 1.5, 2.0, math.inf), measured_s, expected_s) == pytest.approx(nearest_s)
