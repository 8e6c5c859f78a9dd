"""A job names one run; a record is its result, kept as one line of a file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import results
from decision_study.versions import version_of
from headroom.simulator.outcome import Move, Outcome
from headroom.simulator.scores import FLAP_SLACK_S

OURS = "headroom"
CLAIRVOYANT = "clairvoyant"
IDEAL = "ideal-reactive"
SETTLING_S = 600.0
"""A wrong capacity may cause misses this long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One run: a cell under an autoscaler with a seed; names only."""

    cell: str
    autoscaler: str
    knobs: tuple[tuple[str, float], ...] = ()
    """Knobs that are not at their default, sorted by name."""
    seed: int = 1

    @property
    def setting(self) -> str:
        """The autoscaler and its knobs in one string."""
        return setting_name(self.autoscaler, dict(self.knobs))


def setting_name(autoscaler: str, knobs: Mapping[str, float]) -> str:
    """Return a name: keda(target_batches=0.2), or keda at its defaults."""
    if not knobs:
        return autoscaler
    return f"{autoscaler}({', '.join(f'{name}={knobs[name]:g}' for name in sorted(knobs))})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The result of one run."""

    job: Job
    version: str
    """Version of everything that decides the result (`versions.py`)."""
    wall_s: float
    duration_s: float
    """Virtual seconds."""
    requests: int
    attainment: float
    settled_attainment: float
    """Attainment after the first `SETTLING_S`, intervals weighted by their arrivals."""
    gpu_hours: float
    starting_gpu_hours: float
    p95_s: float | None
    """None: the percentile is an unanswered request."""
    violation_minutes: int
    minutes: int
    operations: int
    flaps: int
    recover_s: float
    removals_s: tuple[float, ...]
    """Virtual times of scale-downs."""
    undone: int | None = None
    """Removals followed by a flap of any number of steps; only counted for Headroom."""

    @property
    def flaps_per_hour(self) -> float:
        """Flaps per virtual hour."""
        return self.flaps / (self.duration_s / 3600)


def record_of(
    job: Job,
    outcome: Outcome,
    *,
    version: str,
    wall_s: float,
    duration_s: float,
    cold_start_s: float,
) -> Record:
    """Return the record of a finished run; `cold_start_s` is the median one of its plant."""
    score = outcome.score
    return Record(
        job=job,
        version=version,
        wall_s=round(wall_s, 3),
        duration_s=duration_s,
        requests=score.requests,
        attainment=score.attainment,
        settled_attainment=settled_attainment(outcome),
        gpu_hours=score.gpu_hours,
        starting_gpu_hours=score.starting_gpu_hours,
        p95_s=score.p95_s if math.isfinite(score.p95_s) else None,
        violation_minutes=score.violation_minutes,
        minutes=score.minutes,
        operations=score.operations,
        flaps=score.flaps,
        recover_s=score.recover_s,
        removals_s=tuple(move.time_s for move in outcome.moves if move.after < move.before),
        undone=_undone(outcome.moves, cold_start_s) if job.autoscaler == OURS else None,
    )


def _undone(moves: Sequence[Move], cold_start_s: float) -> int:
    """Count the flaps, with those after the same removal as one."""
    return sum(
        before.after < before.before
        and after.after > after.before
        and after.time_s - before.time_s <= cold_start_s + FLAP_SLACK_S
        for before, after in pairwise(moves)
    )


def settled_attainment(outcome: Outcome) -> float:
    """Return the attainment after the first ten minutes.

    Worked: samples that end at 600, 900 and 1200 s with attainments 0.5, 0.9 and 1.0 at 10, 30 and
    10 requests per second: the first is part of the beginning, (0.9 x 30 + 1.0 x 10) / 40 = 0.925.
    """
    timeline, weighted, weight = outcome.timeline, 0.0, 0.0
    columns = (timeline.times_s, timeline.attainment, timeline.arrival_rps)
    for time_s, share, rate_rps in zip(*(column.tolist() for column in columns), strict=True):
        if time_s > SETTLING_S and not math.isnan(share):
            weighted += share * rate_rps
            weight += rate_rps
    return weighted / weight if weight > 0 else 1.0


def load(path: Path) -> Mapping[Job, Record]:
    """Return the last record of every job in a file."""
    records = (from_row(row) for row in results.load(path))
    return {record.job: record for record in records if record is not None}


def append(path: Path, record: Record) -> None:
    """Add a record to a file."""
    results.append(path, asdict(record))


def current(records: Mapping[Job, Record], jobs: Iterable[Job]) -> dict[Job, Record]:
    """Return the records of these jobs whose version is the present one."""
    found = ((job, records.get(job)) for job in jobs)
    return {
        job: record
        for job, record in found
        if record is not None and record.version == version_of(job.autoscaler)
    }


def from_row(row: Mapping[str, Any]) -> Record | None:
    """Return the record of a row; None for a row of another layout."""
    try:
        data = dict(row)
        job = dict(data.pop("job"))
        job["knobs"] = tuple((str(name), float(value)) for name, value in job["knobs"])
        data["removals_s"] = tuple(data["removals_s"])
        if data.keys() | {"job"} != {field.name for field in fields(Record)}:
            return None
        return Record(job=Job(**job), **data)
    except (ValueError, TypeError, KeyError):
        return None
