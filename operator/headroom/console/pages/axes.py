"""Values → pixels, and the round numbers that an axis names."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from headroom.console.pages.formatting import clock, number

_APART = 0.2
"""Share of the axis below which a number would run into the zero."""
_TIME_STEPS_S = (10, 30, 60, 120, 300, 600, 900, 1800)


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A map of [low, high] onto pixels; what lies beyond is drawn at the edge, NaN stays NaN."""

    low: float
    high: float
    start_px: float
    end_px: float
    ticks: tuple[tuple[float, str], ...]
    warp: Callable[[float], float] = float

    def __call__(self, value: float) -> float:
        """Give the pixel of a value."""
        if math.isnan(value):
            return math.nan
        low, high = self.warp(self.low), self.warp(self.high)
        inside = self.warp(min(max(value, self.low), self.high))
        return self.start_px + (inside - low) / (high - low) * (self.end_px - self.start_px)


def linear(high: float, start_px: float, end_px: float, *, whole: bool = False) -> Axis:
    """An axis from 0 to at least `high`, with three or four round steps."""
    step = _round_step(high / (4 if whole else 3), whole=whole)
    top = max(high, step)
    values = [step * index for index in range(math.floor(top / step + 1e-9) + 1)]
    ticks = tuple((value, number(value)) for value in values)
    return Axis(low=0.0, high=top, start_px=start_px, end_px=end_px, ticks=ticks)


def counts(high: float, start_px: float, end_px: float) -> Axis:
    """An axis of counts: linear where they are few, else by log(1 + n), which has a zero."""
    if high <= 20:
        return linear(max(high, 3.0), start_px, end_px, whole=True)
    powers = [10.0**power for power in range(math.floor(math.log10(high)) + 1)]
    apart = [value for value in powers if math.log1p(value) > _APART * math.log1p(high)][-3:]
    ticks = tuple((value, number(value)) for value in (0.0, *apart))
    return Axis(low=0.0, high=high, start_px=start_px, end_px=end_px, ticks=ticks, warp=math.log1p)


def time(low_s: float, high_s: float, start_px: float, end_px: float) -> Axis:
    """An axis of time, with some six ticks at round times of the day, UTC."""
    wanted = (high_s - low_s) / 6
    step = next((each for each in _TIME_STEPS_S if each >= wanted), 3600)
    first = step * math.ceil(low_s / step)
    ticks = tuple((float(at), clock(at)[:5]) for at in range(first, math.floor(high_s) + 1, step))
    return Axis(low=low_s, high=high_s, start_px=start_px, end_px=end_px, ticks=ticks)


def _round_step(least: float, *, whole: bool) -> float:
    if not least > 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(least))
    step = next(digit * power for digit in (1, 2, 5, 10) if digit * power >= least * (1 - 1e-9))
    return max(1.0, step) if whole else step
