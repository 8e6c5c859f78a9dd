"""The figures that golden runs compare: of short scenarios, of the cells' inputs, of constants.

Each scenario runs under Headroom and five of the other autoscalers, in turn, so that each of these
runs in at least three.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from decision_study.cells import CELLS
from decision_study.faults_cells import EXTRAS
from decision_study.versions import CELLS as CELLS_VERSION
from decision_study.versions import version_of
from headroom.scaling.values.policy import Policy
from headroom.simulator.autoscalers import catalogue
from headroom.simulator.clients import Clients
from headroom.simulator.outcome import Outcome
from headroom.simulator.run import simulate
from headroom.simulator.scenario import Scenario
from headroom.simulator.scenario_file import load_scenario

FOLDER = Path(__file__).parents[2] / "tests/decision_study/golden"
OURS = "headroom"
EACH, SEED = 5, 1
CONSTANTS = "constants"
Figures = Mapping[str, Any]


def scenarios() -> tuple[str, ...]:
    """Return the names of the golden scenarios."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


def autoscalers(scenario: str) -> tuple[str, ...]:
    """Return the autoscalers of a scenario: Headroom, and five others in turn."""
    others = [name for name in catalogue.names() if name != OURS]
    first = EACH * scenarios().index(scenario)
    return OURS, *sorted(others[(first + place) % len(others)] for place in range(EACH))


def measured(scenario: str, autoscaler: str) -> dict[str, Figures]:
    """Run a scenario under an autoscaler; return the figures by "scenario/service/autoscaler"."""
    loaded = load_scenario(FOLDER / f"{scenario}.toml")
    outcomes = simulate(loaded, lambda truth: catalogue.make(autoscaler, truth), SEED)
    return {
        f"{scenario}/{outcome.service}/{autoscaler}": _figures(outcome, autoscaler)
        for outcome in outcomes
    }


def _figures(outcome: Outcome, autoscaler: str) -> Figures:
    score, samples = outcome.score, outcome.timeline
    return {
        "version": version_of(autoscaler),
        "requests": score.requests,
        "within": score.within,
        "refused": score.refused,
        "expired": score.expired,
        "failed": score.failed,
        "violation_minutes": score.violation_minutes,
        "operations": score.operations,
        "flaps": score.flaps,
        "peak_ready": score.peak_ready,
        "peak_waiting": score.peak_waiting,
        "p95_s": _plain(score.p95_s),
        "p99_s": _plain(score.p99_s),
        "gpu_hours": score.gpu_hours,
        "starting_gpu_hours": score.starting_gpu_hours,
        "recover_s": score.recover_s,
        "mean_ready": score.mean_ready,
        "sum_waiting": float(samples.waiting.sum()),
        "sum_warming": float(samples.warming.sum()),
        "sum_unschedulable": float(samples.unschedulable.sum()),
        "sum_draining": float(samples.draining.sum()),
        "moves": [[move.time_s, move.before, move.after] for move in outcome.moves],
    }


def _plain(value: float) -> float | str:
    return value if math.isfinite(value) else "inf"


def inputs() -> dict[str, Figures]:
    """Return the inputs of the study's cells: their first arrivals, and all their numbers."""
    scenarios = {cell.name: cell.scenario() for cell in CELLS}
    scenarios |= {name: case.scenario() for name, case in EXTRAS.items()}
    return {f"inputs/{name}": _inputs(scenario) for name, scenario in scenarios.items()}


def _inputs(scenario: Scenario) -> Figures:
    (workload,) = scenario.workloads
    spec, policy = workload.spec, workload.spec.policy
    first = next(iter(workload.arrivals.chunks(SEED)))
    parts = (
        *(spec.server, spec.network, _given(spec.clients), spec.cold_start, spec.drain_s),
        *(spec.initial_replicas, spec.advertised, scenario.cluster, scenario.faults),
        *(policy.latency_target_s, policy.min_replicas, policy.max_replicas),
    )
    return {
        "version": f"cells {CELLS_VERSION}",
        "duration_s": scenario.duration_s,
        "arrivals": [len(first), float(first[-1]), float(first.sum())],
        "numbers": sorted(_numbers(parts)),
    }


def constants() -> dict[str, Figures]:
    """Return the defaults of a policy, the decision's tuning among them, without their names."""
    numbers = sorted(_numbers(Policy(latency_target_s=1.0, max_replicas=1)))
    return {CONSTANTS: {"version": version_of(OURS), "numbers": numbers}}


def _numbers(value: object) -> Iterator[float]:
    """Yield every number within a value, so that names may change and numbers may not."""
    if is_dataclass(value) and not isinstance(value, type):
        for each in fields(value):
            yield from _numbers(getattr(value, each.name))
    elif isinstance(value, tuple):
        for inner in value:
            yield from _numbers(inner)
    elif isinstance(value, int | float):
        yield _finite(float(value))


def _given(clients: Clients) -> tuple[object, ...]:
    """Return what differs from plain clients: a new field leaves other cells unchanged."""
    plain = Clients()
    names = [each.name for each in fields(clients)]
    return tuple(
        getattr(clients, name) for name in names if getattr(clients, name) != getattr(plain, name)
    )


def _finite(value: float) -> float:
    return value if math.isfinite(value) else sys.float_info.max
