"""Plans many runs, and performs one of them from names alone, as a worker process receives it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from headroom.simulator.autoscalers import catalogue
from headroom.simulator.outcome import Outcome
from headroom.simulator.run import simulate
from headroom.simulator.scenario import Scenario
from headroom.simulator.scenario_file import load_scenario

Knob = float | str
OnProgress = Callable[[float], None]
"""Called from time to time with the finished share, in 0..1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One scenario under one autoscaler with one seed; names only, which are cheap to send."""

    scenario: Path
    autoscaler: str
    knobs: tuple[tuple[str, Knob], ...] = ()
    seed: int = 1

    @property
    def label(self) -> str:
        """Return its name in progress and errors."""
        knobs = ", ".join(f"{name}={value}" for name, value in self.knobs)
        setting = f"{self.autoscaler}({knobs})" if knobs else self.autoscaler
        return f"{self.scenario.stem}, {setting}, seed {self.seed}"


Perform = Callable[[Run, OnProgress], tuple[Outcome, ...]]
"""Performs one run and returns one outcome per service."""


def perform(run: Run, on_progress: OnProgress) -> tuple[Outcome, ...]:
    """Perform a run. Raises ValueError for an invalid scenario file or knob."""
    knobs: dict[str, Any] = dict(run.knobs)
    return simulate(
        _loaded(run.scenario),
        lambda truth: catalogue.make(run.autoscaler, truth, knobs),
        run.seed,
        on_progress=on_progress,
    )


@cache
def _loaded(path: Path) -> Scenario:
    return load_scenario(path)


def shipped() -> Mapping[str, Path]:
    """Return the shipped scenarios, by name."""
    folder = Path(str(files("headroom.simulator"))) / "scenarios"
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def planned(
    scenarios: Iterable[Path],
    settings: Sequence[tuple[str, Mapping[str, Knob]]],
    seeds: int,
) -> tuple[Run, ...]:
    """Return the runs, seeds outermost: an interrupted campaign has comparable runs."""
    paths = list(scenarios)
    return tuple(
        Run(scenario=path, autoscaler=name, knobs=tuple(knobs.items()), seed=seed)
        for seed in range(1, seeds + 1)
        for path in paths
        for name, knobs in settings
    )
