"""Plays the kubelet for thousands of pods; keeps when each status was written."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from datetime import UTC, datetime

from reliability.admin import Admin, Object, Refused
from reliability.kubelet import SERVICE_LABEL
from reliability.kubelet import ready as ready_status
from reliability.scale_1000.addresses import address_of, service_number

AT_ONCE = 16
_PODS = f"/api/v1/pods?labelSelector={SERVICE_LABEL}"


class Attendant:
    """Makes pods ready as they come. `run` until cancelled."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._slots: dict[int, dict[str, int]] = defaultdict(dict)
        self._waiting: asyncio.Queue[Object] = asyncio.Queue()
        self.ready = 0

    async def run(self) -> None:
        """Follow the watch, begun anew when it ends."""
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(self._start())
            while True:
                async for event in self._admin.watch(_PODS):
                    self._take_in(event["type"], event["object"])

    def _take_in(self, kind: str, pod: Object) -> None:
        metadata = pod["metadata"]
        number, uid = service_number(metadata["labels"][SERVICE_LABEL]), metadata["uid"]
        slots = self._slots[number]
        if kind == "DELETED":
            slots.pop(uid, None)
        elif kind in ("ADDED", "MODIFIED") and metadata.get("deletionTimestamp"):
            self._waiting.put_nowait(pod)
        elif kind in ("ADDED", "MODIFIED") and uid not in slots:
            taken = set(slots.values())
            slots[uid] = next(slot for slot in range(len(taken) + 1) if slot not in taken)
            self._waiting.put_nowait(pod)

    async def _start(self) -> None:
        while True:
            pod = await self._waiting.get()
            metadata = pod["metadata"]
            path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
            try:
                if metadata.get("deletionTimestamp"):
                    await self._admin.delete(path, grace_s=0)
                    continue
                number = service_number(metadata["labels"][SERVICE_LABEL])
                address = address_of(number, self._slots[number][metadata["uid"]])
                status = _running(ready_status(address, pod), pod)
                await self._admin.patch(f"{path}/status", {"status": status})
                self.ready += 1
            except (Refused, KeyError):  # gone meanwhile
                continue


def _running(status: Object, pod: Object) -> Object:
    """Add what a kubelet says beside: placed, and its container runs."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    placed = {"type": "PodScheduled", "status": "True", "lastTransitionTime": now}
    others = [one for one in status["conditions"] if one["type"] != "PodScheduled"]
    container = pod["spec"]["containers"][0]
    running = {
        "name": container["name"],
        "image": container["image"],
        "imageID": "sha256:0",
        "ready": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": now}},
    }
    return {**status, "conditions": [*others, placed], "containerStatuses": [running]}


async def _is_served(admin: Admin, path: str) -> bool:
    """Whether a kind that was just made can be listed: its storage takes a moment."""
    try:
        await admin.get(path)
    except Refused:
        return False
    return True


class StatusWrites:
    """Keeps the moments at which status was written, as the watch tells them."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._versions: dict[str, str] = {}
        self.moments_s: list[float] = []

    async def run(self) -> None:
        """Follow the watch until cancelled."""
        path = "/apis/headroom.dev/v1alpha1/inferenceservices"
        while not await _is_served(self._admin, path):  # noqa: ASYNC110
            await asyncio.sleep(0.2)
        while True:
            async for event in self._admin.watch(path):
                self._take_in(event["object"])

    def since(self, moment_s: float) -> int:
        """Count the writes since a moment."""
        return sum(1 for one in self.moments_s if one >= moment_s)

    def _take_in(self, service: Object) -> None:
        name, status = service["metadata"]["name"], service.get("status") or {}
        decided = (status.get("decision") or {}).get("time", "")
        version = service["metadata"]["resourceVersion"]
        if not decided or self._versions.get(name) == version:
            return
        known = name in self._versions
        self._versions[name] = version
        if known:
            self.moments_s.append(time.monotonic())
