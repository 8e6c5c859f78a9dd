"""Follow the ready pods of targets in Gateway mode.

Their labels are their owner's, so each target has a watch with its own selector. A pod receives
requests while the kubelet says that it is ready, and only if its chain of controllers reaches the
target: other pods may have the labels.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from headroom.api import InferenceService
from headroom.controller.gather.pods.pod_ownership import PodOwnership
from headroom.controller.gather.workloads.workload import TargetUnusable, Workload, read_workload
from headroom.controller.ports import Cluster, Manifest
from headroom.controller.routing.ports import WatchPods
from headroom.controller.routing.ready_pods import ReadyPod, ready_pod
from headroom.controller.routing.target_selector import service_selector
from headroom.errors import ClusterError

_log = logging.getLogger(__name__)

AGAIN_S = 5.0
"""A target without a ready pod is read again after this: it may have been created again."""
FAILED_AGAIN_S = 1.0
APART_S, MOST_APART_S = 0.05, 1.0
"""Between two reads of a target, whose pods may change 20 times a second: longer with each change
that follows within the longest."""
PATIENCE_S = 15.0
"""Nothing is published before every target's pods are known, or for this time: gateways keep the
configuration of an earlier operator meanwhile."""


@dataclass(slots=True)
class Target:
    """One target: its pods as the watch shows them, and which of them are its own."""

    service: InferenceService
    on_change: Callable[[], None]
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    known: bool = False
    """Whether its pods were found once, or it is known why there are none."""
    selector: Mapping[str, str] | None = None
    """Selector of a Service that leads to its pods."""
    owned: frozenset[str] = frozenset()
    """UIDs of pods whose controllers reach the target."""
    listed: bool = False
    pods: dict[str, tuple[Manifest, ReadyPod]] = field(default_factory=dict)
    """Ready pods that its selector selects, by UID; of the object only what names its owner."""
    ownership: PodOwnership = field(default_factory=PodOwnership)
    watched: str = ""
    """Selector of the watch."""
    watch: asyncio.Task[None] | None = None
    failure: str = ""

    def ready(self) -> tuple[ReadyPod, ...]:
        """Return the pods that may be sent requests; one that is no longer ready goes at once."""
        return tuple(pod for uid, (_, pod) in self.pods.items() if uid in self.owned)

    def on_list(self, pods: list[Manifest]) -> None:
        """Replace all pods."""
        self.listed, self.pods = True, {}
        for pod in pods:
            self._enter(pod)
        self._note()

    def on_event(self, event: str, pod: Manifest) -> None:
        """Process one event of the watch."""
        before = self.pods.pop(pod["metadata"]["uid"], None)
        after = None if event == "DELETED" else self._enter(pod)
        if before != after:
            self._note()

    def _note(self) -> None:
        """Have it published; a new pod follows once its owner was read."""
        self.changed.set()
        self.on_change()

    def _enter(self, pod: Manifest) -> tuple[Manifest, ReadyPod] | None:
        found = ready_pod(pod)
        if found is None:
            return None
        entry = _owner_of(pod), found
        self.pods[found.uid] = entry
        return entry

    def forget(self) -> None:
        """Stop the watch; no pod is known."""
        if self.watch is not None:
            self.watch.cancel()
        self.watch, self.watched, self.listed, self.pods = None, "", False, {}


class TargetPods:
    """The pods of every target that is followed."""

    def __init__(
        self,
        cluster: Cluster,
        watch_pods: WatchPods,
        on_change: Callable[[], None],
        group: asyncio.TaskGroup,
    ) -> None:
        self._cluster = cluster
        self._watch_pods = watch_pods
        self._on_change = on_change
        self._group = group
        self._targets: dict[str, tuple[Target, asyncio.Task[None]]] = {}
        self._since_s = asyncio.get_running_loop().time()

    @property
    def settled(self) -> bool:
        """Whether everything that is followed is known, or was waited for long enough."""
        waited_s = asyncio.get_running_loop().time() - self._since_s
        return waited_s > PATIENCE_S or all(one.known for one, _ in self._targets.values())

    def of(self, uid: str) -> Target | None:
        """Return the target of a service; None while nothing is known of it."""
        found = self._targets.get(uid)
        return found[0] if found is not None and found[0].known else None

    def selector(self, uid: str) -> Mapping[str, str] | None:
        """Return the selector by which a Service leads to a target; None where it is unknown."""
        target = self.of(uid)
        return None if target is None else target.selector

    def follow(self, services: Iterable[InferenceService]) -> None:
        """Follow the targets of these services, and no others."""
        wanted = {one.uid: one for one in services}
        for uid in [uid for uid in self._targets if uid not in wanted]:
            target, task = self._targets.pop(uid)
            task.cancel()
            target.forget()
        for uid, service in wanted.items():
            if uid in self._targets:
                self._targets[uid][0].service = service
                continue
            target = Target(service, self._on_change)
            self._targets[uid] = target, self._group.create_task(self._keep(target))

    async def _keep(self, target: Target) -> None:
        loop, apart_s = asyncio.get_running_loop(), APART_S
        while True:
            wait_s = None if target.ready() else AGAIN_S
            try:
                await self._resolve(target)
                target.failure = ""
            except ClusterError as error:
                wait_s = FAILED_AGAIN_S
                if str(error) != target.failure:
                    target.failure = str(error)
                    name = f"{target.service.namespace}/{target.service.name}"
                    _log.warning("%s: the pods of its target are not known: %s", name, error)
            read_s = loop.time()
            await asyncio.sleep(apart_s)
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await target.changed.wait()
            target.changed.clear()
            is_calm = loop.time() - read_s > MOST_APART_S
            apart_s = APART_S if is_calm else min(2.0 * apart_s, MOST_APART_S)

    async def _resolve(self, target: Target) -> None:
        """Find the target, watch the pods that it selects, and keep its own."""
        try:
            workload = await read_workload(self._cluster, target.service)
        except TargetUnusable:  # a condition says why
            target.forget()
            self._found(target, frozenset())
            return
        if workload is None:
            return
        self._watch(target, workload)
        if target.listed:
            manifests = [manifest for manifest, _ in target.pods.values()]
            found = await target.ownership.of(self._cluster, manifests, workload.uid)
            if found.unresolved:
                target.changed.set()
            if target.known or not found.unresolved:  # gateways keep what they have meanwhile
                self._found(target, frozenset(str(one["metadata"]["uid"]) for one in found.ours))

    def _watch(self, target: Target, workload: Workload) -> None:
        target.selector = service_selector(workload)
        if target.watched != workload.selector:
            target.forget()
            target.watched = workload.selector
            watch = self._watch_pods(target.service.namespace, workload.selector)
            target.watch = self._group.create_task(watch.run(target.on_list, target.on_event))

    def _found(self, target: Target, owned: frozenset[str]) -> None:
        if owned != target.owned or not target.known:
            target.owned, target.known = owned, True
            self._on_change()


def _owner_of(pod: Manifest) -> dict[str, Any]:
    metadata = pod["metadata"]
    kept = ("uid", "name", "namespace", "ownerReferences")
    return {"metadata": {key: metadata[key] for key in kept if key in metadata}}
