"""The arrivals of the last hour as a line as high as a line of text."""

from __future__ import annotations

import numpy as np

from headroom.charts.markup import Markup, tag
from headroom.charts.svg import path
from headroom.console.history import TimeSeries

SPAN_S = 3600.0
POINTS = 60


def sparkline(series: TimeSeries, *, now_s: float) -> Markup | None:
    """Draw the line; None where no sample is known."""
    values = series["arrivals_rps"]
    if not len(values) or not np.isfinite(values).any():
        return None
    top = max(float(values[np.isfinite(values)].max()), 1e-9)
    bins = np.floor((series.times_s - (now_s - SPAN_S)) / SPAN_S * POINTS).astype(int)
    seen = np.isfinite(values) & (bins >= 0) & (bins < POINTS)
    most = np.full(POINTS, -1.0)
    np.maximum.at(most, bins[seen], values[seen])
    heights = np.where(most < 0.0, np.nan, 15.0 - 13.0 * most / top).tolist()
    shown = [(1.5 * index, y) for index, y in enumerate(heights)]
    line = tag("path", d=path(shown), class_="line load")
    return tag("svg", line, viewBox="0 0 90 16", class_="spark", aria_hidden="true")
