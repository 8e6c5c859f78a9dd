"""Samples of a run for its time series."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from headroom.scaling.values.observation import PodState
from headroom.simulator.compiled.plant_layout import FINE_LOG, FINE_START_S
from headroom.simulator.fleet import Fleet
from headroom.simulator.outcome import Timeline
from headroom.simulator.scores import fine_quantile

_SAMPLES = 1440
"""Maximum points of a timeline: one per 10 s of four hours."""
_SHORTEST_SAMPLE_S = 5.0


@dataclass
class RunSamples:
    """The columns of a timeline while it grows."""

    rows: list[tuple[float, ...]] = field(default_factory=list)
    last_s: float = 0.0
    last_requests: int = 0

    def take(self, fleet: Fleet, target_s: float, percentile: float, now_s: float) -> None:
        """Add a point for the time since the last one."""
        seconds = now_s - self.last_s
        if seconds <= 0:
            return
        tables = fleet.plant.tables
        answered, unanswered = tables.recent[:-1], int(tables.recent[-1])
        p95_s = fine_quantile(answered, unanswered, percentile)
        ended = int(answered.sum()) + unanswered
        within = int(answered[: _fine_index(target_s)].sum())
        states = [replica.state for replica in fleet.replicas]
        requests = int(tables.tally[0])
        self.rows.append(
            (
                now_s,
                (requests - self.last_requests) / seconds,
                float(tables.waiting.sum()),
                float(fleet.plant.unsent),
                p95_s,
                within / ended if ended else math.nan,
                fleet.desired,
                states.count(PodState.READY),
                states.count(PodState.WARMING),
                states.count(PodState.UNSCHEDULABLE),
                states.count(PodState.TERMINATING),
            )
        )
        tables.recent[:] = 0
        self.last_s, self.last_requests = now_s, requests

    def timeline(self) -> Timeline:
        """Return all points, by column."""
        columns = np.array(self.rows, dtype=np.float64).reshape(-1, 11).T
        return Timeline(
            times_s=columns[0],
            arrival_rps=columns[1],
            waiting=columns[2],
            unsent=columns[3],
            p95_s=columns[4],
            attainment=columns[5],
            desired=columns[6],
            ready=columns[7],
            warming=columns[8],
            unschedulable=columns[9],
            draining=columns[10],
        )


def _fine_index(seconds: float) -> int:
    return round(math.log(seconds / FINE_START_S) / FINE_LOG)


def sample_s(duration_s: float) -> float:
    """Return the time between two samples of a run."""
    return max(_SHORTEST_SAMPLE_S, duration_s / _SAMPLES)
