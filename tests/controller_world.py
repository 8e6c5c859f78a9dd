"""A world for the controller: an API server, pods and model servers in memory, on virtual time.

Nothing here waits. The event loop's clock jumps to the next timer when there is nothing else to do,
so a scenario of an hour takes milliseconds and is the same each time.
"""

from __future__ import annotations

import asyncio
import copy
import math
import random
import selectors
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from headroom.api.timestamps import epoch_s, rfc3339
from headroom.controller.controller import Controller
from headroom.errors import ClusterError, Conflict, NotFound, Rejected, ScrapeFailed
from headroom.scaling import Decision

Manifest = dict[str, Any]

START_S = 1_800_000_000.0
WARMUP_S = 10.0
BOUNDS_S = tuple(0.001 * 1.15**k for k in range(80))


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock is moved by waiting, and by nothing else."""

    def __init__(self) -> None:
        self._now_s = 0.0
        super().__init__(_Jumping(self))

    def time(self) -> float:
        return self._now_s

    def jump(self, seconds: float) -> None:
        self._now_s += seconds


class _Jumping(selectors.DefaultSelector):
    def __init__(self, loop: VirtualTimeLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        found = super().select(0)
        if not found:
            if timeout is None:
                raise RuntimeError("the scenario waits for something that nothing will bring")
            self._loop.jump(max(timeout, 0.0))
        return found


def play(scenario: Callable[[World], Awaitable[None]]) -> None:
    """Run a scenario from beginning to end."""

    async def run() -> None:
        async with World() as stage:
            await scenario(stage)

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(run())


class FakeClock:
    def now_s(self) -> float:
        return START_S + asyncio.get_running_loop().time()


class FakeCluster:
    """Objects with resource versions, generations and owners; calls can be made to fail."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self.objects: dict[tuple[str, str, str], Manifest] = {}
        self.calls: list[tuple[str, str]] = []
        self.scale_writes: list[int] = []
        self.on_change: Callable[[str, Manifest], None] = lambda *_: None
        self.before_call: Callable[[str, str], None] = lambda *_: None
        self._failures: list[tuple[str, str, ClusterError]] = []
        self._version = 100

    def fail(self, verb: str, kind: str, error: ClusterError, times: int = 1) -> None:
        self._failures += [(verb, kind, error)] * times

    def stop_failing(self) -> None:
        self._failures.clear()

    def find(self, kind: str, name: str, namespace: str = "default") -> Manifest | None:
        return self.objects.get((kind, namespace, name))

    def events(self, reason: str = "") -> list[Manifest]:
        return [
            one
            for (kind, _, _), one in self.objects.items()
            if kind == "Event" and reason in ("", one["reason"])
        ]

    def writes(self) -> list[tuple[str, str]]:
        return [call for call in self.calls if call[0] not in ("get", "list_all")]

    async def get(self, api_version: str, kind: str, namespace: str, name: str) -> Manifest:
        await self._called("get", kind)
        return copy.deepcopy(self._existing(kind, namespace, name))

    async def list_all(
        self, api_version: str, kind: str, namespace: str | None, label_selector: str = ""
    ) -> list[Manifest]:
        await self._called("list_all", kind)
        wanted = dict(pair.split("=") for pair in label_selector.split(",") if pair)
        return [
            copy.deepcopy(one)
            for (kind_, namespace_, _), one in self.objects.items()
            if kind_ == kind
            and namespace in (None, namespace_)
            and wanted.items() <= one["metadata"].get("labels", {}).items()
        ]

    async def create(self, manifest: Manifest, *, field_manager: str) -> Manifest:
        await self._called("create", manifest["kind"])
        key = _key(manifest)
        if key in self.objects:
            raise Conflict(f"{key} already exists")
        created = self.put(manifest)
        created["metadata"]["managedFields"] = [
            {
                "manager": field_manager,
                "operation": "Update",
                "fieldsV1": {"f:spec": {"f:replicas": {}, "f:template": {}}},
            }
        ]
        return copy.deepcopy(created)

    async def apply(
        self, manifest: Manifest, *, field_manager: str, dry_run: bool = False
    ) -> Manifest:
        await self._called("dry_run" if dry_run else "apply", manifest["kind"])
        existing = self.objects.get(_key(manifest))
        if dry_run:
            return manifest
        if existing is None:
            return copy.deepcopy(self.put(manifest))
        self.update(existing, lambda one: _merge(one, manifest))
        return copy.deepcopy(existing)

    async def apply_status(self, manifest: Manifest, *, field_manager: str) -> Manifest:
        await self._called("apply_status", manifest["kind"])
        metadata = manifest["metadata"]
        existing = self._existing(manifest["kind"], metadata["namespace"], metadata["name"])
        if existing["metadata"]["uid"] != metadata["uid"]:
            raise Conflict("uid mismatch")
        self.update(existing, lambda one: one.update(status=copy.deepcopy(manifest["status"])))
        return copy.deepcopy(existing)

    async def apply_scale(
        self, deployment: Manifest, replicas: int, *, field_manager: str
    ) -> Manifest:
        await self._called("apply_scale", "Deployment")
        metadata = deployment["metadata"]
        existing = self._existing("Deployment", metadata["namespace"], metadata["name"])
        if existing["metadata"]["resourceVersion"] != metadata["resourceVersion"]:
            raise Conflict("the object has been modified")
        self.update(existing, lambda one: one["spec"].update(replicas=replicas))
        self.scale_writes.append(replicas)
        return copy.deepcopy(existing)

    async def json_patch(
        self, manifest: Manifest, operations: list[Manifest], *, field_manager: str
    ) -> Manifest:
        await self._called("json_patch", manifest["kind"])
        metadata = manifest["metadata"]
        existing = self._existing(manifest["kind"], metadata["namespace"], metadata["name"])
        if existing["metadata"]["resourceVersion"] != operations[1]["value"]:
            raise Conflict("the object has been modified")
        existing["metadata"]["managedFields"] = copy.deepcopy(operations[0]["value"])
        self._touch(existing)
        return copy.deepcopy(existing)

    def put(self, manifest: Manifest) -> Manifest:
        """Store a new object as the API server would."""
        stored = copy.deepcopy(manifest)
        stored["metadata"] |= {
            "uid": f"uid-{self._version}",
            "generation": 1,
            "creationTimestamp": rfc3339(self._clock.now_s()),
        }
        self.objects[_key(manifest)] = stored
        self._touch(stored)
        self.on_change("ADDED", stored)
        return stored

    def update(self, existing: Manifest, change: Callable[[Manifest], Any]) -> None:
        before = copy.deepcopy(existing)
        change(existing)
        if existing == before:
            return
        if existing.get("spec") != before.get("spec"):
            existing["metadata"]["generation"] += 1
        self._touch(existing)
        self.on_change("MODIFIED", existing)

    def delete(self, kind: str, name: str, namespace: str = "default") -> None:
        """Delete an object, and what it controls, as garbage collection would."""
        gone = self.objects.pop((kind, namespace, name))
        uid = gone["metadata"]["uid"]
        for key, one in list(self.objects.items()):
            owners = one["metadata"].get("ownerReferences") or ()
            if key in self.objects and any(owner["uid"] == uid for owner in owners):
                self.delete(key[0], key[2], key[1])
        self.on_change("DELETED", gone)

    def _existing(self, kind: str, namespace: str, name: str) -> Manifest:
        try:
            return self.objects[kind, namespace, name]
        except KeyError:
            raise NotFound(f"{kind} {namespace}/{name} not found") from None

    def _touch(self, stored: Manifest) -> None:
        self._version += 1
        stored["metadata"]["resourceVersion"] = str(self._version)

    async def _called(self, verb: str, kind: str) -> None:
        await asyncio.sleep(0.002)
        self.calls.append((verb, kind))
        self.before_call(verb, kind)
        for failure in self._failures:
            if failure[0] == verb and failure[1] == kind:
                self._failures.remove(failure)
                raise failure[2]


