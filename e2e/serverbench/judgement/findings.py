"""Records by case and server, and medians over their rounds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence

from serverbench.records import Case, Record


class Findings:
    """The measured values; a value that a record holds as None was infinite."""

    def __init__(self, records: Iterable[Record]) -> None:
        self.records = sorted(records, key=lambda record: record.round)

    def of(self, case: Case, server: str, name: str) -> list[float]:
        """One value per round, in order; empty where nothing was measured."""
        return [
            math.inf if (value := record.values[name]) is None else value
            for record in self.records
            if (record.case, record.server) == (case, server) and name in record.values
        ]

    def median(self, case: Case, server: str, name: str) -> float:
        """Over the rounds; NaN where nothing was measured."""
        values = self.of(case, server, name)
        return statistics.median(values) if values else math.nan

    def worst(self, case: Case, server: str, name: str) -> float:
        """The largest of the rounds; NaN where nothing was measured."""
        return max(self.of(case, server, name), default=math.nan)

    def ratio(
        self, case: Case, server: str, other: str, name: str, other_name: str | None = None
    ) -> float:
        """Round by round against another server, and the median of that; NaN where one lacks."""
        pairs = zip(
            self.of(case, server, name), self.of(case, other, other_name or name), strict=False
        )
        ratios = [ours / theirs for ours, theirs in pairs if theirs and math.isfinite(theirs)]
        return statistics.median(ratios) if ratios else math.nan

    def ratio_of(self, case: Case, server: str, name: str, other_name: str) -> float:
        """Return the ratio of two values of one server, the median over rounds; NaN if missing."""
        return self.ratio(case, server, server, name, other_name)

    def everywhere(self, name: str) -> list[float]:
        """Return this value of all records that have it."""
        return [v for record in self.records if (v := record.values.get(name)) is not None]

    def errors(self, cases: Iterable[Case], servers: Sequence[str]) -> list[tuple[str, str]]:
        """Server and reason, each once, of what could not be measured."""
        wanted = set(cases)
        found = {
            (record.server, record.error): None
            for record in self.records
            if record.error and record.case in wanted and record.server in servers
        }
        return list(found)
