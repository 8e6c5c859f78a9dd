"""Warms up the pods that wait for it: which they are, and one task per pod.

Level-triggered: each tick passes the current pods, and the tasks follow. A warm pod is left alone;
a process that restarts reads from the gates what the last one did.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from headroom.api import InferenceService
from headroom.controller.ports import Clock, Cluster
from headroom.controller.warmup import gate
from headroom.controller.warmup.gate import GatedPod
from headroom.controller.warmup.pod_warmup import WRITTEN_AGAIN_S, ColdPod, OnWarm, PodWarmup
from headroom.controller.warmup.ports import Requester
from headroom.errors import NotFound
from headroom.fair_slots import FairSlots
from headroom.resources.server_port import declared_port, server_port

_log = logging.getLogger(__name__)

AT_ONCE = 128
"""Requests under way over all pods, one per pod, with up to 0.3 MiB each; a namespace has at most
half of them."""


class Warmer:
    """Keeps the gates of all services' pods, while this process decides."""

    def __init__(
        self, *, requester: Requester, cluster: Cluster, clock: Clock, on_warm: OnWarm
    ) -> None:
        self._warmup = PodWarmup(
            requester=requester,
            cluster=cluster,
            clock=clock,
            on_warm=on_warm,
            slots=FairSlots(AT_ONCE),
        )
        self._under_way: dict[str, ColdPod] = {}
        self._opened: dict[str, tuple[str, float]] = {}
        """The containers for which a pod's gate was opened here, and when, for as long as a tick
        may not have seen it."""

    def see(self, service: InferenceService, pods: Sequence[Mapping[str, Any]]) -> None:
        """Process the present pods of a service."""
        late_s = _loop_s() - WRITTEN_AGAIN_S
        self._opened = {uid: one for uid, one in self._opened.items() if one[1] > late_s}
        found = [
            pod
            for raw in pods
            if (pod := gate.read(raw, server_port(service, declared_port(raw)))) is not None
        ]
        for pod in found:
            self._see(service, pod)
        present = {pod.uid for pod in found}
        for uid, one in list(self._under_way.items()):
            if one.service.uid == service.uid and uid not in present:
                self._stop(uid)

    def forget(self, service_uid: str) -> None:
        """Stop warming up the pods of a deleted service."""
        for uid, one in list(self._under_way.items()):
            if one.service.uid == service_uid:
                self._stop(uid)

    def stop(self) -> None:
        """Stop sending and writing."""
        for uid in list(self._under_way):
            self._stop(uid)

    def _see(self, service: InferenceService, pod: GatedPod) -> None:
        known = self._under_way.get(pod.uid)
        if known is not None:
            if not (pod.leaving or pod.is_warm) and _is_same(known.pod, pod):
                known.service, known.pod = service, pod
                known.seen.set()
                return
            self._stop(pod.uid)
        opened, _ = self._opened.get(pod.uid, ("", 0.0))
        if pod.leaving or pod.is_warm or opened == pod.containers:
            return
        if pod.started or pod.is_open:
            one = ColdPod(service=service, pod=pod)
            self._under_way[pod.uid] = one
            one.task = asyncio.create_task(self._attend(one))

    def _stop(self, uid: str) -> None:
        task = self._under_way.pop(uid).task
        if task is not None:
            task.cancel()

    async def _attend(self, one: ColdPod) -> None:
        try:
            if not one.pod.started:
                await self._warmup.close(one)
            elif await self._warmup.warm(one):
                self._opened[one.pod.uid] = one.pod.containers, _loop_s()
        except NotFound:
            _log.debug("%s/%s is gone", one.pod.namespace, one.pod.name)
        except Exception:  # noqa: BLE001  (one pod's failure is no other's; the next tick retries)
            _log.exception("warming %s/%s failed", one.pod.namespace, one.pod.name)
        finally:
            if self._under_way.get(one.pod.uid) is one:
                del self._under_way[one.pod.uid]


def _is_same(before: GatedPod, now: GatedPod) -> bool:
    """Return whether the progress so far still counts."""
    return (before.containers, before.address, before.started) == (
        now.containers,
        now.address,
        now.started,
    )


def _loop_s() -> float:
    return asyncio.get_running_loop().time()