class Pods:
    """Pods that follow their Deployments' replicas; ready ones serve the arrivals evenly."""

    def __init__(self, cluster: FakeCluster, clock: FakeClock) -> None:
        self._cluster = cluster
        self._clock = clock
        self.arrivals_rps: dict[str, float] = {}
        self.silent = False
        self.refused = ""
        """Why the API server takes no more pods."""
        self.capacity: float = math.inf
        """Accelerators of the cluster, one per pod."""
        self.drain_s = 0.0
        """How long a leaving pod keeps its accelerator."""
        self._placed_s: dict[str, float] = {}
        self._served: dict[str, tuple[float, float]] = {}
        self._number = 0

    def follow(self) -> None:
        """Bring the pods of every Deployment up to date, as controllers and kubelet would."""
        for (kind, namespace, name), deployment in list(self._cluster.objects.items()):
            if kind == "Deployment":
                self._follow(deployment, namespace, name)
        self._schedule()

    def of(self, name: str) -> list[Manifest]:
        return [
            one
            for (kind, _, _), one in self._cluster.objects.items()
            if kind == "Pod" and one["metadata"]["labels"]["headroom.dev/inference-service"] == name
        ]

    def ready(self, name: str) -> list[Manifest]:
        return [one for one in self.of(name) if _is_ready(one)]

    async def scrape(self, url: str) -> str:
        await asyncio.sleep(0.003)
        if self.silent:
            raise ScrapeFailed(f"{url} gave no page within 1 s")
        ip = url.removeprefix("http://").partition(":")[0]
        for (kind, _, _), one in self._cluster.objects.items():
            if kind == "Pod" and one["status"].get("podIP") == ip:
                return self._page(one)
        raise ScrapeFailed(f"{url}: connection refused")

    def _follow(self, deployment: Manifest, namespace: str, name: str) -> None:
        pods = [one for one in self.of(name) if "deletionTimestamp" not in one["metadata"]]
        replicas = deployment["spec"]["replicas"]
        for _ in range(len(pods), len(pods) if self.refused else replicas):
            self._start(deployment, namespace, name)
        for extra in pods[replicas:]:
            extra["metadata"]["deletionTimestamp"] = rfc3339(self._clock.now_s())
        deployment["status"] = {
            "observedGeneration": deployment["metadata"]["generation"],
            "replicas": replicas,
            "updatedReplicas": replicas,
            "conditions": [
                {"type": "ReplicaFailure", "status": "True", "message": self.refused}
                for _ in range(self.refused != "")
            ],
        }

    def _start(self, deployment: Manifest, namespace: str, name: str) -> None:
        self._number += 1
        self._cluster.put(
            {
                "kind": "Pod",
                "metadata": {
                    "name": f"{name}-abc-{self._number}",
                    "namespace": namespace,
                    "labels": {
                        "headroom.dev/inference-service": name,
                        "pod-template-hash": "abc",
                    },
                    "ownerReferences": [
                        {
                            "kind": "ReplicaSet",
                            "name": f"{name}-abc",
                            "controller": True,
                            "uid": deployment["metadata"]["uid"],
                        }
                    ],
                },
                "status": {"phase": "Pending", "podIP": f"10.0.0.{self._number}"},
            }
        )

    def _schedule(self) -> None:
        """Let go of who has drained, and give what is free to the pods that wait longest."""
        now_s = self._clock.now_s()
        pods = [one for (kind, _, _), one in self._cluster.objects.items() if kind == "Pod"]
        for pod in pods:
            left = pod["metadata"].get("deletionTimestamp")
            waits = pod["metadata"]["uid"] not in self._placed_s
            if left and (waits or now_s - epoch_s(left) >= self.drain_s):
                self._placed_s.pop(pod["metadata"]["uid"], None)
                self._cluster.delete("Pod", pod["metadata"]["name"], pod["metadata"]["namespace"])
        present = {one["metadata"]["uid"] for one in pods}
        self._placed_s = {uid: at_s for uid, at_s in self._placed_s.items() if uid in present}
        for pod in [one for one in pods if "deletionTimestamp" not in one["metadata"]]:
            if len(self._placed_s) < self.capacity:
                self._placed_s.setdefault(pod["metadata"]["uid"], now_s)
            self._progress(pod, self._placed_s.get(pod["metadata"]["uid"]))

    def _progress(self, pod: Manifest, placed_s: float | None) -> None:
        created_s = epoch_s(pod["metadata"]["creationTimestamp"])
        ready = placed_s is not None and self._clock.now_s() - placed_s >= WARMUP_S
        since_s = placed_s + WARMUP_S if ready and placed_s is not None else created_s
        conditions = [_condition("Ready", ready, since_s)]
        if placed_s is None:
            conditions.append(
                _condition("PodScheduled", False, created_s)
                | {"reason": "Unschedulable", "message": "1 Insufficient nvidia.com/gpu."}
            )
        else:
            conditions.append(_condition("PodScheduled", True, placed_s))
        pod["status"] |= {"phase": "Running" if ready else "Pending", "conditions": conditions}

    def _page(self, pod: Manifest) -> str:
        name = pod["metadata"]["labels"]["headroom.dev/inference-service"]
        uid, now_s = pod["metadata"]["uid"], self._clock.now_s()
        count, seen_s = self._served.get(uid, (0.0, now_s))
        share = self.arrivals_rps.get(name, 0.0) / max(len(self.ready(name)), 1)
        count += share * (now_s - seen_s)
        self._served[uid] = (count, now_s)
        return page(model=name, served=int(count))


