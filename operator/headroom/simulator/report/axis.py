"""Values → pixels, and the round numbers that an axis names."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headroom.simulator.report import figures

_TIME_STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200)
_DAY_S = 86400


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """One named value of an axis."""

    value: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A monotone map of [low, high] onto pixels; what lies outside is drawn at the edge."""

    low: float
    high: float
    start_px: float
    end_px: float
    ticks: tuple[Tick, ...]
    warp: Callable[[float], float] = float

    def __call__(self, value: float) -> float:
        """Return the pixel of a value; infinity is the far edge."""
        inside = min(max(value, self.low), self.high)
        low, high = self.warp(self.low), self.warp(self.high)
        return self.start_px + (self.warp(inside) - low) / (high - low) * (
            self.end_px - self.start_px
        )


def linear(
    high: float, start_px: float, end_px: float, *, whole: bool = False, count: int = 4
) -> Axis:
    """An axis from 0 to at least `high`, with about `count` round steps."""
    step = _round_step(high / count, whole=whole)
    high = max(high, step)
    values = [step * index for index in range(math.floor(high / step + 1e-9) + 1)]
    return Axis(low=0.0, high=high, start_px=start_px, end_px=end_px, ticks=_ticks(values))


def counts(high: float, start_px: float, end_px: float) -> Axis:
    """An axis of counts from 0: linear where they are few, else by log(1 + n), which has a zero."""
    if high <= 20:
        return linear(max(high, 4), start_px, end_px, whole=True, count=2)
    values = [0.0, *(10.0**power for power in range(math.floor(math.log10(high)) + 1))]
    return Axis(
        low=0.0,
        high=high,
        start_px=start_px,
        end_px=end_px,
        ticks=_ticks(values[:2] + values[2:][-3:] if len(values) > 5 else values),
        warp=math.log1p,
    )


def root(high: float, start_px: float, end_px: float) -> Axis:
    """An axis of percentages by their square root: has a zero, and spreads what is near it."""
    named = (0, 0.1, 0.5, 1, 2, 5, 10, 20, 40, 60, 80, 100)
    limit = min(max(high, 0.1), 100.0)
    shown = [value for value in named if value <= limit and (value == 0 or value >= limit / 50)]
    ticks = tuple(Tick(value=value / 100, label=f"{value:g} %") for value in shown)
    return Axis(
        low=0.0,
        high=limit / 100,
        start_px=start_px,
        end_px=end_px,
        ticks=ticks,
        warp=math.sqrt,
    )


def logarithmic(low: float, high: float, start_px: float, end_px: float) -> Axis:
    """An axis from below `low` > 0 to above `high`, with ticks at 1, 2 and 5 of each decade."""
    low, high = 0.85 * low, 1.15 * high
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    values = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
    return Axis(
        low=low,
        high=high,
        start_px=start_px,
        end_px=end_px,
        ticks=_ticks([value for value in values if low <= value <= high]),
        warp=math.log,
    )


def time(low_s: float, high_s: float, start_px: float, end_px: float) -> Axis:
    """An axis of virtual time, with ticks at round hours, minutes or seconds."""
    high_s = max(high_s, low_s + 1.0)
    wanted = (high_s - low_s) / 8
    step = next((each for each in _TIME_STEPS_S if each >= wanted), None)
    step = step or _DAY_S * math.ceil(wanted / _DAY_S)
    values = range(step * math.ceil(low_s / step), math.floor(high_s) + 1, step)
    ticks = tuple(Tick(value=value, label=clock(value)) for value in values)
    return Axis(low=low_s, high=high_s, start_px=start_px, end_px=end_px, ticks=ticks)


def clock(time_s: float) -> str:
    """Virtual time as h:mm, with seconds where there are any."""
    minutes, seconds = divmod(round(time_s), 60)
    text = f"{minutes // 60}:{minutes % 60:02}"
    return f"{text}:{seconds:02}" if seconds else text


def _ticks(values: Sequence[float]) -> tuple[Tick, ...]:
    return tuple(Tick(value=value, label=figures.compact(value)) for value in values)


def _round_step(least: float, *, whole: bool) -> float:
    if not least > 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(least))
    step = next(digit * power for digit in (1, 2, 5, 10) if digit * power >= least * (1 - 1e-9))
    return max(1.0, step) if whole else step
