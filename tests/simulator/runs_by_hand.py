"""Runs of a scenario whose arrivals and requests for replicas are written down."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from headroom.scaling.values.policy import Routing
from headroom.simulator.autoscaler import ScaleRequest, View
from headroom.simulator.clients import Clients
from headroom.simulator.compiled.plant_layout import Column
from headroom.simulator.outcome import Outcome
from headroom.simulator.plant import Cluster, Server, ServiceSpec
from headroom.simulator.run import simulate
from headroom.simulator.scenario import Fault, FaultKind, Scenario, Times, Workload
from simulator.fakes_fleet import spec
from simulator.fakes_plant import poisson


@dataclass(frozen=True)
class Given:
    """Arrivals as they are written down, in chunks of this many."""

    times_s: Times
    duration_s: float
    chunk: int = 10**6

    def chunks(self, seed: int) -> Iterator[Times]:
        for start in range(0, len(self.times_s), self.chunk):
            yield self.times_s[start : start + self.chunk]


@dataclass
class Scheduled:
    """Asks for what its schedule says, and keeps what it was shown."""

    schedule: Mapping[float, int] = field(default_factory=dict)
    period_s: float = 1.0
    scrape_s: float = 5.0
    views: list[View] = field(default_factory=list)
    instants: list[dict[str, float]] = field(default_factory=list)
    name: str = "scheduled"

    def evaluate(self, view: View) -> ScaleRequest:
        self.views.append(view)
        self.instants.append(dict(view.metrics.instant(Column.ANSWERED)))
        due = [replicas for time_s, replicas in self.schedule.items() if time_s <= view.now_s]
        return ScaleRequest(replicas=due[-1] if due else view.replicas, reason="Schedule")


@dataclass
class Direct(Scheduled):
    """The same, asking the pods itself."""

    restarted: int = 0

    def restart(self) -> None:
        self.restarted += 1


def every(seconds: float, until_s: float) -> Times:
    return np.arange(0.5 * seconds, until_s, seconds)


def run(
    autoscaler: Scheduled,
    times_s: Times,
    *faults: Fault,
    duration_s: float = 120.0,
    service: ServiceSpec | None = None,
    cluster: Cluster | None = None,
    chunk: int = 10**6,
    seed: int = 1,
) -> Outcome:
    scenario = Scenario(
        name="by hand",
        workloads=(
            Workload(
                spec=service or spec(initial=2, routing=Routing.ROUND_ROBIN),
                arrivals=Given(times_s, duration_s, chunk),
            ),
        ),
        cluster=cluster or Cluster(),
        faults=faults,
    )
    (outcome,) = simulate(scenario, lambda _: autoscaler, seed)
    return outcome


def same(one: Outcome, other: Outcome) -> bool:
    """Return whether two outcomes are the same to the last bit."""

    def flat(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return value.tobytes()
        if dataclasses.is_dataclass(value):
            return [flat(getattr(value, each.name)) for each in dataclasses.fields(value)]
        return value.hex() if isinstance(value, float) else value

    return bool(flat(one) == flat(other))


def random_run(seed: int, chunk: int = 10**6) -> Outcome:
    service = spec(
        server=Server(fixed_s=0.2, per_item_s=0.1, max_batch=4, cv=0.5),
        initial=2,
        target_s=2.0,
        routing=Routing.RANDOM,
        clients=Clients(timeout_s=4.0, max_waiting=30),
    )
    fault = Fault(kind=FaultKind.POD_KILL, start_s=150.0, share=0.3)
    return run(
        Scheduled({20.0: 5, 100.0: 3, 200.0: 6, 250.0: 1}),
        poisson(15.0, 4_400, seed=3),
        fault,
        duration_s=300.0,
        service=service,
        chunk=chunk,
        seed=seed,
    )


def fault(kind: FaultKind, **settings: float) -> Fault:
    return Fault(kind=kind, start_s=30.0, **settings)  # type: ignore[arg-type]
