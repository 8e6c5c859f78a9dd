"""The finished runs in a file, one JSON line each: appended as they end, so nothing is lost."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from decision_study.records import Job, Record, from_line, to_line
from decision_study.versions import version_of


def load(path: Path) -> Mapping[Job, Record]:
    """Return the last record of every job; a line that was torn by a kill is as good as none."""
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", errors="replace") as lines:
        records = (from_line(line) for line in lines)
        return {record.job: record for record in records if record is not None}


def current(records: Mapping[Job, Record], jobs: Iterable[Job]) -> dict[Job, Record]:
    """Return the records of these jobs whose version is the present one."""
    found = ((job, records.get(job)) for job in jobs)
    return {
        job: record
        for job, record in found
        if record is not None and record.version == version_of(job.autoscaler)
    }


class Appending:
    """The file, open to append; every record is on its way to the disk when `add` returns."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> Self:
        """Open the file; a torn last line is ended, so that it spoils no other."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._path.open("ab+")
        if self._file.seek(0, os.SEEK_END) > 0:
            self._file.seek(-1, os.SEEK_END)
            if self._file.read(1) != b"\n":
                self._file.write(b"\n")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file."""
        self._file.close()

    def add(self, record: Record) -> None:
        """Append one record."""
        self._file.write(to_line(record).encode() + b"\n")
        self._file.flush()
