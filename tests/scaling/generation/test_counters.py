"""Increase of the counters of generating pods between scrapes."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from headroom.scaling.generation.counters.token_counters import LONGEST_S, TokenCounters
from headroom.scaling.generation.counters.token_table import Count, Grid
from headroom.scaling.generation.promises.token_promises import WINDOW_S, PromiseWindow
from headroom.scaling.values.latency_counts import LatencyCounts
from headroom.scaling.values.observation import PodSample
from headroom.scaling.values.tokens import (
    Binding,
    GenerationSample,
    Target,
    TokenCounts,
    TokenTargets,
)
from support.fakes_scaling import sample


def _sample(pod: str, time_s: float, arrivals: float) -> PodSample:
    page = GenerationSample(iterations=10.0 * arrivals)
    return replace(sample(pod=pod, time_s=time_s, arrivals=arrivals), generation=page)


FIRST = [_sample("a", 1.0, 5.0), _sample("b", 1.0, 7.0)]
SECOND = [_sample("a", 2.0, 6.0), _sample("a", 3.0, 9.0), _sample("b", 3.0, 9.0)]


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 1, 0)])
def test_of_several_scrapes_of_one_pod_the_newest_counts(order: tuple[int, ...]) -> None:
    counters, _ = TokenCounters().advance(FIRST)
    counters, increase = counters.advance([SECOND[place] for place in order])
    assert (increase.total[Count.ARRIVALS], increase.total[Count.ITERATIONS]) == (6.0, 60.0)
    counters, increase = counters.advance([replace(one, time_s=5.0) for one in FIRST])
    assert sorted(increase.pods) == ["a", "b"]
    np.testing.assert_array_equal(increase.elapsed_s, [2.0, 2.0])


KNOWN, OTHER = (1000.0, 2000.0, math.inf), (500.0, 1500.0, 4000.0, math.inf)


def _with_prompts(pod: str, time_s: float, bounds: tuple[float, ...], *counts: float) -> PodSample:
    """A page that counts prompts of 1500 tokens in these buckets; without counts, no histogram."""
    one = _sample(pod, time_s, counts[-1] if counts else 0.0)
    assert one.generation is not None
    prompts = (
        TokenCounts(bounds=bounds, counts=counts, total=1500.0 * counts[-1]) if counts else None
    )
    times = LatencyCounts(bounds_s=bounds, counts=counts) if counts else None
    page = replace(one.generation, prompt_lengths=prompts, first_token=times)
    return replace(one, generation=page)


@pytest.mark.parametrize("order", [1, -1])
def test_pods_with_other_bounds_count_on_the_known_ones(order: int) -> None:
    """10 within 500 and 30 within 1500 are 20 within 1000; between 1500 and 4000 there are none."""
    counters, _ = TokenCounters().advance([_with_prompts("old", 1.0, KNOWN, 4, 8, 8)])
    for time_s, old, new in ((2.0, 8, 0), (3.0, 9, 30)):
        pages = [
            _with_prompts("old", time_s, KNOWN, 4, old, old),
            _with_prompts("new", time_s, OTHER, new / 3, new, new, new),
        ]
        counters, increase = counters.advance(pages[::order])
    assert sorted(increase.pods) == ["new", "old"]
    assert (increase.total[Count.ARRIVALS], increase.total[Count.PROMPT_TOTAL]) == (31, 46_500)
    for histogram in counters.grid.slices()[::2]:
        np.testing.assert_array_equal(increase.total[histogram], [20, 31, 31])


def test_a_converted_histogram_counts_whole_requests() -> None:
    """So that what leaves a window is exactly what has entered it."""
    known = _with_prompts("old", 1.0, KNOWN, 1, 1, 1)
    counters, _ = TokenCounters().advance([known, _with_prompts("new", 1.0, OTHER, 0, 0, 0, 0)])
    added = np.zeros(len(KNOWN))
    for count in range(1, 8):
        pages = [replace(known, time_s=1.0 + count)]
        pages += [_with_prompts("new", 1.0 + count, OTHER, 0, count, count, count)]
        counters, increase = counters.advance(pages)
        tick = increase.total[counters.grid.slices()[0]]
        assert not np.any(tick % 1.0)
        added += tick
    np.testing.assert_array_equal(added, [3, 7, 7])


def test_a_pod_that_shows_no_histogram_yet_leaves_out_no_other() -> None:
    """SGLang shows histograms from its first request on; the first pod of the list has none."""
    idle = _with_prompts("idle", 1.0, KNOWN)
    counters, _ = TokenCounters().advance([idle, _with_prompts("busy", 1.0, KNOWN, 1, 2, 2)])
    pages = [replace(idle, time_s=2.0), _with_prompts("busy", 2.0, KNOWN, 3, 5, 5)]
    counters, increase = counters.advance(pages)
    assert increase.pods == ("idle", "busy")
    assert increase.total[Count.PROMPT_TOTAL] == 4500
    np.testing.assert_array_equal(increase.total[counters.grid.slices()[0]], [2, 3, 3])
    pages = [_with_prompts("idle", 3.0, KNOWN, 1, 1, 1), replace(pages[1], time_s=3.0)]
    counters, increase = counters.advance(pages)
    np.testing.assert_array_equal(increase.total[counters.grid.slices()[0]], [1, 1, 1])


def test_bounds_give_way_once_no_pod_has_them() -> None:
    counters, _ = TokenCounters().advance([_with_prompts("pod", 1.0, KNOWN)])
    assert counters.grid == Grid()
    for time_s, bounds in ((2.0, KNOWN), (4.0, OTHER)):
        counts = [float(place) for place in range(len(bounds))]
        counters, increase = counters.advance([_with_prompts("pod", time_s, bounds, *counts)])
        assert (counters.grid.prompt, increase.pods) == (bounds, ())
        counters, increase = counters.advance([_with_prompts("pod", time_s + 1.0, bounds, *counts)])
        assert increase.pods == ("pod",)
    counters, _ = counters.advance([_with_prompts("pod", 6.0, OTHER)])
    assert counters.grid.prompt == OTHER


@pytest.mark.parametrize(
    ("silent_s", "counted"), [(2.0, 5.0), (LONGEST_S, 5.0), (LONGEST_S + 2.0, 0.0)]
)
def test_what_a_silent_pod_has_counted_is_added_when_it_is_scraped_again(
    silent_s: float, counted: float
) -> None:
    counters, _ = TokenCounters().advance([_sample("a", 0.0, 0.0), _sample("b", 0.0, 0.0)])
    counters, _ = counters.advance([_sample("b", 0.5, 1.0)])
    counters, increase = counters.advance([_sample("b", silent_s, 2.0)])
    assert increase.pods == ("b",)
    again = [_sample("a", silent_s + 1.0, 5.0), _sample("b", silent_s + 1.0, 3.0)]
    counters, increase = counters.advance(again)
    assert increase.total[Count.ARRIVALS] == 1.0 + counted
    last = [_sample("a", silent_s + 2.0, 6.0), _sample("b", silent_s + 2.0, 4.0)]
    assert counters.advance(last)[1].total[Count.ARRIVALS] == 2.0


def test_pods_that_are_scraped_in_turn_count_all_requests() -> None:
    counters, _ = TokenCounters().advance(
        [_with_prompts(pod, 0.0, KNOWN, 0, 0, 0) for pod in ("a", "b")]
    )
    found = np.zeros(len(KNOWN))
    for tick in range(1, 9):
        page = _with_prompts("ab"[tick % 2], float(tick), KNOWN, tick, tick, tick)
        counters, increase = counters.advance([page])
        found += increase.total[counters.grid.slices()[0]]
    pages = [_with_prompts(pod, 9.0, KNOWN, 9, 9, 9) for pod in ("a", "b")]
    _, increase = counters.advance(pages)
    found += increase.total[counters.grid.slices()[0]]
    np.testing.assert_array_equal(found, [18, 18, 18])


def test_promises_of_pods_that_fell_silent_leave_the_window() -> None:
    counters, _ = TokenCounters().advance([_with_prompts("pod", 0.0, KNOWN, 0, 0, 0)])
    counters, increase = counters.advance([_with_prompts("pod", 1.0, KNOWN, 1, 2, 3)])
    window = PromiseWindow().observe(increase, counters.grid, 1.0)
    targets = TokenTargets(first_token=Target(percentile=0.95, seconds=1000.0))
    for now_s in (2.0, WINDOW_S):
        counters, increase = counters.advance([])
        window = window.observe(increase, counters.grid, now_s)
        assert window.measure(targets)[Binding.TIME_TO_FIRST_TOKEN].requests == 3.0
    window = window.observe(increase, counters.grid, WINDOW_S + 1.0)
    assert not window.measure(targets)


def test_failed_requests_break_no_time_between_tokens_where_no_answer_has_a_second() -> None:
    """Labels of one token each, and one request in a hundred fails."""
    times = LatencyCounts(bounds_s=(0.1, math.inf), counts=(0.0, 0.0))
    ended = replace(times, counts=(99.0, 99.0))
    targets = TokenTargets(
        first_token=Target(percentile=0.95, seconds=0.1),
        output_token=Target(percentile=0.95, seconds=0.1),
    )

    def measured(first: LatencyCounts, token: LatencyCounts) -> dict[Binding, float | None]:
        before = GenerationSample(first_token=times, output_token=times)
        after = GenerationSample(first_token=first, output_token=token)
        pages = [
            replace(sample(pod="a", time_s=time_s, arrivals=0.0), generation=page)
            for time_s, page in ((0.0, before), (1.0, after))
        ]
        counters, _ = TokenCounters().advance(pages[:1])
        counters, increase = counters.advance(pages[1:])
        window = PromiseWindow().observe(increase, counters.grid, 1.0)
        return {name: one.late_share for name, one in window.measure(targets, 1.0).items()}

    first, token = Binding.TIME_TO_FIRST_TOKEN, Binding.TIME_PER_OUTPUT_TOKEN
    assert measured(ended, times) == {first: pytest.approx(0.01)}
    assert measured(ended, ended) == {first: pytest.approx(0.01), token: pytest.approx(0.01)}
    assert measured(times, times) == {first: 1.0, token: 1.0}


def test_servers_without_histograms_have_no_measured_promises() -> None:
    """llama.cpp has counters of tokens only."""
    targets = TokenTargets(
        first_token=Target(percentile=0.95, seconds=0.1),
        output_token=Target(percentile=0.95, seconds=0.1),
    )
    pages = [
        replace(sample(pod="a", time_s=time_s, arrivals=0.0), generation=GenerationSample())
        for time_s in (0.0, 1.0)
    ]
    counters, _ = TokenCounters().advance(pages[:1])
    counters, increase = counters.advance(pages[1:])
    window = PromiseWindow().observe(increase, counters.grid, 1.0)
    assert not window.measure(targets, 1.0)
    assert not window.latest(targets, 1.0)
