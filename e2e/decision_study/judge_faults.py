"""Judges the cases outside the comparison: wrong claims, faults, removals while blind. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from decision_study.faults_cells import Case
from decision_study.records import Record
from headroom.simulator.report.comparison import Estimate, estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One case against its base, paired by seed."""

    case: Case
    attainment: Estimate
    lost: Estimate | None
    """Attainment of the base minus the case's, as a ratio; None without a base."""
    blind_removals: int
    """Scale-downs while signals were missing, all seeds together."""


def claims(cases: Iterable[Case], records: Iterable[Record]) -> tuple[Verdict, ...]:
    """Compare attainment after the first ten minutes, claim by claim."""
    return _verdicts(cases, records, settled=True)


def faults(cases: Iterable[Case], records: Iterable[Record]) -> tuple[Verdict, ...]:
    """Compare attainment of the whole run, fault by fault."""
    return _verdicts(cases, records, settled=False)


def most_lost(verdicts: Sequence[Verdict]) -> tuple[float, str] | None:
    """Return the largest promised loss and its case; None without comparisons."""
    lost = [
        (verdict.lost.mean, verdict.case.name)
        for verdict in verdicts
        if verdict.lost is not None and verdict.case.promised
    ]
    return max(lost, default=None)


def _verdicts(
    cases: Iterable[Case], records: Iterable[Record], *, settled: bool
) -> tuple[Verdict, ...]:
    runs: dict[str, dict[int, Record]] = {}
    for record in records:
        runs.setdefault(record.job.cell, {})[record.job.seed] = record
    return tuple(
        _verdict(case, runs[case.name], runs.get(case.base_name or "", {}), settled)
        for case in cases
        if case.name in runs
    )


def _verdict(
    case: Case, runs: Mapping[int, Record], base: Mapping[int, Record], settled: bool
) -> Verdict:
    def read(record: Record) -> float:
        return record.settled_attainment if settled else record.attainment

    lost = [read(base[seed]) - read(runs[seed]) for seed in sorted(runs) if seed in base]
    return Verdict(
        case=case,
        attainment=estimate([read(run) for run in runs.values()]),
        lost=estimate(lost) if lost else None,
        blind_removals=sum(_removals(run, case.blind_s) for run in runs.values()),
    )


def _removals(run: Record, blind_s: tuple[float, float] | None) -> int:
    if blind_s is None:
        return 0
    return sum(blind_s[0] < time_s <= blind_s[1] for time_s in run.removals_s)
