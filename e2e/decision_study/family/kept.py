"""The record of one run of the family, kept as one line of a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import results
from decision_study.family.measures import Hour, total
from decision_study.records import Job
from decision_study.versions import family_version_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The result of one run."""

    job: Job
    version: str
    """Version of everything that decides the result (`versions.py`)."""
    wall_s: float
    hours: tuple[Hour, ...]
    max_replicas: int
    operations: int

    @property
    def after(self) -> Hour:
        """All hours after the first, as one; of a run within an hour the whole run."""
        return total(self.hours[1:] or self.hours)

    @property
    def attainment(self) -> float:
        """Attainment after the first hour."""
        return self.after.attainment

    @property
    def gpu_hours(self) -> float:
        """GPU-hours after the first hour."""
        return self.after.gpu_hours

    @property
    def flaps_per_hour(self) -> float:
        """Flaps an hour after the first hour, undone removals included."""
        return self.after.undone / max(1, len(self.hours) - 1)


def load(path: Path) -> dict[Job, Kept]:
    """Return the last record of every job in a file."""
    records = (from_row(row) for row in results.load(path))
    return {record.job: record for record in records if record is not None}


def append(path: Path, record: Kept) -> None:
    """Add a record to a file."""
    results.append(path, asdict(record))


def current(records: Mapping[Job, Kept], jobs: Iterable[Job]) -> dict[Job, Kept]:
    """Return the records of these jobs whose version is the present one."""
    found = ((job, records.get(job)) for job in jobs)
    return {
        job: record
        for job, record in found
        if record is not None and record.version == family_version_of(job.autoscaler)
    }


def from_row(row: Mapping[str, Any]) -> Kept | None:
    """Return the record of a row; None for a row of another layout."""
    try:
        data = dict(row)
        job = dict(data.pop("job"))
        job["knobs"] = tuple((str(name), value) for name, value in job["knobs"])
        hours = tuple(Hour(**hour) for hour in data.pop("hours"))
        return Kept(job=Job(**job), hours=hours, **data)
    except (ValueError, TypeError, KeyError):
        return None
