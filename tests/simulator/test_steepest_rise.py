"""The steepest rise of a rate, which the planner sizes for."""

from __future__ import annotations

import numpy as np
import pytest

from headroom.simulator.arrivals import (
    RateTrace,
    steepest_rise,
)


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
