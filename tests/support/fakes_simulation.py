"""Runs that need no plant, which a worker process can import and carry out in no time."""

from __future__ import annotations

import os
from pathlib import Path

from headroom.simulator.campaign import OnProgress, Run
from headroom.simulator.outcome import Outcome
from support.fakes_outcome import outcome


def perform(run: Run, on_progress: OnProgress) -> tuple[Outcome, ...]:
    """One outcome; what the autoscaler is called decides how it goes."""
    on_progress(0.5)
    if run.autoscaler == "refused":
        raise ValueError("target must be a number > 0; got 0")
    if run.autoscaler == "broken":
        raise ZeroDivisionError("division by zero")
    if run.autoscaler == "dying":
        os._exit(9)
    if run.autoscaler == "interrupting":
        raise KeyboardInterrupt
    settings = ", ".join(f"{name}={value}" for name, value in run.knobs)
    name = f"{run.autoscaler}({settings})" if settings else run.autoscaler
    costs = {"headroom": 4.0, "clairvoyant": 3.2}
    return (
        outcome(
            name,
            scenario=run.scenario.stem,
            seed=run.seed,
            gpu_hours=costs.get(run.autoscaler, 5.0) + 0.5 * len(run.knobs),
            within=970 if run.knobs else 980,
        ),
    )


def read_text(path: Path) -> str:
    """Checks nothing but that the file is there."""
    return path.read_text(encoding="utf-8")
