"""Results of the comparison made by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from decision_study.field import Field
from decision_study.points import points_of
from decision_study.records import Job, Record

RECORD = Record(
    job=Job(cell="a", autoscaler="headroom"),
    version="v",
    wall_s=1.0,
    duration_s=7200.0,
    requests=10_000,
    attainment=0.99,
    settled_attainment=0.99,
    gpu_hours=10.0,
    starting_gpu_hours=0.5,
    p95_s=0.08,
    violation_minutes=2,
    minutes=120,
    operations=8,
    flaps=1,
    recover_s=60.0,
    removals_s=(3000.0, 5000.0),
)


def record(cell: str, setting: str, seed: int = 1, **changes: object) -> Record:
    """One run; `setting` is an autoscaler, or autoscaler:knob=value."""
    autoscaler, _, knob = setting.partition(":")
    name, _, value = knob.partition("=")
    knobs = ((name, float(value)),) if knob else ()
    job = Job(cell=cell, autoscaler=autoscaler, knobs=knobs, seed=seed)
    return replace(RECORD, job=job, **changes)  # type: ignore[arg-type]


Runs = Mapping[str, Mapping[str, Sequence[tuple[float, float]]]]
"""cell -> setting -> (attainment %, GPU-hours) of seeds 1, 2, ..."""


def records(runs: Runs) -> list[Record]:
    """Records of all runs."""
    return [
        record(cell, setting, seed, attainment=percent / 100, gpu_hours=hours)
        for cell, settings in runs.items()
        for setting, seeds in settings.items()
        for seed, (percent, hours) in enumerate(seeds, start=1)
    ]


def field(runs: Runs) -> Field:
    """The field of all runs."""
    return Field(points_of(records(runs)))
