"""Runs of the family for tests: two hours, of which the second is judged."""

from __future__ import annotations

from dataclasses import replace

from decision_study.family.kept import Kept
from decision_study.family.measures import Hour
from decision_study.records import Job

HOUR = Hour(requests=1000, missed=20, gpu_hours=4.0, flaps=0, undone=0, late_minutes=2, minutes=60)


def run(
    setting: str, share: float, gpu_hours: float, cell: str = "develop-000-jumps", undone: int = 0
) -> Kept:
    """A run of two hours, the second with this attainment and cost."""
    autoscaler, _, knob = setting.partition(":")
    knobs = ((knob, 1.0),) if knob else ()
    missed = round(1000 * (1 - share))
    second = replace(HOUR, missed=missed, gpu_hours=gpu_hours, undone=undone)
    return Kept(
        job=Job(cell=cell, autoscaler=autoscaler, knobs=knobs),
        version="v",
        wall_s=1.0,
        hours=(replace(HOUR, missed=900), second),
        max_replicas=10,
        operations=4,
    )
