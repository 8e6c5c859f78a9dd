"""Compares measured figures with their bounds."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Collection, Mapping, Sequence

from bench.figures import Figure, shown
from serverbench.judgement import judging_faults, judging_load
from serverbench.judgement.findings import Findings
from serverbench.records import Case


def judged(found: Findings, cases: Collection[Case], servers: Sequence[str]) -> list[Figure]:
    """One row for each promise of the cases that were asked for, and some for scale."""
    judges = [judge for case, judge in JUDGES.items() if case in cases]
    return [row for judge in judges for row in judge(found, servers)] + _conditions(found)


JUDGES: Mapping[Case, Callable[[Findings, Sequence[str]], list[Figure]]] = {
    Case.IDLE: judging_load.idle,
    Case.LIGHT: judging_load.light,
    Case.STEADY: judging_load.steady,
    Case.CPU: judging_load.cpu,
    Case.KNEE: judging_load.knee,
    Case.OVERLOAD: judging_faults.overload,
    Case.SLOW: judging_faults.slow,
    Case.DISCONNECT: judging_faults.disconnect,
    Case.SIGTERM: judging_faults.sigterm,
    Case.LENGTHS: judging_load.lengths,
    Case.SOAK: judging_faults.soak,
}


def _conditions(found: Findings) -> list[Figure]:
    """Return the share of the load generator and of the rest of the machine in these figures."""
    rows = []
    for title, name, unit in (
        ("load generator: CPU per request", "generator_ms", " ms"),
        ("load generator: send delay p99", "late_p99_ms", " ms"),
        ("other CPU use of the machine", "others_cores", " cores"),
    ):
        values = found.everywhere(name)
        if values:
            median, most = statistics.median(values), max(values)
            rows.append(shown(title, f"median {median:.2f}, at most {most:.2f}{unit}"))
    return rows
