"""Record of a run: its hours, each with requests, misses, GPU-hours and flaps. Pure.

Flaps are counted in two ways.

- `flaps`: every addition within a cold start and 60 s after a removal, as in the other study.
- `undone`: those, and every further removal after which replicas are added within 15 minutes, once
  each. A surge that is answered and forgotten every ten minutes counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headroom.simulator.outcome import Move, Outcome, Timeline
from headroom.simulator.scores import FLAP_SLACK_S

HOUR_S = 3600.0
UNDONE_WITHIN_S = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Hour:
    """One hour of a run."""

    requests: int
    missed: int
    gpu_hours: float
    flaps: int
    undone: int
    late_minutes: int
    """Minutes in which more than the percentile allows were missed."""
    minutes: int
    """Minutes with requests."""

    @property
    def attainment(self) -> float:
        """Share of the requests answered within the target; 1 without any."""
        return 1 - self.missed / self.requests if self.requests else 1.0


def total(hours: Sequence[Hour]) -> Hour:
    """Return several hours as one."""
    return Hour(
        requests=sum(hour.requests for hour in hours),
        missed=sum(hour.missed for hour in hours),
        gpu_hours=sum(hour.gpu_hours for hour in hours),
        flaps=sum(hour.flaps for hour in hours),
        undone=sum(hour.undone for hour in hours),
        late_minutes=sum(hour.late_minutes for hour in hours),
        minutes=sum(hour.minutes for hour in hours),
    )


def hours_of(outcome: Outcome, *, duration_s: float, cold_start_s: float) -> tuple[Hour, ...]:
    """Return the hours of a run, the last one as long as the run has it."""
    flaps, undone = flap_times_s(outcome.moves, cold_start_s)
    gpu_s = gpu_seconds(outcome.timeline)
    hours = []
    for number in range(math.ceil(duration_s / HOUR_S - 1e-9)):
        minutes = slice(60 * number, 60 * (number + 1))
        requests = outcome.minute_requests[minutes]
        missed = outcome.minute_missed[minutes]
        had = requests > 0
        late = missed[had] > (1 - outcome.percentile) * requests[had] + 1e-9
        hours.append(
            Hour(
                requests=int(requests.sum()),
                missed=int(missed.sum()),
                gpu_hours=_between(outcome.timeline, gpu_s, number) / HOUR_S,
                flaps=sum(int(at_s // HOUR_S) == number for at_s in flaps),
                undone=sum(int(at_s // HOUR_S) == number for at_s in undone),
                late_minutes=int(late.sum()),
                minutes=int(had.sum()),
            )
        )
    return tuple(hours)


def flap_times_s(moves: Sequence[Move], cold_start_s: float) -> tuple[list[float], list[float]]:
    """Return when flaps happened, and when flaps or undone removals did.

    Worked: a removal at 100 s, additions at 150, 155 and 700 s, a cold start of 30 s: flaps at 150
    and 155 s. Without the first two, one undone removal at 700 s; a further step at 702 s belongs
    to the same removal.
    """
    flaps: list[float] = []
    undone: list[float] = []
    lowered_s, counted = -math.inf, False
    for move in moves:
        if move.after < move.before:
            lowered_s, counted = move.time_s, False
            continue
        after_s = move.time_s - lowered_s
        if after_s <= cold_start_s + FLAP_SLACK_S:
            flaps.append(move.time_s)
            undone.append(move.time_s)
            counted = True
        elif after_s <= UNDONE_WITHIN_S and not counted:
            undone.append(move.time_s)
            counted = True
    return flaps, undone


def gpu_seconds(timeline: Timeline) -> np.ndarray:
    """Return the GPU-seconds held in each sample's interval, from the counts at its two ends."""
    held = timeline.ready + timeline.warming + timeline.draining
    before = np.concatenate((held[:1], held[:-1]))
    seconds = np.diff(timeline.times_s, prepend=0.0)
    return 0.5 * (before + held) * seconds


def _between(timeline: Timeline, gpu_s: np.ndarray, number: int) -> float:
    inside = (timeline.times_s > number * HOUR_S) & (timeline.times_s <= (number + 1) * HOUR_S)
    return float(gpu_s[inside].sum())