class FakeRecorder:
    def __init__(self) -> None:
        self.decisions: list[Decision] = []
        self.outcomes: list[str] = []
        self.gone: list[str] = []

    def decided(self, service: Any, decision: Decision) -> None:
        self.decisions.append(decision)

    def ticked(self, seconds: float, lag_s: float, outcome: str) -> None:
        self.outcomes.append(outcome)

    def forgotten(self, namespace: str, name: str) -> None:
        self.gone.append(f"{namespace}/{name}")


class FakeJournal:
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

    def __init__(self) -> None:
        self.journal = FakeJournal()
        self.clock = FakeClock()
        self.cluster = FakeCluster(self.clock)
        self.pods = Pods(self.cluster, self.clock)
        self.cluster.before_call = lambda *_: self.pods.follow()
        self.cluster.on_change = self._changed
        self.watching = True
        self.start_operator()

    def start_operator(self) -> None:
        """Begin a new process: nothing is left of the old one but what the cluster keeps."""
        self.recorder = FakeRecorder()
        self.controller = Controller(
            cluster=self.cluster,
            scraper=self.pods,
            clock=self.clock,
            recorder=self.recorder,
            instance="operator-0",
            journal=self.journal,
            chance=random.Random(7),
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

    def replicas(self, name: str = "resnet") -> int:
        deployment = self.cluster.find("Deployment", name)
        assert deployment is not None
        return int(deployment["spec"]["replicas"])

    def _changed(self, kind: str, changed: Manifest) -> None:
        if self.watching and changed["kind"] == "InferenceService":
            self.controller.observe(kind, copy.deepcopy(changed))


def spec(
    *, scaling: Mapping[str, Any] | None = None, runtime: Mapping[str, Any] | None = None
) -> Manifest:
    return {
        "runtime": {"image": "registry.example/server:1", **(runtime or {})},
        "slo": {"latency": {"target": "1.5s"}},
        "scaling": {"minReplicas": 1, "maxReplicas": 10, **(scaling or {})},
    }


def page(*, model: str, served: int) -> str:
    """Expose a server that answers each request in 250 ms, one per batch."""
    label = f'model="{model}"'
    lines = [
        f"headroom_requests_received_total{{{label}}} {served}",
        f'headroom_requests_total{{{label},outcome="ok"}} {served}',
        f"headroom_requests_waiting{{{label}}} 0",
        f"headroom_requests_running{{{label}}} 0",
        f"headroom_max_batch_size{{{label}}} 4",
        f"headroom_cost_fixed_seconds{{{label}}} 0.15",
        f"headroom_cost_per_item_seconds{{{label}}} 0.06",
        f"headroom_execution_duration_seconds_count{{{label}}} {served}",
        f"headroom_execution_duration_seconds_sum{{{label}}} {served * 0.21:.6f}",
        f"headroom_batch_size_sum{{{label}}} {served}",
    ]
    for bound in BOUNDS_S:
        count = served if bound >= 0.25 else 0
        le = format(bound, ".6g")
        lines.append(f'headroom_request_duration_seconds_bucket{{{label},le="{le}"}} {count}')
    lines.append(f'headroom_request_duration_seconds_bucket{{{label},le="+Inf"}} {served}')
    return "\n".join(lines) + "\n"


def rejected(message: str) -> Rejected:
    return Rejected(message)


def _condition(kind: str, holds: bool, since_s: float) -> Manifest:
    return {
        "type": kind,
        "status": "True" if holds else "False",
        "lastTransitionTime": rfc3339(since_s),
    }


def _is_ready(pod: Manifest) -> bool:
    return any(
        one["type"] == "Ready" and one["status"] == "True"
        for one in pod["status"].get("conditions", ())
    )


def _key(manifest: Manifest) -> tuple[str, str, str]:
    metadata = manifest["metadata"]
    return manifest["kind"], metadata["namespace"], metadata["name"]


def _merge(one: Manifest, other: Mapping[str, Any]) -> None:
    for key, value in other.items():
        if isinstance(value, Mapping) and isinstance(one.get(key), dict):
            _merge(one[key], value)
        else:
            one[key] = copy.deepcopy(value)
