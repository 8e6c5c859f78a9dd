"""Recorded arrivals: the parts of the recording that a replay keeps."""

from __future__ import annotations

import numpy as np
import pytest

from headroom.simulator.arrivals import (
    CountedArrivals,
    RequestTrace,
    replay,
)
from simulator.recordings import HOUR, RATES, minutes_of, recording, times_of


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
