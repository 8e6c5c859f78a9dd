"""A fake kubelet for nodes that are only objects: bound pods become ready, terminating ones go.

The API server, the scheduler and the controllers are real; only the status of pods is written here.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from reliability.testbed.admin import Admin, Object, Refused
from reliability.testbed.exporter import Exporter, Owner

SERVICE_LABEL = "headroom.dev/inference-service"
PODS = "/api/v1/pods"


class PodAddresses(Protocol):
    """Gives each pod an address of this machine at which its telemetry is served."""

    def assign(self, pod: Object) -> str:
        """Return the address of a pod that starts."""

    def release(self, pod: Object) -> None:
        """Note that a pod is deleted."""


@dataclass(slots=True)
class ExporterAddresses:
    """127.1.0.1 and so on, at which the exporter answers."""

    exporter: Exporter
    numbers: itertools.count[int]
    _assigned: dict[str, str] = field(default_factory=dict)

    def assign(self, pod: Object) -> str:
        """Return the next address; the exporter answers there from now on."""
        address = _address(next(self.numbers))
        self._assigned[pod["metadata"]["uid"]] = address
        self.exporter.begin(address, _owner(pod), pod["metadata"]["name"])
        return address

    def release(self, pod: Object) -> None:
        """Stop answering at the pod's address."""
        self.exporter.end(self._assigned.pop(pod["metadata"]["uid"], ""))


class FakeKubelet:
    """Runs the pods of a collection; `run` until cancelled.

    At most `at_once` writes are in flight, so that thousands of pods do not flood the API server.
    """

    def __init__(
        self,
        admin: Admin,
        addresses: PodAddresses,
        pods: str = PODS,
        *,
        start_s: float = 0.3,
        drain_s: float = 0.2,
        at_once: int = 64,
    ) -> None:
        self._admin, self._pods, self._pod_addresses = admin, pods, addresses
        self._start_s, self._drain_s = start_s, drain_s
        self._free = asyncio.Semaphore(at_once)
        self._started: set[str] = set()
        self._leaving: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.ready = 0
        """Pods that were made ready so far."""

    async def run(self) -> None:
        """Follow the watch; open it again whenever it ends."""
        try:
            while True:
                async for event in self._admin.watch(self._pods):
                    self._on_event(event["type"], event["object"])
                await asyncio.sleep(0.1)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _on_event(self, kind: str, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        if kind == "DELETED":
            self._pod_addresses.release(pod)
        elif kind not in ("ADDED", "MODIFIED"):
            return
        elif pod["metadata"].get("deletionTimestamp"):
            if uid not in self._leaving:
                self._leaving.add(uid)
                self._spawn(pod, self._end, self._drain_s)
        elif pod["spec"].get("nodeName") and uid not in self._started:
            self._started.add(uid)
            self._spawn(pod, self._start, self._start_s)

    def _spawn(
        self, pod: Object, step: Callable[[Object], Awaitable[None]], after_s: float
    ) -> None:
        async def later() -> None:
            await asyncio.sleep(after_s)
            async with self._free:
                try:
                    await step(pod)
                except Refused as error:  # deleted or written meanwhile, or its namespace is
                    if error.code not in (403, 404, 409):
                        raise

        task = asyncio.ensure_future(later())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _start(self, pod: Object) -> None:
        status = ready(self._pod_addresses.assign(pod), pod)
        await self._admin.patch(f"{_path(pod)}/status", {"status": status})
        self.ready += 1

    async def _end(self, pod: Object) -> None:
        await self._admin.delete(_path(pod), grace_s=0)


def ready(address: str, pod: Object) -> Object:
    """Return the status of a pod whose container runs and is ready."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    conditions = {
        one["type"]: one for one in pod.get("status", {}).get("conditions") or () if "type" in one
    }
    for kind in ("PodScheduled", "Ready", "ContainersReady"):
        if conditions.get(kind, {}).get("status") != "True":
            conditions[kind] = {"type": kind, "status": "True", "lastTransitionTime": now}
    container = pod["spec"]["containers"][0]
    running = {
        "name": container["name"],
        "image": container["image"],
        "imageID": "sha256:0",
        "ready": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": now}},
    }
    return {
        "phase": "Running",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": list(conditions.values()),
        "containerStatuses": [running],
    }


def _owner(pod: Object) -> Owner:
    """Return namespace and service: by the operator's label, or by `app` for other workloads."""
    metadata = pod["metadata"]
    labels = metadata.get("labels", {})
    return metadata["namespace"], labels.get(SERVICE_LABEL) or labels.get("app", "")


def _path(pod: Object) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def _address(number: int) -> str:
    """Return 127.1.0.1 and so on: all of 127.0.0.0/8 is this machine."""
    high, low = divmod(number - 1, 250)
    return f"127.{1 + high // 250}.{high % 250}.{1 + low}"
