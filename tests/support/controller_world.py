"""A world for the controller: an API server, pods and model servers in memory, on virtual time.

Nothing here waits. The event loop's clock jumps to the next timer when there is nothing else to do,
so a scenario of an hour takes milliseconds and is the same each time.
"""

from __future__ import annotations

import asyncio
import copy
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from headroom.controller.connections import Connections
from headroom.controller.controller import Controller
from headroom.controller.gather.metrics.metrics_reader import MetricsReader
from headroom.controller.options import ControllerOptions
from headroom.controller.report.recording import Recording
from headroom.controller.sharing.caps import NO_CAPS
from headroom.controller.warmup import WarmupDeps
from headroom.resources.settings import Settings
from headroom.scaling import Decision
from support.cluster_world import FakeClock, FakeCluster, Manifest
from support.pods_world import Pods
from support.servers_world import PodEvents, Servers
from support.virtual_time import VirtualTimeLoop

REPLICA_RPS = 9.0
"""Just more than one replica of the world's servers carries below its ceiling, 0.8 x 10.26/s."""


def play(
    scenario: Callable[[World], Awaitable[None]],
    router: Any = None,
    kind: Callable[[Any], World] | None = None,
) -> None:
    """Run a scenario from beginning to end, in a world of another kind if one is named."""

    async def run() -> None:
        async with (kind or World)(router) as stage:
            await scenario(stage)

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(run())


class SilentRouter:
    """A router that publishes nothing; a test says how requests reach the services."""

    def changed(self) -> None:
        pass

    async def lead(self, *_: Any) -> None:
        await asyncio.Event().wait()


class FakeRecorder:
    def __init__(self) -> None:
        self.decisions: list[Decision] = []
        self.outcomes: list[str] = []
        self.gone: list[str] = []
        self.failures: list[str] = []
        self.minutes: list[bool] = []
        self.tokens: list[tuple[dict[str, float | None], float]] = []
        self.rates: dict[str, float | None] = {}
        self.troubles: dict[str, set[str]] = {}
        self.holds: list[str] = []

    def decided(self, service: Any, decision: Decision) -> None:
        self.decisions.append(decision)

    def overdue(self, service: Any, pods: int) -> None: ...

    def gateway_rates(self, service: Any, rates: Any) -> None:
        self.rates = dict(rates)

    def generated(self, service: Any, decision: Any, measured: Any) -> None: ...

    def classes_measured(self, service: Any, classes: Any) -> None: ...

    def tokens_measured(self, service: Any, measured: Any, room: float) -> None:
        self.tokens.append((dict(measured), room))

    def judged(self, service: Any, *, kept: bool) -> None:
        self.minutes.append(kept)

    def decision_failed(self, service: Any, exception: str) -> None:
        self.failures.append(exception)

    def show_unhealthy(self, namespace: str, name: str, reasons: Any) -> None:
        self.troubles[f"{namespace}/{name}"] = set(reasons)

    def held(self, namespace: str, name: str) -> None:
        self.holds.append(f"{namespace}/{name}")

    def ticked(self, seconds: float, lag_s: float, outcome: str) -> None:
        self.outcomes.append(outcome)

    def unlisted(self, namespaces: Any) -> None: ...

    def unread(self, services: Any) -> None: ...

    def forgotten(self, namespace: str, name: str) -> None:
        self.gone.append(f"{namespace}/{name}")


