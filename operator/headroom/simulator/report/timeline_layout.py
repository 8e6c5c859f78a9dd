"""The layout of a timeline: its panels, what each shows, and the scales that services share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headroom.simulator.outcome import Outcome, Series, Timeline

WIDTH, LEFT, RIGHT = 720.0, 44.0, 8.0
BUCKETS = 320
"""A plot is some 670 pixels wide: every two pixels show the first, least, most and last value."""
TARGETS_SHOWN = 3.0
"""Latencies above this many targets are drawn at the upper edge."""
STATES = ("ready", "warming", "unschedulable", "draining")
"""From bottom to top of the stack."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One plot of the figure; pixels from the top of the figure."""

    top: float
    height: float

    @property
    def bottom(self) -> float:
        """The lower edge."""
        return self.top + self.height


LOAD = Panel(18, 80)
REPLICAS = Panel(126, 110)
WAITING = Panel(264, 64)
TAIL = Panel(356, 96)
HEIGHT = 478.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The scales shared by all figures of one service, for comparison by eye."""

    start_s: float
    end_s: float
    load_rps: float
    replicas: float
    waiting: float


def frame(outcomes: Sequence[Outcome]) -> Frame:
    """Return the frame that fits all these outcomes of one service."""
    timelines = [outcome.timeline for outcome in outcomes]
    return Frame(
        start_s=0.0,
        end_s=max((highest(timeline.times_s) for timeline in timelines), default=0.0),
        load_rps=max((highest(timeline.arrival_rps) for timeline in timelines), default=0.0),
        replicas=max(
            (max(highest(stacked(c)[-1]), highest(c.desired)) for c in timelines), default=0.0
        ),
        waiting=max((highest(queued(timeline)) for timeline in timelines), default=0.0),
    )


def queued(timeline: Timeline) -> Series:
    """Return the requests that wait, at replicas and at clients."""
    return timeline.waiting + timeline.unsent


def stacked(timeline: Timeline) -> Series:
    """Return the tops of the states' layers, [states, samples]."""
    return np.cumsum([getattr(timeline, name) for name in STATES], axis=0)


def highest(values: Series) -> float:
    """Return the largest finite value; 0 if there is none."""
    known = values[np.isfinite(values)]
    return float(known.max()) if known.size else 0.0
