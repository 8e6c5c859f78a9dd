"""One operator process of the soak: the production's controller and election, in memory.

Its requests are counted, and its figures looked at.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from headroom.console.read_model import ReadModel
from headroom.controller.connections import Connections
from headroom.controller.controller import Controller
from headroom.controller.gather.metrics.metrics_reader import MetricsReader
from headroom.controller.leadership import Candidate, Election
from headroom.controller.options import ControllerOptions
from headroom.ops.operator_metrics import OperatorMetrics
from reliability.soak.soak_results import SoakResults
from support.cluster_world import FakeClock, FakeCluster
from support.pods_world import Pods

MAX_REPLICAS = 6


class Surroundings(Protocol):
    """The environment of an operator process, and what is recorded of it."""

    results: SoakResults
    clock: FakeClock
    cluster: FakeCluster
    pods: Pods
    outcomes: Counter[str]
    decided_s: dict[str, float]

    async def meet(self, verb: str, *, cut: bool) -> None:
        """Apply the current faults to a request; raise ClusterError where it fails."""


class Connection:
    """One process's connection to the API: its requests are counted, and faults apply to them."""

    def __init__(self, world: Surroundings) -> None:
        self._world = world
        self.cut = False

    def __getattr__(self, verb: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        """Return the API's method of that name."""

        async def call(*args: Any, **kwargs: Any) -> Any:
            world = self._world
            world.results.calls[verb] = world.results.calls.get(verb, 0) + 1
            await world.meet(verb, cut=self.cut)
            return await getattr(world.cluster, verb)(*args, **kwargs)

        return call


class Operator:
    """A process that competes for the Lease."""

    def __init__(self, world: Surroundings, name: str) -> None:
        self.api = Connection(world)
        self.instruments = OperatorMetrics()
        self.election: Election
        connections = Connections(
            cluster=self.api,
            metrics=MetricsReader(world.pods, world.clock, {}),
            clock=world.clock,
            recorder=_Noting(self.instruments, world),
            listener=ReadModel(lambda: ()),
        )
        options = ControllerOptions(instance=name)
        self.controller = Controller(connections, options, chance=random.Random(name))
        self.election = Election(
            leases=self.api,
            clocks=world.clock,
            namespace="headroom-system",
            name="headroom-operator",
            candidate=Candidate(identity=name),
            observer=self.instruments,
        )
        self._tasks = [
            asyncio.create_task(self.controller.follow()),
            asyncio.create_task(self.election.run(self.controller.lead)),
        ]

    @property
    def leads(self) -> bool:
        """Return whether this process decides."""
        return self.controller.scheduler is not None

    async def die(self) -> None:
        """End as by SIGKILL, without a message to any other process."""
        self.api.cut = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class _Noting:
    """Passes figures on, and looks at them."""

    def __init__(self, instruments: OperatorMetrics, world: Surroundings) -> None:
        self._instruments, self._world = instruments, world

    def __getattr__(self, name: str) -> Any:
        """Pass on what is not looked at."""
        return getattr(self._instruments, name)

    def ticked(self, seconds: float, lag_s: float, outcome: str) -> None:
        """Count how ticks end."""
        self._world.results.ticks += 1
        self._world.outcomes[outcome] += 1
        self._instruments.ticked(seconds, lag_s, outcome)

    def decided(self, service: Any, decision: Any) -> None:
        """Record the time, and check the bounds."""
        self._world.decided_s[service.name] = asyncio.get_running_loop().time()
        if not 1 <= decision.replicas <= MAX_REPLICAS:
            self._world.results.wrongs.append(
                f"{service.name}: {decision.replicas} replicas decided"
            )
        self._instruments.decided(service, decision)
