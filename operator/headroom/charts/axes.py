"""Axes: map values to pixels, and choose the round numbers to print at their ticks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

Label = Callable[[float], str]

_TIME_STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200)
_DAY_S = 86400
_APART = 0.2
"""Share of a logarithmic axis below which a label would touch the zero's."""


class Tick(NamedTuple):
    """A labelled value of an axis."""

    value: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A monotone map of [low, high] to pixels; values outside are drawn at the edge."""

    low: float
    high: float
    start_px: float
    end_px: float
    ticks: tuple[Tick, ...]
    warp: Callable[[float], float] = float

    def __call__(self, value: float) -> float:
        """Return the pixel of a value: infinity is the far edge, NaN stays NaN."""
        if math.isnan(value):
            return math.nan
        low, high = self.warp(self.low), self.warp(self.high)
        inside = self.warp(min(max(value, self.low), self.high))
        return self.start_px + (inside - low) / (high - low) * (self.end_px - self.start_px)


def compact(value: float) -> str:
    """Return any number in at most four characters or so: 12 800 is "12.8k"."""
    if not math.isfinite(value):
        return "unknown" if math.isnan(value) else "inf"
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{value / limit:.3g}{unit}"
    return f"{value:.3g}"


def linear(
    high: float,
    start_px: float,
    end_px: float,
    *,
    whole: bool = False,
    count: int = 4,
    label: Label = compact,
) -> Axis:
    """Return an axis from 0 to at least `high`, with about `count` round steps."""
    step = _round_step(high / count, whole=whole)
    top = max(high, step)
    values = [step * index for index in range(math.floor(top / step + 1e-9) + 1)]
    return _axis(0.0, top, start_px, end_px, values, label)


def counts(high: float, start_px: float, end_px: float, *, label: Label = compact) -> Axis:
    """Return an axis of counts: linear up to 20, above it by log(1 + n), which has a zero."""
    if high <= 20:
        return linear(max(high, 3.0), start_px, end_px, whole=True, label=label)
    powers = [10.0**power for power in range(math.floor(math.log10(high)) + 1)]
    apart = [value for value in powers if math.log1p(value) > _APART * math.log1p(high)][-3:]
    return _axis(0.0, high, start_px, end_px, [0.0, *apart], label, math.log1p)


def root(high: float, start_px: float, end_px: float) -> Axis:
    """Return an axis of percentages by their square root, which has a zero and spreads it."""
    named = (0, 0.1, 0.5, 1, 2, 5, 10, 20, 40, 60, 80, 100)
    limit = min(max(high, 0.1), 100.0)
    shown = [value for value in named if value <= limit and (value == 0 or value >= limit / 50)]
    values = [value / 100 for value in shown]
    return _axis(
        0.0, limit / 100, start_px, end_px, values, lambda ratio: f"{100 * ratio:g} %", math.sqrt
    )


def logarithmic(low: float, high: float, start_px: float, end_px: float) -> Axis:
    """Return an axis from below `low` > 0 to above `high`, with ticks at 1, 2 and 5."""
    low, high = 0.85 * low, 1.15 * high
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    values = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
    inside = [value for value in values if low <= value <= high]
    return _axis(low, high, start_px, end_px, inside, compact, math.log)


def time(
    low_s: float, high_s: float, start_px: float, end_px: float, *, count: int, label: Label
) -> Axis:
    """Return an axis of time, with about `count` ticks at round hours, minutes or seconds."""
    high_s = max(high_s, low_s + 1.0)
    wanted = (high_s - low_s) / count
    step = next((each for each in _TIME_STEPS_S if each >= wanted), None)
    step = step or _DAY_S * math.ceil(wanted / _DAY_S)
    values = range(step * math.ceil(low_s / step), math.floor(high_s) + 1, step)
    return _axis(low_s, high_s, start_px, end_px, values, label)


def _axis(
    low: float,
    high: float,
    start_px: float,
    end_px: float,
    values: Sequence[float],
    label: Label,
    warp: Callable[[float], float] = float,
) -> Axis:
    ticks = tuple(Tick(float(value), label(value)) for value in values)
    return Axis(low=low, high=high, start_px=start_px, end_px=end_px, ticks=ticks, warp=warp)


def _round_step(least: float, *, whole: bool) -> float:
    if not least > 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(least))
    step = next(digit * power for digit in (1, 2, 5, 10) if digit * power >= least * (1 - 1e-9))
    return max(1.0, step) if whole else step
