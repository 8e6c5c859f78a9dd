"""Finds a trace by name, and counts its requests window by window."""

from __future__ import annotations

import math
from difflib import get_close_matches
from pathlib import Path

import numpy as np

from headroom.cli.commands.plan.output import span
from headroom.planner.errors import ImpossiblePlan, positive, require
from headroom.planner.trace_plan import Rates
from headroom.simulator.arrivals.recorded_trace import RequestTrace, Trace
from headroom.simulator.arrivals.trace_file import read_trace
from headroom.simulator.traces import shipped_trace, trace_names

MOST_WINDOWS = 10_000_000
"""19 years of minutes, 80 MB."""


def rates_of(trace: Trace, window_s: float) -> tuple[Rates, float]:
    """Return requests per second by window, [windows], and the window's length, at least a bin."""
    positive("--window", window_s, "60s suits most traces")
    require(
        trace.duration_s / window_s <= MOST_WINDOWS,
        f"a trace must have at most {MOST_WINDOWS} windows",
        f"{trace.duration_s:g} s in windows of {window_s:g} s",
        "Give a longer --window, or times from the start of the trace",
    )
    if isinstance(trace, RequestTrace):
        windows = max(1, math.ceil(trace.duration_s / window_s - 1e-9))
        counted = np.bincount((trace.arrivals_s // window_s).astype(np.int64), minlength=windows)
        return counted / window_s, window_s
    bins = max(1, round(window_s / trace.bin_s))
    whole = len(trace.requests) // bins * bins
    if whole == 0:
        raise ImpossiblePlan(
            f"--window must be at most the trace's {span(trace.duration_s)}; got "
            f"{span(window_s)}. Give a shorter one."
        )
    summed = trace.requests[:whole].reshape(-1, bins).sum(axis=1)
    return summed / (bins * trace.bin_s), bins * trace.bin_s


def named_trace(name: str) -> Trace:
    """Return a shipped trace, or one in a file. Raises ImpossiblePlan, TraceError, OSError."""
    path = Path(name)
    if name in trace_names():
        return shipped_trace(name)
    if not path.is_file():
        known = ", ".join(trace_names()) or "(no trace is installed)"
        close = get_close_matches(name, trace_names(), n=1)
        step = f"Did you mean {close[0]}?" if close else "Check the path."
        raise ImpossiblePlan(
            f"the trace must be a file or one of {known}; got {name!r:.80}. {step}"
        )
    with path.open("rb") as stream:
        return read_trace(stream, path.name)
