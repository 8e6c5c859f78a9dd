"""Figures with a bound, which a value that was not measured does not meet."""

from __future__ import annotations

import math
from dataclasses import replace

from bench import figures
from bench.figures import Figure


def at_most(name: str, value: float, bound: float, unit: str, digits: int = 1) -> Figure:
    """Return a figure as `bench.figures` does; a missing value fails."""
    return _or_not_measured(figures.at_most(name, value, bound, unit, digits), value)


def at_least(name: str, value: float, bound: float, unit: str, digits: int = 1) -> Figure:
    """Return a figure as `bench.figures` does; a missing value fails."""
    return _or_not_measured(figures.at_least(name, value, bound, unit, digits), value)


def _or_not_measured(figure: Figure, value: float) -> Figure:
    return replace(figure, measured="not measured") if math.isnan(value) else figure
