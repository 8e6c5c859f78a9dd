"""Runs of a step as text: each alone, and medians side by side."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from third_party.step import Measured


def run(one: Measured) -> RenderableType:
    """Return everything that is known about one run."""
    requested = ", ".join(f"{count} ({at_s:.0f} s)" for count, at_s in one.requested_s.items())
    shares = ", ".join(f"{rate:.0f}" for rate in one.shares)
    lines = [
        f"{one.scaler}: {100 * one.in_time:.1f} % in time, {one.replica_s:.0f} replica-s",
        f"  p50 {one.p50_s:.3f} s, p95 {one.p95_s:.3f} s; generator late by {one.late_p99_s:.3f} s",
        f"  {one.refused} refused, {one.lost} not answered",
        f"  requested after the step: {requested or 'none'}",
        f"  requests/s of each ready replica late in the step: {shares or 'unknown'}",
        *(f"  {status}" for status in one.statuses),
        *(f"  {count} x {what}" for what, count in one.failures),
    ]
    return Group(*map(Text, lines))


def medians(title: str, runs: Sequence[Measured]) -> Table:
    """Return a row for each scaler: medians of its runs."""
    table = Table(title=title)
    for column in ("", "in time", "of each run", "replica-s", "p95", "enough requested after"):
        table.add_column(column)
    for name in dict.fromkeys(one.scaler for one in runs):
        own = [one for one in runs if one.scaler == name]
        table.add_row(
            name,
            f"{100 * statistics.median(one.in_time for one in own):.1f} %",
            ", ".join(f"{100 * one.in_time:.1f}" for one in own),
            f"{statistics.median(one.replica_s for one in own):.0f}",
            f"{statistics.median(one.p95_s for one in own):.2f} s",
            _enough(own),
        )
    return table


NEEDED = 4
"""Replicas at 80 requests/s each for 240/s, below saturation."""


def _enough(own: Sequence[Measured]) -> str:
    times_s = [one.requested_s.get(NEEDED) for one in own]
    return ", ".join("never" if at_s is None else f"{at_s:.0f} s" for at_s in times_s)
