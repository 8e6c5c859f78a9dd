"""Random rates over time: jumps, modulated, on/off, growth, daily curves, jittered surges. Pure.

Each shape is drawn in units of its own and scaled to a peak by the caller; arrivals within it are
Poisson. Lengths and levels differ from member to member.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from decision_study.family.draws import Draws
from headroom.simulator.arrivals import Profile

Piece = tuple[float, float, float]
"""Seconds, rate at the start, rate at the end."""
_NOISE_S = 10.0
_LEAST_S = 5.0


def jumps(draws: Draws, duration_s: float) -> Profile:
    """Return levels that hold for 5 to 30 minutes on average and then jump."""
    mean_s, sigma = draws.scale(300, 1800), draws.between(0.3, 1.0)
    pieces: list[Piece] = []
    while _length_s(pieces) < duration_s:
        level = draws.factor(sigma)
        pieces.append((_LEAST_S + draws.exponential(mean_s), level, level))
    return _cut(pieces, duration_s)


def modulated(draws: Draws, duration_s: float) -> Profile:
    """Return a Markov-modulated rate: two to four states that last 20 s to 10 min on average."""
    count = draws.one_of((2, 3, 4))
    ratio = draws.scale(1.5, 5)
    levels = [ratio**state for state in range(count)]
    means_s = [draws.scale(20, 600) for _ in levels]
    state = 0
    pieces: list[Piece] = []
    while _length_s(pieces) < duration_s:
        level = levels[state]
        pieces.append((draws.exponential(means_s[state]) + 1e-3, level, level))
        state = draws.one_of([other for other in range(count) if other != state])
    return _cut(pieces, duration_s)


def on_off(draws: Draws, duration_s: float) -> Profile:
    """Return load for some minutes, and little or none for some minutes, again and again.

    Half of them are as irregular as an exponential, the others have lengths within a third.
    """
    on_s, off_s = draws.scale(60, 600), draws.scale(90, 1200)
    low, irregular = draws.one_of((0.0, 0.05, 0.2)), draws.one_of((True, False))
    sigma = draws.between(0.0, 0.4)
    pieces: list[Piece] = []
    for on in itertools.cycle((False, True)):
        mean_s = on_s if on else off_s
        length_s = draws.exponential(mean_s) if irregular else mean_s * draws.between(0.67, 1.33)
        level = draws.factor(sigma) if on else low
        pieces.append((_LEAST_S + length_s, level, level))
        if _length_s(pieces) >= duration_s:
            break
    return _cut(pieces, duration_s)


def growth(draws: Draws, duration_s: float) -> Profile:
    """Return rises that double every 5 to 20 minutes, or linear ones, each followed by a fall."""
    doubling_s, fold = draws.scale(300, 1200), draws.scale(4, 16)
    linear = draws.one_of((True, False, False))
    pieces: list[Piece] = []
    while _length_s(pieces) < duration_s:
        pieces.append((draws.scale(300, 2400), 1.0, 1.0))
        peak = 1.0 + (fold - 1.0) * draws.between(0.6, 1.0)
        steps = 1 if linear else max(2, round(8 * math.log2(peak)))
        levels = np.linspace(1.0, peak, 2) if linear else np.geomspace(1.0, peak, steps + 1)
        rise_s = doubling_s * math.log2(peak)
        pieces += [(rise_s / steps, float(a), float(b)) for a, b in itertools.pairwise(levels)]
        pieces.append((draws.scale(300, 1800), peak, peak))
        pieces.append((draws.scale(30, 1200), peak, 1.0))
    return _cut(pieces, duration_s)


def daily(draws: Draws, duration_s: float) -> Profile:
    """Return a sine with a period of 1 to 6 hours, times a noise that lasts 10 s to 2 min."""
    period_s, low = draws.scale(3600, 21_600), draws.between(0.1, 0.6)
    sigma, lasting_s = draws.between(0.05, 0.35), draws.scale(10, 120)
    phase_s = draws.between(0, period_s)
    count = math.ceil(duration_s / _NOISE_S)
    kept = math.exp(-_NOISE_S / lasting_s)
    shocks = draws.chance.standard_normal(count) * math.sqrt(1 - kept**2)
    noise = np.zeros(count)
    for index in range(1, count):
        noise[index] = kept * noise[index - 1] + shocks[index]
    middles_s = _NOISE_S * (np.arange(count) + 0.5)
    wave = low + (1 - low) * 0.5 * (1 - np.cos(2 * np.pi * (middles_s + phase_s) / period_s))
    levels = wave * np.exp(sigma * noise)
    return _cut([(_NOISE_S, float(level), float(level)) for level in levels], duration_s)


def surges(draws: Draws, duration_s: float) -> Profile:
    """Return surges of 1 to 3 minutes every 5 to 15, early or late by at most 15 %."""
    every_s, lasting_s = draws.between(300, 900), draws.between(60, 180)
    jitter, sigma = draws.between(0.0, 0.15), draws.between(0.0, 0.3)
    return surged(
        draws,
        duration_s,
        every_s=every_s,
        lasting_s=lasting_s,
        jitter=jitter,
        base=draws.between(0.1, 0.6),
        sigma=sigma,
    )


def surged(
    draws: Draws,
    duration_s: float,
    *,
    every_s: float,
    lasting_s: float,
    jitter: float,
    base: float,
    sigma: float = 0.0,
) -> Profile:
    """Return surges of height 1 around every multiple of a period; `jitter` is a share of it."""
    pieces: list[Piece] = []
    at_s = 0.0
    for number in range(1, math.ceil(duration_s / every_s) + 2):
        begins_s = every_s * (number + draws.between(-jitter, jitter))
        length_s = lasting_s * draws.factor(sigma / 2)
        height = max(base, draws.factor(sigma))
        pieces += [(max(1.0, begins_s - at_s), base, base), (length_s, height, height)]
        at_s = max(at_s + 1.0, begins_s) + length_s
    return _cut(pieces, duration_s)


def _length_s(pieces: list[Piece]) -> float:
    return sum(piece[0] for piece in pieces)


def _cut(pieces: list[Piece], duration_s: float) -> Profile:
    """Return the rate of the first `duration_s`; a slope that is cut ends where it has come to."""
    kept: list[Piece] = []
    left_s = duration_s
    for length_s, first, last in pieces:
        if left_s <= 0:
            break
        share = min(1.0, left_s / length_s)
        kept.append((length_s * share, first, first + (last - first) * share))
        left_s -= length_s
    return Profile.of(kept)
