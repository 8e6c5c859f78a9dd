"""Runs Headroom in a cell and sums up what each layer of its decision costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from decision_study import running
from decision_study.family import excess, members
from decision_study.family.measures import HOUR_S, gpu_seconds, hours_of, total
from decision_study.family.members import MEMBERS
from decision_study.records import Job
from headroom.scaling.values.observation import PodState
from headroom.simulator.autoscaler import GroundTruth, ScaleRequest, View
from headroom.simulator.autoscalers import catalogue
from headroom.simulator.autoscalers.headroom import Headroom
from headroom.simulator.outcome import Timeline
from headroom.simulator.run import simulate
from headroom.simulator.scenario import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """Cost of Headroom's layers in a cell: after the first hour of a member, else of all hours."""

    cell: str
    attainment: float
    bound_gpu_hours: float
    """GPU-hours of the clairvoyant."""
    gpu_hours: excess.Added
    """GPU-hours of each of `excess.LAYERS`."""
    above_gpu_hours: excess.Added
    """The part of each above what the clairvoyant holds at the same instant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The replicas that the clairvoyant pays for, by time."""

    times_s: NDArray[np.float64]
    replicas: NDArray[np.float64]
    """At these times, starting and draining ones included."""

    def at(self, now_s: float) -> float:
        """Return the replicas at the first sample at or after this time."""
        index = int(np.searchsorted(self.times_s, now_s))
        return float(self.replicas[min(index, len(self.replicas) - 1)])


def _nothing() -> list[float]:
    return [0.0] * len(excess.LAYERS)


@dataclass(kw_only=True)
class Watched(Headroom):
    """Headroom that sums up what each layer adds."""

    bound: Bound
    begin_s: float
    replica_s: list[float] = field(default_factory=_nothing, init=False)
    above_s: list[float] = field(default_factory=_nothing, init=False)

    def evaluate(self, view: View) -> ScaleRequest:
        """Return the decision of `decide`."""
        request = super().evaluate(view)
        if view.now_s > self.begin_s and self.decision is not None:
            ready = [pod.uid for pod in view.pods if pod.state is PodState.READY]
            held = sum(pod.state is not PodState.UNSCHEDULABLE for pod in view.pods)
            layers = excess.added(self.decided, self.state, self.decision, ready, held)
            higher = excess.above(layers, self.bound.at(view.now_s))
            for number, (replicas, part) in enumerate(zip(layers, higher, strict=True)):
                self.replica_s[number] += replicas * self.period_s
                self.above_s[number] += part * self.period_s
        return request


def perform(job: Job, bounds: Mapping[str, Job]) -> Attribution:
    """Run Headroom in the job's cell; `bounds` has the clairvoyant's run of each cell."""
    scenario, begin_s = _judged(job.cell)
    seen, watched = _timeline(bounds[job.cell], scenario), list[Watched]()
    bound = Bound(times_s=seen.times_s, replicas=seen.ready + seen.warming + seen.draining)

    def make(truth: GroundTruth) -> Watched:
        watched.append(Watched(truth=truth, bound=bound, begin_s=begin_s))
        return watched[-1]

    (outcome,) = simulate(scenario, make, job.seed)
    start_s = scenario.workloads[0].spec.cold_start.median_s
    hours = hours_of(outcome, duration_s=scenario.duration_s, cold_start_s=start_s)
    return Attribution(
        cell=job.cell,
        attainment=total(hours[round(begin_s / HOUR_S) :] or hours).attainment,
        bound_gpu_hours=float(gpu_seconds(seen)[seen.times_s > begin_s].sum()) / HOUR_S,
        gpu_hours=tuple(seconds / HOUR_S for seconds in watched[0].replica_s),
        above_gpu_hours=tuple(seconds / HOUR_S for seconds in watched[0].above_s),
    )


def _judged(cell: str) -> tuple[Scenario, float]:
    """Return the scenario of a cell, and when the time begins that counts."""
    if cell in MEMBERS:
        return members.scenario_of(cell), HOUR_S
    return running.scenario_of(cell), 0.0


def _timeline(job: Job, scenario: Scenario) -> Timeline:
    """Run the clairvoyant once more, for what it holds at each instant."""
    knobs: dict[str, float | str] = dict(job.knobs)
    (outcome,) = simulate(
        scenario, lambda truth: catalogue.make(job.autoscaler, truth, knobs), job.seed
    )
    return outcome.timeline
