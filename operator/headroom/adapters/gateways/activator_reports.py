"""The last report of each activator: its ports, its held requests, its arrivals. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headroom.gateway.activator_messages import GONE_AFTER_S, Report

FORGOTTEN_AFTER_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedChanges:
    """Difference of a report from the one before it."""

    changed: bool
    """Its ports, its leaving, or its held requests."""
    first_held: tuple[str, ...]
    """Keys of the services that had no held request before."""


class ActivatorReports:
    """Reports by address; those of activators that are gone count no more."""

    def __init__(self) -> None:
        self._reports: dict[str, tuple[Report, float]] = {}
        self._arrived: dict[str, int] = {}

    def accepting(self, port: int, now_s: float) -> tuple[str, ...]:
        """Return the addresses of the activators that accept requests at a service's port."""
        return tuple(
            sorted(
                report.address
                for report in self._fresh(now_s)
                if port in report.listening and not report.leaving
            )
        )

    def held(self, key: str, now_s: float) -> int:
        """Return the held requests of a service, over all activators."""
        return sum(dict(report.held).get(key, 0) for report in self._fresh(now_s))

    def arrived(self, key: str) -> int:
        """Return the requests of a service that were reported, since the first report."""
        return self._arrived.get(key, 0)

    def record(self, report: Report, now_s: float) -> ReportedChanges:
        """Keep a report, and return its changes."""
        before, at_s = self._reports.get(report.address, (Report(address=""), 0.0))
        if now_s - at_s >= GONE_AFTER_S:
            before = Report(address="")
        self._reports = {
            address: known
            for address, known in self._reports.items()
            if now_s - known[1] < FORGOTTEN_AFTER_S
        } | {report.address: (report, now_s)}
        if before.address:  # the counts of a first report have no known start
            self._count(dict(before.arrived), report)
        was, held = dict(before.held), dict(report.held)
        ports = (before.listening, before.leaving) != (report.listening, report.leaving)
        return ReportedChanges(
            changed=ports or was != held,
            first_held=tuple(key for key, number in held.items() if number and not was.get(key)),
        )

    def _count(self, counted: dict[str, int], report: Report) -> None:
        for key, number in report.arrived:
            more = number - counted.get(key, 0)
            self._arrived[key] = self._arrived.get(key, 0) + (more if more >= 0 else number)

    def _fresh(self, now_s: float) -> Iterator[Report]:
        return (one for one, at_s in self._reports.values() if now_s - at_s < GONE_AFTER_S)
