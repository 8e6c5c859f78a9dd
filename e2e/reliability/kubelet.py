"""Plays the kubelet of nodes that are only objects: what is placed becomes ready, what leaves goes.

The API server, the scheduler and the controllers are real; only pods' status is written here.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from reliability.admin import Admin, Object, Refused
from reliability.exporter import Exporter, Owner

SERVICE_LABEL = "headroom.dev/inference-service"

Ailment = Callable[[Object], Object | None]
"""From a pod to the status it has instead of becoming ready; None: it is well."""


class Kubelet:
    """Looks after the pods of one namespace, or of all; `run` until cancelled."""

    def __init__(
        self,
        admin: Admin,
        exporter: Exporter,
        namespace: str = "",
        *,
        addresses: itertools.count[int] | None = None,
        start_s: float = 0.3,
        drain_s: float = 0.2,
    ) -> None:
        self._admin, self._exporter = admin, exporter
        self._scope = f"/api/v1/namespaces/{namespace}/pods" if namespace else "/api/v1/pods"
        self._numbers = addresses if addresses is not None else itertools.count(1)
        self._start_s, self._drain_s = start_s, drain_s
        self.ailment: Ailment = lambda _: None
        self._addresses: dict[str, str] = {}
        self._begun: set[str] = set()
        self._leaving: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Follow the watch; begin it anew whenever it ends."""
        try:
            while True:
                async for event in self._admin.watch(self._scope):
                    self._take_in(event["type"], event["object"])
                await asyncio.sleep(0.1)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _take_in(self, kind: str, pod: Object) -> None:
        if kind in ("ADDED", "MODIFIED"):
            self._see(pod)
        elif kind == "DELETED":
            self._exporter.end(self._addresses.pop(pod["metadata"]["uid"], ""))

    def _see(self, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        if pod["metadata"].get("deletionTimestamp"):
            if uid not in self._leaving:
                self._leaving.add(uid)
                self._spawn(pod, self._end)
        elif pod["spec"].get("nodeName") and uid not in self._begun:
            self._begun.add(uid)
            self._spawn(pod, self._start)

    def _spawn(self, pod: Object, what: Callable[[Object], Awaitable[None]]) -> None:
        task = asyncio.ensure_future(what(pod))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _start(self, pod: Object) -> None:
        await asyncio.sleep(self._start_s)
        uid, status = pod["metadata"]["uid"], self.ailment(pod)
        if status is None:
            address = _address(next(self._numbers))
            self._addresses[uid] = address
            self._exporter.begin(address, _owner(pod), pod["metadata"]["name"])
            status = ready(address, pod)
        await self._quietly(self._admin.patch(f"{_path(pod)}/status", {"status": status}))

    async def _end(self, pod: Object) -> None:
        await asyncio.sleep(self._drain_s)
        await self._quietly(self._admin.delete(_path(pod), grace_s=0))

    async def _quietly(self, request: Awaitable[object]) -> None:
        try:
            await request
        except Refused as error:  # deleted or written meanwhile, or its namespace is
            if error.code not in (403, 404, 409):
                raise


def ready(address: str, pod: Object) -> Object:
    """A pod's status once its server answers."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    others = [
        one
        for one in pod.get("status", {}).get("conditions") or ()
        if one["type"] not in ("Ready", "ContainersReady")
    ]
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": now}
        for kind in ("Ready", "ContainersReady")
    ]
    return {
        "phase": "Running",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": [*others, *conditions],
    }


def waiting(pod: Object, reason: str, message: str = "", *, restarts: int = 0) -> Object:
    """A pod's status while its container waits for the reason given."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    name = pod["spec"]["containers"][0]["name"]
    others = pod.get("status", {}).get("conditions") or ()
    return {
        "phase": "Pending",
        "conditions": [
            *(one for one in others if one["type"] != "Ready"),
            {"type": "Ready", "status": "False", "lastTransitionTime": now},
        ],
        "containerStatuses": [
            {
                "name": name,
                "image": pod["spec"]["containers"][0]["image"],
                "imageID": "",
                "ready": False,
                "restartCount": restarts,
                "state": {"waiting": {"reason": reason, "message": message}},
            }
        ],
    }


def _owner(pod: Object) -> Owner:
    """What the operator made says whose it is; of what others made the label `app` does."""
    metadata = pod["metadata"]
    labels = metadata.get("labels", {})
    return metadata["namespace"], labels.get(SERVICE_LABEL) or labels.get("app", "")


def _path(pod: Object) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def _address(number: int) -> str:
    """127.1.0.1 and so on: all of 127.0.0.0/8 is this machine."""
    high, low = divmod(number - 1, 250)
    return f"127.{1 + high // 250}.{high % 250}.{1 + low}"
