"""PURE. A quantile followed online, without keeping samples."""

from __future__ import annotations


def followed(value: float, sample: float, *, quantile: float, step: float) -> float:
    """The next estimate of a quantile of what is sampled; never below zero.

    A sample above it lifts it by `step * quantile`, any other lowers it by `step * (1 - quantile)`:
    it rests where that share of the samples lies below.
    """
    return max(0.0, value + step * (quantile if sample > value else quantile - 1.0))
