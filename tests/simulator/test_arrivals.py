"""Arrivals: rates, Poisson statistics, scaling, and the same bytes for the same seed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headroom.simulator.arrivals import (
    OnOffArrivals,
    Profile,
    replay,
    shapes,
)
from headroom.simulator.arrivals.streams import CHUNK
from headroom.simulator.scenario import Arrivals
from simulator.recordings import HOUR, STREAMS, minutes_of, poisson, recording, times_of

every_stream = pytest.mark.parametrize("arrivals", STREAMS.values(), ids=STREAMS.keys())


@every_stream
def test_arrivals_across_chunks_are_sorted_and_within_duration(arrivals: Arrivals) -> None:
    times = times_of(arrivals)
    assert times.size > 100
    assert times[0] >= 0
    assert times[-1] < arrivals.duration_s
    assert (np.diff(times) >= 0).all()


@every_stream
def test_arrivals_with_same_seed_are_the_same_bytes(arrivals: Arrivals) -> None:
    first, again = (b"".join(c.tobytes() for c in arrivals.chunks(7)) for _ in range(2))
    assert first == again


@every_stream
def test_arrivals_have_configured_mean(arrivals: Any) -> None:
    expected = arrivals.mean_rps * arrivals.duration_s
    counts = [times_of(arrivals, seed).size for seed in range(5)]
    # Bursts of ten and phases of seconds have up to some 20 times a Poisson process's variance.
    assert np.mean(counts) == pytest.approx(expected, abs=4 * math.sqrt(20 * expected / 5))


def test_arrivals_of_other_seeds_and_services_are_independent() -> None:
    profile = shapes.constant(duration_s=HOUR, rps=5)
    one, other_seed = times_of(poisson(profile), 1), times_of(poisson(profile), 2)
    other_service = times_of(poisson(profile, "b"), 1)
    assert not np.intersect1d(one, other_seed).size
    assert not np.intersect1d(one, other_service).size
    counts = [np.histogram(t, bins=360, range=(0, HOUR))[0] for t in (one, other_service)]
    assert abs(np.corrcoef(counts[0], counts[1])[0, 1]) < 4 / math.sqrt(360)


def test_long_stream_holds_one_chunk_in_memory() -> None:
    sizes = [c.size for c in poisson(shapes.constant(duration_s=HOUR, rps=200)).chunks(1)]
    assert max(sizes) == CHUNK
    assert len(sizes) == 8
    overlaid = [c.size for c in replay(recording(), stream="a", scale=30.5).chunks(1)]
    assert max(overlaid) < 1.2 * CHUNK
    assert len(overlaid) > 4


def test_constant_rate_has_poisson_gaps_and_counts() -> None:
    times = times_of(poisson(shapes.constant(duration_s=HOUR, rps=50)))
    gaps = np.diff(times)
    assert gaps.mean() == pytest.approx(1 / 50, rel=0.01)
    assert gaps.std() / gaps.mean() == pytest.approx(1.0, abs=0.01)
    counts = np.histogram(times, bins=3600, range=(0, HOUR))[0]
    assert counts.var() / counts.mean() == pytest.approx(1.0, abs=5 * math.sqrt(2 / 3600))
    assert np.mean(counts[:-1] * counts[1:]) == pytest.approx(2500, rel=0.01)


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        (shapes.step(duration_s=HOUR, before_rps=0, after_rps=60, at_s=1800), [0] * 30 + [60] * 30),
        # 0 to 60 rps in an hour: half a request per second more each minute, 0.5 in the first.
        (shapes.ramp(duration_s=HOUR, from_rps=0, to_rps=60), [m + 0.5 for m in range(60)]),
        (
            shapes.spikes(
                duration_s=HOUR, base_rps=3, peak_rps=30, every_s=1200, lasting_s=120, first_s=0
            ),
            ([30] * 2 + [3] * 18) * 3,
        ),
        # A spike that the end cuts off; without `first_s` the first comes after one period.
        (
            shapes.spikes(duration_s=HOUR, base_rps=3, peak_rps=30, every_s=3480, lasting_s=600),
            [3] * 58 + [30] * 2,
        ),
        (
            shapes.diurnal(duration_s=HOUR, low_rps=0, high_rps=40, period_s=HOUR),
            [20 - 20 * math.cos(2 * math.pi * (m + 0.5) / 60) for m in range(60)],
        ),
    ],
    ids=["step", "ramp", "spikes", "cut spike", "diurnal"],
)
def test_shape_has_its_rate_in_every_minute(profile: Profile, expected: list[float]) -> None:
    seen = np.mean([minutes_of(times_of(poisson(profile), s)) for s in range(20)], axis=0)
    error = np.sqrt(np.array(expected) / 60 / 20)
    assert (np.abs(seen - expected) <= 4.5 * error + 0.01).all()


def test_arrivals_within_slope_follow_it_exactly() -> None:
    # Rate 2t on [0, 100): L(t) = t^2, so (t / 100)^2 is uniform.
    times = times_of(poisson(Profile.of([(100.0, 0.0, 200.0)])))
    uniform = np.sort((times / 100) ** 2)
    distance = np.abs(uniform - np.arange(1, times.size + 1) / times.size).max()
    assert distance < 1.95 / math.sqrt(times.size)  # Kolmogorov-Smirnov, 0.1 %


def test_pieces_without_length_or_rate_have_no_arrivals() -> None:
    profile = Profile.of([(0, 5, 5), (10, 0, 0), (10, 50, 50), (0, 9, 9), (10, 0, 0)])
    times = times_of(poisson(profile))
    assert 400 < times.size < 600
    assert times.min() >= 10
    assert times.max() < 20
    assert times_of(poisson(Profile.of([(10, 0, 0)]))).size == 0


def test_on_off_source_exceeds_poisson_dispersion_by_formula() -> None:
    source = OnOffArrivals(
        duration_s=20 * HOUR, on_rps=20, off_rps=0, mean_on_s=10, mean_off_s=30, stream="a"
    )
    counts = np.histogram(times_of(source), bins=72_000, range=(0, 72_000))[0]
    # Rate variance p (1 - p) 20^2 = 75, correlation exp(-t / 7.5): over 1 s the variance of the
    # mean rate is 75 * 2 (x - 1 + exp(-x)) / x^2 with x = 1 / 7.5: 71.7; IDC = 1 + 71.7 / 5.
    assert counts.mean() == pytest.approx(5.0, rel=0.05)
    assert counts.var() / counts.mean() == pytest.approx(1 + 71.74 / 5, rel=0.06)


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    number = st.floats(0, 50) | st.just(0.0)
    pieces = draw(st.lists(st.tuples(st.floats(0, 100), number, number), min_size=1, max_size=8))
    return Profile.of([*pieces, (1.0, 1.0, 1.0)])


@settings(max_examples=60)
@given(profile=profiles(), seed=st.integers(0, 2**63))
def test_any_rate_has_sorted_arrivals_only_above_zero(profile: Profile, seed: int) -> None:
    times = times_of(poisson(profile), seed)
    assert (np.diff(times) >= 0).all()
    assert ((times >= 0) & (times < profile.duration_s)).all()
    piece = np.searchsorted(profile.edges_s, times, side="right") - 1
    assert (profile.start_rps[piece] + profile.end_rps[piece] > 0).all()
    assert times.size == pytest.approx(profile.requests, abs=6 * math.sqrt(profile.requests) + 12)
