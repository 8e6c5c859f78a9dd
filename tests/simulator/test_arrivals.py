"""Arrivals: rates, Poisson statistics, scaling, and the same bytes for the same seed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headroom.simulator.arrivals import (
    CountedArrivals,
    OnOffArrivals,
    PoissonArrivals,
    Profile,
    RateTrace,
    RequestTrace,
    replay,
    shapes,
    steepest_rise,
)
from headroom.simulator.arrivals.streams import CHUNK
from headroom.simulator.scenario import Arrivals

HOUR = 3600.0


def poisson(profile: Profile, stream: str = "a") -> PoissonArrivals:
    return PoissonArrivals(profile=profile, stream=stream)


def times_of(arrivals: Arrivals, seed: int = 1) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.concatenate([np.empty(0), *arrivals.chunks(seed)])


def recording(seconds: float = HOUR, rps: float = 5.0) -> RequestTrace:
    """A bursty hour: ten requests at a time, at random instants."""
    chance = np.random.default_rng(3)
    bursts = np.sort(chance.uniform(0, seconds - 1, int(seconds * rps / 10)))
    return RequestTrace(name="bursts", arrivals_s=np.repeat(bursts, 10))


RATES = RateTrace(name="bins", bin_s=60.0, requests=np.array([60.0, 0.0, 600.0, 120.0] * 15))

STREAMS: dict[str, Arrivals] = {
    "constant": poisson(shapes.constant(duration_s=HOUR, rps=90)),
    "step": poisson(shapes.step(duration_s=HOUR, before_rps=20, after_rps=100, at_s=1200)),
    "ramp": poisson(shapes.ramp(duration_s=HOUR, from_rps=0, to_rps=100, start_s=600, end_s=3000)),
    "falling ramp": poisson(shapes.ramp(duration_s=HOUR, from_rps=100, to_rps=0)),
    "stages": poisson(
        shapes.stages(
            [
                shapes.Stage(duration_s=600, rps=10),
                shapes.Stage(duration_s=600, rps=10, to_rps=70),
                shapes.Stage(duration_s=600, rps=0),
            ]
        )
    ),
    "spikes": poisson(
        shapes.spikes(duration_s=HOUR, base_rps=10, peak_rps=100, every_s=900, lasting_s=120)
    ),
    "diurnal": poisson(shapes.diurnal(duration_s=2 * HOUR, low_rps=5, high_rps=45, period_s=HOUR)),
    "on and off": OnOffArrivals(
        duration_s=4 * HOUR, on_rps=40, off_rps=4, mean_on_s=5, mean_off_s=15, stream="a"
    ),
    "counts per minute": replay(RATES, stream="a"),
    "counts, part of a bin at either end": replay(RATES, stream="a", start_s=30, duration_s=200),
    "recording": replay(recording(), stream="a"),
    "recording thinned": replay(recording(), stream="a", scale=0.3),
    "recording overlaid": replay(recording(), stream="a", scale=3.6),
    "recording, a window to a mean": replay(
        recording(), stream="a", start_s=600, duration_s=1200, mean_rps=21
    ),
    "ticks": CountedArrivals(
        edges_s=np.arange(0, 601, 2.0), counts=np.arange(300), scale=1.0, stream="a"
    ),
    "ticks scaled": CountedArrivals(
        edges_s=np.arange(0, 601, 2.0), counts=np.arange(300), scale=2.5, stream="a"
    ),
}
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


def minutes_of(times: Any, minutes: int = 60) -> Any:
    return np.histogram(times, bins=minutes, range=(0, 60.0 * minutes))[0] / 60


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


class TestReplay:
    def test_trace_at_scale_one_is_unchanged_for_every_seed(self) -> None:
        trace = recording()
        for seed in (1, 2):
            assert (times_of(replay(trace, stream="a"), seed) == trace.arrivals_s).all()

    def test_window_of_trace_starts_at_zero(self) -> None:
        trace = RequestTrace(name="t", arrivals_s=np.array([0.5, 10.0, 12.5, 19.999, 20.0, 30.0]))
        window = replay(trace, stream="a", start_s=10, duration_s=10)
        assert times_of(window).tolist() == pytest.approx([0.0, 2.5, 9.999])
        assert trace.duration_s == 31.0

    def test_thinned_trace_keeps_instants_and_lowers_dispersion(self) -> None:
        trace = recording(20 * HOUR)
        kept = times_of(replay(trace, stream="a", scale=0.25))
        assert np.isin(kept, trace.arrivals_s).all()
        assert kept.size == pytest.approx(trace.arrivals_s.size / 4, rel=0.02)
        bins = np.arange(0, 20 * HOUR + 1, 60)
        before, after = (np.histogram(t, bins)[0] for t in (trace.arrivals_s, kept))
        expected = 1 + 0.25 * (before.var() / before.mean() - 1)
        assert after.var() / after.mean() == pytest.approx(expected, rel=0.08)

    def test_overlaid_copies_are_shifted_cyclically_by_up_to_a_minute(self) -> None:
        trace = RequestTrace(name="t", arrivals_s=np.array([1000.0, 3590.0]))
        times = times_of(replay(trace, stream="a", duration_s=3591, scale=40))
        near = times[(times >= 1000) & (times <= 1060)]
        assert times.size == 80
        assert near.size == 40
        assert near[0] == 1000.0
        assert np.unique(near).size == 40
        round_the_end = times[(times < 60) | (times >= 3590)]
        assert round_the_end.size == 40

    def test_scaled_up_trace_keeps_its_shape(self) -> None:
        trace = RequestTrace(
            name="t", arrivals_s=np.concatenate((np.arange(0, 1800, 2), np.arange(1800, 3600, 0.5)))
        )
        times = times_of(replay(trace, stream="a", mean_rps=12.5))
        assert times.size == pytest.approx(45_000, rel=0.01)
        assert (times >= 1860).sum() == pytest.approx(45_000 * 0.8 * 1740 / 1800, rel=0.02)

    def test_rate_trace_has_poisson_number_per_bin(self) -> None:
        counts = np.array(
            [minutes_of(times_of(replay(RATES, stream="a", scale=0.5), s)) * 60 for s in range(200)]
        )
        busy = counts[:, RATES.requests > 0]
        expected = 0.5 * RATES.requests[RATES.requests > 0]
        assert not counts[:, RATES.requests == 0].any()
        assert busy.mean(axis=0) == pytest.approx(expected, rel=0.1)
        assert np.mean(busy.var(axis=0) / expected) == pytest.approx(1.0, abs=0.1)

    def test_mean_rps_applies_to_the_window(self) -> None:
        window = replay(RATES, stream="a", start_s=120, duration_s=120, mean_rps=3.0)
        assert window.mean_rps == pytest.approx(3.0)
        assert window.duration_s == 120
        first, second = (
            np.mean(
                [((t >= a) & (t < a + 60)).sum() for t in (times_of(window, s) for s in range(50))]
            )
            for a in (0, 60)
        )
        assert first == pytest.approx(300, rel=0.03)
        assert second == pytest.approx(60, rel=0.06)

    def test_counted_ticks_at_scale_one_keep_counts(self) -> None:
        counts = np.array([3, 0, 120_000, 1])
        ticks = CountedArrivals(
            edges_s=np.array([0, 2, 4, 7, 7.5]), counts=counts, scale=1.0, stream="a"
        )
        assert np.histogram(times_of(ticks), [0, 2, 4, 7, 7.5])[0].tolist() == counts.tolist()


BAD: list[tuple[str, Callable[[], object], str]] = [
    (
        "no duration",
        lambda: shapes.constant(duration_s=0, rps=1),
        "duration must be > 0 s and finite; got 0",
    ),
    (
        "a rate below 0",
        lambda: shapes.constant(duration_s=1, rps=-1),
        "rps must be finite and >= 0; got -1",
    ),
    (
        "a rate of nan",
        lambda: shapes.constant(duration_s=1, rps=math.nan),
        "rps must be finite and >= 0; got nan",
    ),
    (
        "a step at the end",
        lambda: shapes.step(duration_s=9, before_rps=1, after_rps=2, at_s=9),
        "at must lie between 0 s and 9 s; got 9",
    ),
    (
        "a ramp backwards",
        lambda: shapes.ramp(duration_s=9, from_rps=1, to_rps=2, start_s=5, end_s=4),
        "ramp_start must be >= 0 s and < ramp_end, ramp_end <= 9 s; got 5 and 4",
    ),
    ("no stage", lambda: shapes.stages([]), "there must be 1 to 1000000 stages; got 0"),
    (
        "spikes that touch",
        lambda: shapes.spikes(duration_s=9, base_rps=1, peak_rps=2, every_s=3, lasting_s=3),
        "lasting must be > 0 s and < every; got 3, 3",
    ),
    (
        "low above high",
        lambda: shapes.diurnal(duration_s=9, low_rps=3, high_rps=2),
        "low_rps must be <= high_rps; got 3 and 2",
    ),
    (
        "too many periods",
        lambda: shapes.diurnal(duration_s=1e9, low_rps=1, high_rps=2, period_s=1),
        "there must be <= 3472 periods",
    ),
    (
        "no time on",
        lambda: OnOffArrivals(
            duration_s=9, on_rps=1, off_rps=1, mean_on_s=0, mean_off_s=1, stream="a"
        ),
        "mean_on must be > 0 s; got 0",
    ),
    (
        "a seed below 0",
        lambda: list(STREAMS["constant"].chunks(-1)),
        "seed must be an integer >= 0; got -1",
    ),
    (
        "a window beyond the end",
        lambda: replay(RATES, stream="a", start_s=3000, duration_s=900),
        "start + duration must lie within the 3600 s of bins; got 3000 + 900 s",
    ),
    (
        "a start beyond the end",
        lambda: replay(RATES, stream="a", start_s=3600),
        "start must be >= 0 s and < 3600 s; got 3600",
    ),
    (
        "an empty window",
        lambda: replay(RATES, stream="a", start_s=60, duration_s=60),
        "the window of bins must have requests; got 0",
    ),
    (
        "scale and mean",
        lambda: replay(RATES, stream="a", scale=1, mean_rps=1),
        "scale and mean_rps must not both be given; got both",
    ),
    ("scale 0", lambda: replay(RATES, stream="a", scale=0), "scale must be finite and > 0; got 0"),
    (
        "a thousandfold overlay",
        lambda: replay(recording(), stream="a", scale=1001),
        "scale must be > 0 and <= 1000; got 1001",
    ),
    (
        "a profile that starts late",
        lambda: Profile(edges_s=np.array([1.0, 2]), start_rps=np.ones(1), end_rps=np.ones(1)),
        "a rate must begin at 0 s; got 1",
    ),
    ("a profile without end", lambda: Profile.of([(math.inf, 1, 1)]), "edges must be finite"),
    (
        "ticks that stand still",
        lambda: CountedArrivals(
            edges_s=np.array([0.0, 0.0]), counts=np.array([1]), scale=1, stream="a"
        ),
        "edges must increase from 0",
    ),
    (
        "a window that is too short",
        lambda: steepest_rise(RATES, window_s=1200),
        "a window must be longer than 2 x 600 s; got 1200",
    ),
    (
        "a trace that is too short",
        lambda: steepest_rise(RATES),
        "the trace must have a window's 180 bins; got 60",
    ),
]


@pytest.mark.parametrize(("make", "message"), [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_invalid_arrivals_are_rejected_with_rule_and_value(
    make: Callable[[], object], message: str
) -> None:
    with pytest.raises(ValueError, match="; got") as refused:
        make()
    assert message in str(refused.value)


class TestSteepestRise:
    def test_steepest_rise_is_at_a_third_of_the_window(self) -> None:
        requests = np.full(600, 60.0)
        requests[400:] = 180.0
        found = steepest_rise(RateTrace(name="t", bin_s=60.0, requests=requests))
        assert (found.start_s, found.duration_s) == ((400 - 60) * 60, 10_800)
        assert found.mean_rps == pytest.approx((60 * 1 + 120 * 3) / 180)

    def test_recovery_after_lost_telemetry_is_no_rise(self) -> None:
        requests = np.full(2000, 600.0)
        requests[300:320] = 0.0
        requests[1500:] = 900.0
        found = steepest_rise(RateTrace(name="t", bin_s=60.0, requests=requests))
        assert found.start_s == (1500 - 60) * 60

    def test_windows_with_empty_bins_count_if_all_have_them(self) -> None:
        requests = np.tile([0.0, 60.0], 300)
        requests[401::2] = 600.0
        found = steepest_rise(RateTrace(name="t", bin_s=60.0, requests=requests))
        assert found.start_s <= 400 * 60 <= found.start_s + found.duration_s


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
