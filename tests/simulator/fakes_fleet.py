"""Fleets on a virtual clock without an autoscaler: what a test asks for is what happens."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headroom.scaling.values.observation import PodState
from headroom.scaling.values.policy import Policy, Routing
from headroom.simulator.clients import Clients
from headroom.simulator.cold_start import ColdStart, Phase
from headroom.simulator.compiled.plant_layout import Tally
from headroom.simulator.event_queue import EventQueue
from headroom.simulator.fleet import Fleet
from headroom.simulator.gpu_pool import Pool
from headroom.simulator.plant import Cluster, Network, Server, ServiceSpec
from headroom.simulator.replica import Replica

SERVER = Server(fixed_s=1.0, per_item_s=0.0)
"""One request a second, one at a time."""
START = ColdStart(phases=(Phase(name="pulling", median_s=10.0), Phase(name="warming", median_s=20)))


def spec(
    name: str = "service",
    *,
    priority: int = 0,
    server: Server = SERVER,
    cold_start: ColdStart = START,
    drain_s: float = 30.0,
    routing: Routing = Routing.LEAST_IN_FLIGHT,
    clients: Clients | None = None,
    target_s: float = 5.0,
    initial: int | None = None,
) -> ServiceSpec:
    """A service whose replicas take 30 s to start and 1 s per request."""
    policy = Policy(latency_target_s=target_s, min_replicas=0, max_replicas=50, priority=priority)
    return ServiceSpec(
        name=name,
        policy=replace(policy, routing=routing),
        server=server,
        network=Network(routing=routing),
        clients=clients or Clients(),
        cold_start=cold_start,
        initial_replicas=initial,
        drain_s=drain_s,
    )


class FleetWorld:
    """Services over one pool; arrivals are given with the time to run to."""

    def __init__(
        self, *specs: ServiceSpec, cluster: Cluster | None = None, initial: tuple[int, ...] = ()
    ) -> None:
        self.events, self.pool = EventQueue(), Pool(cluster or Cluster())
        self.fleets = [Fleet(one, self.pool, self.events, 1, 3600.0) for one in specs]
        self.now_s = 0.0
        for fleet, replicas in zip(self.fleets, initial, strict=False):
            fleet.begin(replicas)
        self.pool.begin()

    @property
    def fleet(self) -> Fleet:
        """The only one, or the first."""
        return self.fleets[0]

    def run(self, until_s: float, arrivals: list[float] | None = None) -> FleetWorld:
        """Let time pass; arrivals go to the first service."""
        times_s, index = np.array(arrivals or [], dtype=np.float64), 0
        while self.events.next_s <= until_s:
            index = self._advance(times_s, index, self.events.next_s)
            self.events.run_next()
        self._advance(times_s, index, until_s)
        self.now_s = until_s
        return self

    def _advance(self, times_s: np.ndarray, index: int, until_s: float) -> int:
        for fleet in self.fleets[1:]:
            fleet.plant.advance(np.empty(0), 0, until_s)
        return self.fleet.plant.advance(times_s, index, until_s)

    def scale(self, replicas: int, fleet: Fleet | None = None) -> FleetWorld:
        """Ask for this many now."""
        (fleet or self.fleet).scale(replicas, self.now_s)
        return self

    def states(self, fleet: Fleet | None = None) -> str:
        """Say what the pods are, oldest first: Ready, Warming, Unschedulable, Terminating."""
        return "".join(one.state.value[0] for one in (fleet or self.fleet).replicas)

    def uids(self) -> list[str]:
        """Name those that stand, oldest first."""
        return [one.uid.removeprefix("service-") for one in self.fleet.existing()]

    def ready(self) -> list[Replica]:
        """Return those that take requests, oldest first."""
        return self.fleet.in_state(PodState.READY)

    def gpu_s(self, fleet: Fleet | None = None) -> tuple[float, float]:
        """Return GPU-seconds held, and those before ready."""
        return (fleet or self.fleet).gpu_seconds(self.now_s)

    def tally(self, which: Tally) -> int:
        """Return one count of the truth."""
        return int(self.fleet.plant.tables.tally[which])
