"""The cells: combinations of workload, plant, size, cold start and routing.

The list is fixed. A cell's mean rate keeps about `size` replicas in use.
"""

from __future__ import annotations

from dataclasses import dataclass

from decision_study.workloads import SERVICE, SMOOTH, WORKLOADS
from headroom.scaling.values.policy import Policy, Routing
from headroom.simulator.capacity import capacity_rps
from headroom.simulator.cold_start import ColdStart
from headroom.simulator.plant import Network, Server, ServiceSpec
from headroom.simulator.scenario import Scenario, Workload

MAX_REPLICAS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """A server and its latency target."""

    server: Server
    target_s: float


PLANTS = {
    "vision": Plant(server=Server(fixed_s=0.006, per_item_s=0.0005, max_batch=8), target_s=0.1),
    "medium": Plant(server=Server(fixed_s=0.02, per_item_s=0.0015, max_batch=16), target_s=0.25),
    "heavy": Plant(server=Server(fixed_s=0.15, per_item_s=0.06, max_batch=4), target_s=1.5),
    "single": Plant(server=Server(fixed_s=0.3, per_item_s=0.0, cv=1.0), target_s=2.0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell of the comparison."""

    workload: str
    plant: str
    size: int
    cold_start_s: float
    routing: Routing

    @property
    def name(self) -> str:
        """Its parts in one string."""
        start = f"{self.cold_start_s:g}s"
        return f"{self.workload}/{self.plant}/{self.size}/{start}/{self.routing.value}"

    @property
    def smooth(self) -> bool:
        """Whether it belongs to the smooth class."""
        return self.workload in SMOOTH

    def spec(self) -> ServiceSpec:
        """Return the service: Headroom's defaults, and a cost that must be learned."""
        plant = PLANTS[self.plant]
        return ServiceSpec(
            name=SERVICE,
            policy=Policy(
                latency_target_s=plant.target_s, max_replicas=MAX_REPLICAS, routing=self.routing
            ),
            server=plant.server,
            network=Network(routing=self.routing),
            cold_start=ColdStart.of(self.cold_start_s, spread=1.1),
        )

    def scenario(self) -> Scenario:
        """Return the scenario of a run."""
        spec = self.spec()
        arrivals = WORKLOADS[self.workload](mean_rps(spec, self.size))
        return Scenario(name=self.name, workloads=(Workload(spec=spec, arrivals=arrivals),))


def mean_rps(spec: ServiceSpec, size: int) -> float:
    """Return the rate that keeps about `size` replicas in use: 0.8 of capacity or 0.65 of full."""
    return size * min(0.65 * spec.server.full_rps, 0.8 * capacity_rps(spec, size))


_RANDOM, _LEAST = Routing.RANDOM, Routing.LEAST_IN_FLIGHT
_LAYOUT: dict[str, tuple[tuple[str, int, float, Routing], ...]] = {
    # workload: (plant, size, cold start in seconds, routing)
    "llm-hour": (
        ("vision", 4, 60, _RANDOM),
        ("medium", 4, 60, _RANDOM),
        ("heavy", 4, 60, _RANDOM),
        ("heavy", 12, 180, _LEAST),
        ("single", 12, 60, _RANDOM),
        ("single", 4, 20, _LEAST),
    ),
    "servegen": (
        ("heavy", 4, 60, _RANDOM),
        ("heavy", 12, 60, _RANDOM),
        ("heavy", 12, 180, _LEAST),
        ("single", 12, 60, _RANDOM),
        ("single", 4, 180, _RANDOM),
        ("single", 12, 20, _LEAST),
    ),
    "servegen-bursts": (
        ("heavy", 4, 20, _RANDOM),
        ("heavy", 12, 180, _RANDOM),
        ("single", 12, 60, _LEAST),
    ),
    "worldcup": (
        ("medium", 4, 60, _RANDOM),
        ("heavy", 4, 60, _RANDOM),
        ("heavy", 12, 180, _RANDOM),
        ("single", 12, 60, _RANDOM),
        ("single", 12, 180, _LEAST),
    ),
    "ramp": (
        ("vision", 4, 180, _RANDOM),
        ("heavy", 4, 20, _RANDOM),
        ("heavy", 12, 60, _LEAST),
        ("single", 4, 60, _RANDOM),
        ("single", 12, 180, _RANDOM),
    ),
    "functions-all": (
        ("medium", 4, 60, _RANDOM),
        ("heavy", 12, 180, _RANDOM),
        ("single", 12, 60, _RANDOM),
    ),
    "functions-http": (
        ("heavy", 4, 60, _RANDOM),
        ("heavy", 12, 20, _LEAST),
        ("single", 12, 60, _RANDOM),
    ),
    "functions-queue": (
        ("heavy", 4, 60, _RANDOM),
        ("single", 12, 180, _RANDOM),
        ("single", 4, 20, _LEAST),
    ),
    "functions-spike": (
        ("heavy", 4, 60, _RANDOM),
        ("single", 12, 20, _RANDOM),
    ),
    "step": (
        ("medium", 4, 20, _RANDOM),
        ("heavy", 4, 60, _RANDOM),
        ("heavy", 12, 180, _LEAST),
        ("single", 12, 60, _RANDOM),
        ("single", 4, 180, _RANDOM),
    ),
    "spikes": (
        ("vision", 4, 20, _RANDOM),
        ("heavy", 4, 60, _RANDOM),
        ("heavy", 12, 20, _RANDOM),
        ("single", 12, 60, _LEAST),
        ("single", 4, 180, _RANDOM),
    ),
}

CELLS: tuple[Cell, ...] = tuple(
    Cell(workload=workload, plant=plant, size=size, cold_start_s=float(start), routing=routing)
    for workload, layout in _LAYOUT.items()
    for plant, size, start, routing in layout
)