class FakeRecordingSink:
    """Keeps lines, unless it is full."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.failure: Exception | None = None
        self.asked = 0

    def append(self, text: str) -> None:
        self.asked += 1
        if self.failure is not None:
            raise self.failure
        self.lines += text.splitlines(keepends=True)


class World:
    """The controller with everything around it."""

    make_pods = Pods

    def __init__(self, router: Any = None) -> None:
        self.router = router
        self.sink = FakeRecordingSink()
        self.caps = NO_CAPS
        self.clock = FakeClock()
        self.operator_clock = FakeClock()
        self.cluster = FakeCluster(self.clock)
        self.pods = self.make_pods(self.cluster, self.clock)
        self.cluster.before_call = lambda *_: self.pods.follow()
        self.cluster.on_change = self._changed
        self.watching = True
        self.servers = Servers(self.pods)
        self.pod_events = PodEvents()
        self.start_operator()

    def start_operator(self) -> None:
        """Begin a new process: nothing is left of the old one but what the cluster keeps."""
        self.recorder = FakeRecorder()
        connections = Connections(
            cluster=self.cluster,
            metrics=MetricsReader(self.pods, self.operator_clock, {}),
            clock=self.operator_clock,
            recorder=self.recorder,
            recording=Recording(self.sink),
            warmup=WarmupDeps(requester=self.servers, watches=[self.pod_events]),
        )
        options = ControllerOptions(
            instance="operator-0", caps=self.caps, settings=Settings(marks_pods=True)
        )
        self.controller = Controller(
            connections, options, router=self.router, chance=random.Random(7)
        )

    async def __aenter__(self) -> World:
        self._task = asyncio.create_task(self.controller.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def restart_operator(self, down_s: float = 3.0) -> None:
        await self.__aexit__()
        self.watching = False
        await asyncio.sleep(down_s)
        self.start_operator()
        self.watching = True
        await self.__aenter__()

    async def run_for(self, seconds: float) -> None:
        if self._task.done():
            await self._task
        await asyncio.sleep(seconds)

    async def run_for_without_operator(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def create(
        self, name: str = "resnet", status: Manifest | None = None, **changes: Any
    ) -> Manifest:
        """Apply an InferenceService as a user would; a status is what an earlier operator left."""
        return self.cluster.put(
            {
                "status": status or {},
                "apiVersion": "headroom.dev/v1alpha1",
                "kind": "InferenceService",
                "metadata": {"name": name, "namespace": "default"},
                "spec": spec(**changes),
            }
        )

    def create_workload(self, name: str = "own", kind: str = "Deployment", **spec: Any) -> Manifest:
        """Apply a workload as its owner would; its pods have its name as a label."""
        labels = {"headroom.dev/inference-service": name}
        limits = {"limits": {"nvidia.com/gpu": 1}}
        template = {"spec": {"containers": [{"name": "main", "resources": limits}]}}
        own = kind in ("Deployment", "StatefulSet")
        manifest: Manifest = {
            "apiVersion": "apps/v1" if own else "example.com/v1",
            "kind": kind,
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"replicas": 1, **spec},
        }
        if own:
            manifest["spec"] |= {"selector": {"matchLabels": labels}, "template": template}
        else:
            manifest["scale"] = {"selector": f"headroom.dev/inference-service={name}"}
        stored = self.cluster.put(manifest)
        self.cluster.write_replicas(stored, stored["spec"]["replicas"], "helm")
        return stored

    def edit(self, name: str = "resnet", **changes: Any) -> None:
        service = self.cluster.find("InferenceService", name)
        assert service is not None
        self.cluster.update(service, lambda one: one.update(spec=spec(**changes)))

    def status(self, name: str = "resnet") -> Manifest:
        service = self.cluster.find("InferenceService", name)
        assert service is not None
        status: Manifest = service.get("status", {})
        return status

    def condition(self, kind: str, name: str = "resnet") -> tuple[str, str]:
        for one in self.status(name).get("conditions", ()):
            if one["type"] == kind:
                return one["status"], one["reason"]
        return "", ""

    def message(self, kind: str, name: str = "resnet") -> str:
        conditions = self.status(name)["conditions"]
        return next(str(one["message"]) for one in conditions if one["type"] == kind)

    def replicas(self, name: str = "resnet", kind: str = "Deployment") -> int:
        deployment = self.cluster.find(kind, name)
        assert deployment is not None
        return int(deployment["spec"]["replicas"])

    def _changed(self, kind: str, changed: Manifest) -> None:
        if self.watching and changed["kind"] == "InferenceService":
            self.controller.observe(kind, copy.deepcopy(changed))


def spec(
    *,
    scaling: Mapping[str, Any] | None = None,
    runtime: Mapping[str, Any] | None = None,
    target: str = "",
    kind: str = "Deployment",
    **more: Any,
) -> Manifest:
    """Build a spec; with a target its workload's name, which is its model's too."""
    described: Manifest = {"runtime": {"image": "registry.example/server:1", **(runtime or {})}}
    if target:
        version = "example.com/v1" if kind == "Group" else "apps/v1"
        reference = {"apiVersion": version, "kind": kind, "name": target}
        described = {"runtime": {}, "targetRef": reference, "model": {"name": target}}
    return {
        **described,
        "slo": {"latency": {"target": "1.5s"}},
        "scaling": {"minReplicas": 1, "maxReplicas": 10, **(scaling or {})},
        **more,
    }
