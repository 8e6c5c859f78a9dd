"""Two operators on one cluster, on virtual time."""

from __future__ import annotations

import asyncio
import copy
import random
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from headroom.controller.connections import Connections
from headroom.controller.controller import Controller
from headroom.controller.gather.metrics.metrics_reader import MetricsReader
from headroom.controller.leadership import Candidate, Election
from headroom.controller.options import ControllerOptions
from headroom.controller.sharing.accelerator_note import AcceleratorNote
from headroom.errors import ClusterError, Unavailable
from support.cluster_world import FakeClock, FakeCluster, Manifest
from support.controller_world import FakeRecorder, spec
from support.pods_world import Pods
from support.virtual_time import VirtualTimeLoop


class Connection:
    """One operator's way to the cluster; it can break, and it remembers what went through."""

    def __init__(self, cluster: FakeCluster) -> None:
        self._cluster = cluster
        self.writes: list[tuple[float, str, str]] = []
        self.broken: ClusterError | None = None
        self.hangs = False
        self.answers_after_s = 0.0

    def __getattr__(self, verb: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            if self.hangs:
                await asyncio.Event().wait()
            if self.broken is not None:
                raise self.broken
            answer = await getattr(self._cluster, verb)(*args, **kwargs)
            if verb not in ("get", "list_all", "list_at") and not kwargs.get("dry_run"):
                kind = args[0]["kind"] if isinstance(args[0], dict) else ""
                self.writes.append((asyncio.get_running_loop().time(), verb, kind))
            await asyncio.sleep(self.answers_after_s)
            return answer

        return call


class Observed:
    def __init__(self) -> None:
        self.led_last = False

    def led(self, leading: bool, transitions: int) -> None:
        self.led_last = leading


class Operator:
    """A process: a controller that stands for the lease."""

    def __init__(self, world: Duel, name: str) -> None:
        self.api = Connection(world.cluster)
        self.recorder = FakeRecorder()
        self.observed = Observed()
        self.note = AcceleratorNote()
        connections = Connections(
            cluster=self.api,
            metrics=MetricsReader(world.pods, world.clock, {}),
            clock=world.clock,
            recorder=self.recorder,
        )
        options = ControllerOptions(instance=name)
        self.controller = Controller(connections, options, chance=random.Random(7))
        self.election = Election(
            leases=self.api,
            clocks=world.clock,
            namespace="headroom-system",
            name="headroom-operator",
            candidate=Candidate(identity=name),
            observer=self.observed,
            note=self.note,
        )

    def begin(self) -> None:
        self._follow = asyncio.create_task(self.controller.follow())
        self._stand = asyncio.create_task(self.election.run(self.controller.lead))

    async def end(self) -> None:
        """End the process as SIGTERM does."""
        for task in (self._follow, self._stand):
            task.cancel()
        await asyncio.gather(self._follow, self._stand, return_exceptions=True)

    async def die(self) -> None:
        """End the process as SIGKILL does, without a message to any other process."""
        self.api.broken = Unavailable("no such process")
        await self.end()

    @property
    def decided(self) -> int:
        return len(self.recorder.decisions)


class Duel:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.cluster = FakeCluster(self.clock)
        self.pods = Pods(self.cluster, self.clock)
        self.cluster.before_call = lambda *_: self.pods.follow()
        self.cluster.on_change = self._changed
        self.one, self.other = Operator(self, "one"), Operator(self, "other")

    def _changed(self, kind: str, changed: Manifest) -> None:
        if changed["kind"] == "InferenceService":
            for operator in (self.one, self.other):
                operator.controller.observe(kind, copy.deepcopy(changed))

    async def begin(self, **changes: Any) -> None:
        """Let `one` lead a service, and `other` follow."""
        self.cluster.put(
            {
                "apiVersion": "headroom.dev/v1alpha1",
                "kind": "InferenceService",
                "metadata": {"name": "resnet", "namespace": "default"},
                "spec": spec(**changes),
            }
        )
        self.one.begin()
        await asyncio.sleep(0.5)
        self.other.begin()
        await asyncio.sleep(29.5)
        assert (self.one.election.leading, self.other.election.leading) == (True, False)

    def lease(self) -> Manifest:
        found = self.cluster.find("Lease", "headroom-operator", "headroom-system")
        assert found is not None
        stated: Manifest = found["spec"]
        return stated

    def replicas(self) -> int:
        deployment = self.cluster.find("Deployment", "resnet")
        assert deployment is not None
        return int(deployment["spec"]["replicas"])


def duel(scenario: Callable[[Duel], Awaitable[None]]) -> None:
    async def run() -> None:
        world = Duel()
        try:
            await scenario(world)
        finally:
            await world.one.end()
            await world.other.end()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(run())
