"""Runs Headroom in a cell of the family and sums up what each layer of its decision costs."""

from __future__ import annotations

from dataclasses import dataclass, field

from decision_study.family import excess
from decision_study.family.measures import HOUR_S, hours_of, total
from decision_study.family.performing import scenario_of
from decision_study.records import Job
from headroom.scaling.values.observation import PodState
from headroom.simulator.autoscaler import GroundTruth, ScaleRequest, View
from headroom.simulator.autoscalers.headroom import Headroom
from headroom.simulator.run import simulate


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """What Headroom's layers cost in a cell after the first hour."""

    cell: str
    attainment: float
    gpu_hours: excess.Added
    """GPU-hours of each of `excess.LAYERS`."""


@dataclass(kw_only=True)
class Watched(Headroom):
    """Headroom that sums up, after the first hour, what each layer adds."""

    replica_s: list[float] = field(default_factory=lambda: [0.0] * len(excess.LAYERS), init=False)

    def evaluate(self, view: View) -> ScaleRequest:
        """Return the decision of `decide`."""
        request = super().evaluate(view)
        if view.now_s > HOUR_S and self.decision is not None:
            ready = [pod.uid for pod in view.pods if pod.state is PodState.READY]
            held = sum(pod.state is not PodState.UNSCHEDULABLE for pod in view.pods)
            layers = excess.added(self.decided, self.state, self.decision, ready, held)
            for number, replicas in enumerate(layers):
                self.replica_s[number] += replicas * self.period_s
        return request


def perform(job: Job) -> Attribution:
    """Run Headroom in the job's cell."""
    scenario, watched = scenario_of(job.cell), list[Watched]()

    def make(truth: GroundTruth) -> Watched:
        watched.append(Watched(truth=truth))
        return watched[-1]

    (outcome,) = simulate(scenario, make, job.seed)
    start_s = scenario.workloads[0].spec.cold_start.median_s
    hours = hours_of(outcome, duration_s=scenario.duration_s, cold_start_s=start_s)
    return Attribution(
        cell=job.cell,
        attainment=total(hours[1:] or hours).attainment,
        gpu_hours=tuple(seconds / HOUR_S for seconds in watched[0].replica_s),
    )
