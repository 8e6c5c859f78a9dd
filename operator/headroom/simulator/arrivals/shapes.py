"""Shapes of load as rates: constant, step, ramp, stages, spikes, a daily curve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headroom.simulator.arrivals.rates import Profile
from headroom.simulator.validation import require

MAX_PIECES = 1_000_000
KNOTS_PER_PERIOD = 288
"""Pieces per period of a daily curve: 5 minutes each, within 0.006 % of its amplitude."""


def constant(*, duration_s: float, rps: float) -> Profile:
    """Return a constant rate."""
    _duration(duration_s)
    _rate("rps", rps)
    return Profile.of([(duration_s, rps, rps)])


def step(*, duration_s: float, before_rps: float, after_rps: float, at_s: float) -> Profile:
    """Return one rate until `at_s`, and another afterwards."""
    _duration(duration_s)
    _rate("before_rps", before_rps)
    _rate("after_rps", after_rps)
    require(0 < at_s < duration_s, f"at must lie between 0 s and {duration_s:g} s", at_s)
    return Profile.of([(at_s, before_rps, before_rps), (duration_s - at_s, after_rps, after_rps)])


def ramp(
    *,
    duration_s: float,
    from_rps: float,
    to_rps: float,
    start_s: float = 0.0,
    end_s: float | None = None,
) -> Profile:
    """Return a linear rise (or fall) from `start_s` to `end_s`, constant before and after."""
    _duration(duration_s)
    _rate("from_rps", from_rps)
    _rate("to_rps", to_rps)
    end_s = duration_s if end_s is None else end_s
    rule = f"ramp_start must be >= 0 s and < ramp_end, ramp_end <= {duration_s:g} s"
    require(0 <= start_s < end_s <= duration_s, rule, f"{start_s:g} and {end_s:g}")
    pieces = (
        (start_s, from_rps, from_rps),
        (end_s - start_s, from_rps, to_rps),
        (duration_s - end_s, to_rps, to_rps),
    )
    return Profile.of([piece for piece in pieces if piece[0] > 0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A stage of a load: a constant rate, or linear to another rate."""

    duration_s: float
    rps: float
    to_rps: float | None = None
    """Rate at its end; None means the same."""


def stages(parts: Sequence[Stage]) -> Profile:
    """Return the stages in sequence."""
    require(0 < len(parts) <= MAX_PIECES, f"there must be 1 to {MAX_PIECES} stages", len(parts))
    for part in parts:
        _duration(part.duration_s)
        _rate("rps", part.rps)
        _rate("to_rps", part.rps if part.to_rps is None else part.to_rps)
    return Profile.of(
        [(p.duration_s, p.rps, p.rps if p.to_rps is None else p.to_rps) for p in parts]
    )


def spikes(
    *,
    duration_s: float,
    base_rps: float,
    peak_rps: float,
    every_s: float,
    lasting_s: float,
    first_s: float | None = None,
) -> Profile:
    """Return a base rate with rectangular spikes; the first after `first_s` or one period."""
    _duration(duration_s)
    _rate("base_rps", base_rps)
    _rate("peak_rps", peak_rps)
    first_s = every_s if first_s is None else first_s
    require(
        0 < lasting_s < every_s, "lasting must be > 0 s and < every", f"{lasting_s:g}, {every_s:g}"
    )
    require(0 <= first_s < duration_s, f"first must lie in 0 s to {duration_s:g} s", first_s)
    count = math.ceil((duration_s - first_s) / every_s)
    require(2 * count < MAX_PIECES, f"there must be at most {MAX_PIECES // 2} spikes", count)
    rises = first_s + every_s * np.arange(count)
    turns = np.column_stack((rises, rises + lasting_s)).ravel()
    edges = np.concatenate(([0.0], np.minimum(turns, duration_s), [duration_s]))
    rates = np.where(np.arange(len(edges) - 1) % 2 == 1, peak_rps, base_rps).astype(float)
    return Profile(edges_s=edges, start_rps=rates, end_rps=rates)


def diurnal(
    *,
    duration_s: float,
    low_rps: float,
    high_rps: float,
    period_s: float = 86_400.0,
    phase_s: float = 0.0,
) -> Profile:
    """Return a sine between two rates, at its low after `phase_s`, in short linear pieces."""
    _duration(duration_s)
    _rate("low_rps", low_rps)
    _rate("high_rps", high_rps)
    require(low_rps <= high_rps, "low_rps must be <= high_rps", f"{low_rps:g} and {high_rps:g}")
    require(0 < period_s < math.inf, "period must be > 0 s", period_s)
    require(math.isfinite(phase_s), "phase must be finite", phase_s)
    pieces = max(1, math.ceil(KNOTS_PER_PERIOD * duration_s / period_s))
    require(pieces <= MAX_PIECES, f"there must be <= {MAX_PIECES // 288} periods", pieces // 288)
    edges = np.linspace(0.0, duration_s, pieces + 1)
    turn = np.cos(2 * math.pi * (edges - phase_s) / period_s)
    rates = low_rps + (high_rps - low_rps) * 0.5 * (1 - turn)
    return Profile(edges_s=edges, start_rps=rates[:-1], end_rps=rates[1:])


def _duration(duration_s: float) -> None:
    require(0 < duration_s < math.inf, "duration must be > 0 s and finite", duration_s)


def _rate(name: str, rps: float) -> None:
    require(0 <= rps < math.inf, f"{name} must be finite and >= 0", rps)
