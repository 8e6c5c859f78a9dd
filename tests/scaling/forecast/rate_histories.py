"""Histories of rates, for tests of the forecast."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from headroom.scaling.forecast.analog_forecast import (
    AnalogForecast,
)

START_S = 60.0


def history(
    rate_rps: Callable[[float], float], until_s: float, *, start_s: float = START_S
) -> AnalogForecast:
    """The rate every 2 s from 0 on, as the decision sees it."""
    analogs = AnalogForecast()
    for now_s in np.arange(0.0, until_s + 1.0, 2.0):
        analogs = analogs.observe(float(now_s), rate_rps(float(now_s)), start_s)
    return analogs
