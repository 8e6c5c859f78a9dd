"""The warm-up of one pod: requests until they are fast, then the gate."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from headroom.api import InferenceService
from headroom.controller.ports import Clock, Cluster
from headroom.controller.warmup import gate, gate_condition
from headroom.controller.warmup.gate import GatedPod, GateReason
from headroom.controller.warmup.ports import Requester
from headroom.controller.warmup.progress import Progress, Terms
from headroom.controller.warmup.request import Inputs, WarmupRequest, request_of
from headroom.controller.warmup.sender import send
from headroom.errors import ClusterError, Conflict, NotFound
from headroom.fair_slots import FairSlots
from headroom.repeated_failures import pause_after_s
from headroom.resources.names import FIELD_MANAGER

_log = logging.getLogger(__name__)

SEEN_AGAIN_S = 2.5
"""After a conflict the next tick, at the latest, has the current pod."""
WRITTEN_AGAIN_S = 5.0
"""After a rejected write, at least; for as long a tick that read before the write is ignored."""
OnWarm = Callable[[InferenceService, GatedPod], Awaitable[None]]
"""Called with a service and a pod of it that is warm but not ready yet."""


@dataclass(slots=True, kw_only=True)
class ColdPod:
    """One pod that is not warm yet, as last seen."""

    service: InferenceService
    pod: GatedPod
    seen: asyncio.Event = field(default_factory=asyncio.Event)
    written_s: float = float("-inf")
    """Time when its condition was last written."""
    task: asyncio.Task[None] | None = None

    @property
    def terms(self) -> Terms:
        """Terms on which a pod counts as warm."""
        warmup = self.service.spec.warmup
        return Terms(
            requests=warmup.requests,
            max_latency_s=self.service.warmup_max_latency.seconds,
            timeout_s=warmup.timeout.seconds,
        )

    async def pause(self, longest_s: float) -> None:
        """Wait until the pod was seen again."""
        self.seen.clear()
        try:
            async with asyncio.timeout(longest_s):
                await self.seen.wait()
        except TimeoutError:
            return


@dataclass(frozen=True, slots=True, kw_only=True)
class PodWarmup:
    """Warms pods, one per call; `slots` bounds the requests of all at once."""

    requester: Requester
    cluster: Cluster
    clock: Clock
    on_warm: OnWarm
    slots: FairSlots

    async def close(self, one: ColdPod) -> None:
        """Close the gates of containers that are gone."""
        while one.pod.is_open and not await self._write(one, gate_condition.restarted(one.pod)):
            continue

    async def warm(self, one: ColdPod) -> bool:
        """Send until it is warm, and open the gate; return whether the gate was opened here.

        Raises NotFound if the pod is gone.
        """
        progress = Progress(begun_s=_loop_s())
        request, generation = request_of(one.service), one.service.generation
        while not one.pod.is_warm:
            if one.service.generation != generation:  # the new spec may correct what was wrong
                request, generation = request_of(one.service), one.service.generation
                progress = Progress(begun_s=_loop_s())
            said = _said(one, request, progress)
            if said.holds and request is not None and not one.pod.is_open:
                await self.on_warm(one.service, one.pod)
            written = True
            if gate_condition.is_worth_writing(one.pod, said, progress, _loop_s(), one.written_s):
                written = await self._write(one, said)
            if said.holds:
                if written:
                    return True
                continue
            due_s = progress.next_s(one.terms, _loop_s()) - _loop_s()
            if request is None or one.pod.on_host_network or due_s > 0.0:
                await one.pause(min(due_s, SEEN_AGAIN_S) if due_s > 0.0 else SEEN_AGAIN_S)
            else:
                async with self.slots.slot(one.pod.namespace):
                    request, progress = await send(
                        self.requester, one.pod, request, progress, one.terms
                    )
        return False

    async def _write(self, one: ColdPod, said: GateReason) -> bool:
        """Write the condition at the version that was read; return whether it was accepted."""
        manifest = gate_condition.status_manifest(one.pod, said, self.clock.now_s())
        try:
            written = await self.cluster.apply_status(manifest, field_manager=FIELD_MANAGER)
        except NotFound:
            raise
        except Conflict:
            await one.pause(SEEN_AGAIN_S)
            return False
        except ClusterError as error:
            _log.warning(
                "the gate of %s/%s is not written: %s", one.pod.namespace, one.pod.name, error
            )
            await asyncio.sleep(pause_after_s(error, WRITTEN_AGAIN_S))
            return False
        one.written_s = _loop_s()
        one.pod = gate.read(written, one.pod.port) or one.pod
        return True


def _said(one: ColdPod, request: WarmupRequest | Inputs | None, progress: Progress) -> GateReason:
    if request is None:
        return gate_condition.not_needed(one.pod)
    if one.pod.on_host_network:
        return gate_condition.unreachable(one.pod)
    return gate_condition.wanted(one.pod, progress, one.terms, _loop_s())


def _loop_s() -> float:
    return asyncio.get_running_loop().time()
