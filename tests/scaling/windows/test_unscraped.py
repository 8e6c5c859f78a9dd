"""Replicas that are not scraped: their load is not zero, and rises with that of the others."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from headroom.scaling.values.observation import Observation
from headroom.scaling.values.policy import Policy
from headroom.scaling.values.signals import Freshness, Signals
from headroom.scaling.windows.signals import read_signals
from headroom.scaling.windows.sliding_windows import Windows
from headroom.scaling.windows.unscraped import arrivals_extrapolated
from support.fakes_scaling import ready_pod, sample, watch

POLICY = Policy(latency_target_s=1.0, max_replicas=20)
TICK_S = 2.0


@pytest.mark.parametrize(
    ("spoke_s", "expected"),
    [
        ((2, 4, 6, 8), 96.0),  # 36 in 6 s, and 10 s held as they were
        ((2, 4, 6, 8, 18), 96.0),  # nothing is missing
        ((2, 4, 10), 96.0),  # 48 in 8 s
        ((2,), 0.0),  # a baseline alone says nothing
    ],
)
def test_silent_pod_with_a_short_series_keeps_its_rate(
    spoke_s: tuple[int, ...], expected: float
) -> None:
    pods = {"a": ready_pod("a", created_s=-100.0), "b": ready_pod("b", created_s=-100.0)}
    scrapes = {
        float(time_s): {"b": 1.0 * time_s} | ({"a": 6.0 * time_s} if time_s in spoke_s else {})
        for time_s in range(2, 20, 2)
    }
    windows, _ = watch(scrapes, pods)
    assert arrivals_extrapolated(windows, 16.0, 18.0) == pytest.approx(expected + 16.0)


def test_silent_pod_with_a_new_series_keeps_only_the_missing_part() -> None:
    pods = {"a": ready_pod("a", created_s=-100.0), "b": ready_pod("b", created_s=1.0, ready_s=4.0)}
    scrapes: dict[float, dict[str, float]] = {
        float(time_s): {"a": 0.0} | ({"b": 6.0 * (time_s - 4)} if 4 < time_s <= 10 else {})
        for time_s in range(0, 20, 2)
    }
    windows, _ = watch(scrapes, pods)
    # 36 in the 6 s from 4 s to 10 s, and 8 s held; before 4 s it took nothing
    assert arrivals_extrapolated(windows, 18.0, 18.0) == pytest.approx(36.0 + 48.0)


def signals_after(
    minutes: float, silent: Mapping[str, float], *, pods: str = "abcdef", hot: str = ""
) -> Signals:
    """Each pod takes 10/s and from 0 s on 20/s; those in `silent` are scraped until then only."""
    known = tuple(ready_pod(uid, created_s=-1000.0) for uid in pods)
    windows, now_s = Windows(), -60.0
    while now_s <= 60 * minutes:
        done = {
            uid: 10.0 * (now_s + 60) + (90.0 if uid in hot else 10.0) * max(0.0, now_s)
            for uid in pods
        }
        observation = Observation(
            now_s=now_s,
            current=len(pods),
            pods=known,
            samples=tuple(
                sample(uid, now_s, done[uid]) for uid in pods if now_s <= silent.get(uid, now_s)
            ),
        )
        windows = windows.absorb(observation)
        now_s += TICK_S
    return read_signals(POLICY, windows, observation, None)


@pytest.mark.parametrize(
    ("silent", "hot", "expected"),
    [
        pytest.param({}, "", 120.0, id="all are scraped"),
        pytest.param(dict.fromkeys("abc", 0.0), "", 120.0, id="half are silent"),
        pytest.param(dict.fromkeys("abcde", 0.0), "", 120.0, id="one is scraped"),
        pytest.param(dict.fromkeys("abc", -100.0), "", 120.0, id="half were never scraped"),
        pytest.param(dict.fromkeys("abcdef", 0.0), "", 60.0, id="all are silent: the last known"),
        pytest.param(dict.fromkeys("abc", 0.0), "f", 200.0, id="a hot replica is one of them"),
        pytest.param(dict.fromkeys("abc", 58.0), "", 120.0, id="scraped a moment ago"),
    ],
)
def test_silent_replicas_count_as_one_of_the_others(
    silent: Mapping[str, float], hot: str, expected: float
) -> None:
    signals = signals_after(1.0, silent, hot=hot)
    assert signals.arrival_rps.value == pytest.approx(expected)
    fresh = min(silent.values(), default=60.0) > 40.0
    assert (signals.freshness is Freshness.FRESH) == fresh


def test_load_of_silent_replicas_never_falls_with_that_of_the_others() -> None:
    pods = tuple(ready_pod(uid, created_s=-1000.0) for uid in "ab")
    windows, now_s = Windows(), 0.0
    while now_s <= 120.0:
        rates = {"a": 10.0 * now_s, "b": 10.0 * min(now_s, 60.0)}
        heard = tuple(
            sample(uid, now_s, value) for uid, value in rates.items() if uid == "b" or now_s <= 60
        )
        observation = Observation(now_s=now_s, current=2, pods=pods, samples=heard)
        windows = windows.absorb(observation)
        now_s += TICK_S
    assert read_signals(POLICY, windows, observation, None).arrival_rps.value == pytest.approx(10.0)


def test_silent_replicas_count_from_the_first_rate_of_a_new_process_on() -> None:
    """Each scrape is older than its tick by some milliseconds, the first ones by the fewest."""
    pods, windows = tuple(ready_pod(uid, created_s=-1000.0) for uid in "abcdef"), Windows()
    found = []
    for tick in range(21):
        now_s = TICK_S * tick
        then_s = now_s - (0.02 if tick else 0.005)
        observation = Observation(
            now_s=now_s,
            current=6,
            pods=pods,
            samples=tuple(sample(uid, then_s, 20 * (60 + then_s)) for uid in "abc"),
        )
        windows = windows.absorb(observation)
        found.append(read_signals(POLICY, windows, observation, None).arrival_rps.value)
    known = [value for value in found if value is not None]
    assert known == pytest.approx([120.0] * 15, rel=0.01)


@pytest.mark.parametrize("heard_s", [0.0, 2.0], ids=["never scraped", "scraped once"])
def test_silent_new_replicas_take_what_the_others_take_since_they_serve(heard_s: float) -> None:
    """One replica took 60/s alone; with two more, which are silent, each takes 20/s."""
    old = ready_pod("a", created_s=-1000.0)
    new = tuple(ready_pod(uid, created_s=-30.0, ready_s=0.0) for uid in "bc")
    windows, now_s = Windows(), -60.0
    while now_s <= 14.0:
        alone, together = 60.0 + min(now_s, 0.0), max(now_s, 0.0)
        samples = [sample("a", now_s, 60.0 * alone + 20.0 * together)]
        if 0.0 < now_s <= heard_s:
            samples += [sample(pod.uid, now_s, 20.0 * now_s) for pod in new]
        observation = Observation(
            now_s=now_s,
            current=3,
            pods=(old, *new) if now_s >= 0.0 else (old,),
            samples=tuple(samples),
        )
        windows = windows.absorb(observation)
        now_s += TICK_S
    found = read_signals(POLICY, windows, observation, None)
    assert found.freshness is Freshness.STALE
    assert found.arrival_rps.value == pytest.approx(60.0, rel=0.1)
