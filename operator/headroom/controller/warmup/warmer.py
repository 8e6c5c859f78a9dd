"""Warm up pods that wait for it: one task per pod, requests until they are fast, then the gate.

Level-triggered: each tick passes the current pods, and the tasks follow. A warm pod is left alone;
a process that restarts reads from the gates what the last one did.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headroom.api import InferenceService
from headroom.controller.ports import Clock, Cluster
from headroom.controller.warmup import gate
from headroom.controller.warmup.gate import GatedPod, GateReason
from headroom.controller.warmup.ports import Requester, Response
from headroom.controller.warmup.progress import Fault, Progress, Terms
from headroom.controller.warmup.request import Inputs, UnknownRequest, WarmupRequest, request_of
from headroom.errors import ClusterError, Conflict, NotFound, RequestFailed
from headroom.fair_slots import FairSlots
from headroom.resources.names import FIELD_MANAGER
from headroom.resources.server_port import declared_port, server_port

_log = logging.getLogger(__name__)

AT_ONCE = 128
"""Requests under way over all pods, one per pod, with up to 0.3 MiB each; a namespace has at most
half of them."""
LONGEST_REQUEST_S = 120.0
LATE_REQUEST_S = 30.0
"""A request that is sent when the time is up may still find the pod cold."""
SEEN_AGAIN_S = 2.5
"""After a conflict the next tick, at the latest, has the current pod."""
WRITTEN_AGAIN_S = 5.0
"""After a rejected write; for as long a tick that read before our write is ignored."""
OnWarm = Callable[[InferenceService, GatedPod], Awaitable[None]]
"""Called with a service and a pod of it that is warm but not ready yet."""
_SHOWN = 200
_TRY_LATER = frozenset({408, 425, 429})


@dataclass(slots=True, kw_only=True)
class _UnderWay:
    """One pod that is not warm yet."""

    service: InferenceService
    pod: GatedPod
    seen: asyncio.Event = field(default_factory=asyncio.Event)
    told_s: float = float("-inf")
    task: asyncio.Task[None] | None = None

    @property
    def terms(self) -> Terms:
        warmup = self.service.spec.warmup
        return Terms(
            requests=warmup.requests,
            max_latency_s=self.service.warmup_max_latency.seconds,
            timeout_s=warmup.timeout.seconds,
        )


class Warmer:
    """Keeps the gates of all services' pods, while this process decides."""

    def __init__(
        self, *, requester: Requester, cluster: Cluster, clock: Clock, on_warm: OnWarm
    ) -> None:
        self._requester = requester
        self._cluster = cluster
        self._clock = clock
        self._on_warm = on_warm
        self._slots = FairSlots(AT_ONCE)
        self._under_way: dict[str, _UnderWay] = {}
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
            one = _UnderWay(service=service, pod=pod)
            self._under_way[pod.uid] = one
            one.task = asyncio.create_task(self._attend(one))

    def _stop(self, uid: str) -> None:
        task = self._under_way.pop(uid).task
        if task is not None:
            task.cancel()

    async def _attend(self, one: _UnderWay) -> None:
        try:
            await (self._warm(one) if one.pod.started else self._close(one))
        except NotFound:
            _log.debug("%s/%s is gone", one.pod.namespace, one.pod.name)
        except Exception:  # noqa: BLE001  (one pod's trouble is no other's; the next tick begins anew)
            _log.exception("warming %s/%s failed", one.pod.namespace, one.pod.name)
        finally:
            if self._under_way.get(one.pod.uid) is one:
                del self._under_way[one.pod.uid]

    async def _close(self, one: _UnderWay) -> None:
        """Close the gates of containers that are gone."""
        while one.pod.is_open and not await self._write(one, gate.restarted(one.pod)):
            continue

    async def _warm(self, one: _UnderWay) -> None:
        """Send until it is warm, and open the gate; raises NotFound if the pod is gone."""
        progress = Progress(begun_s=_loop_s())
        request, generation = request_of(one.service), one.service.generation
        while not one.pod.is_warm:
            if one.service.generation != generation:  # what was wrong may be mended
                request, generation = request_of(one.service), one.service.generation
                progress = Progress(begun_s=_loop_s())
            said = _said(one, request, progress)
            if said.holds and request is not None and not one.pod.is_open:
                await self._on_warm(one.service, one.pod)
            written = True
            if gate.is_worth_writing(one.pod, said, progress, _loop_s(), one.told_s):
                written = await self._write(one, said)
            if said.holds:
                if written:
                    self._opened[one.pod.uid] = one.pod.containers, _loop_s()
                    return
                continue
            due_s = progress.next_s(one.terms, _loop_s()) - _loop_s()
            if request is None or one.pod.on_host_network or due_s > 0.0:
                await _pause(one, min(due_s, SEEN_AGAIN_S) if due_s > 0.0 else SEEN_AGAIN_S)
            else:
                async with self._slots.slot(one.pod.namespace):
                    request, progress = await self._ask(one, request, progress)

    async def _ask(
        self, one: _UnderWay, request: WarmupRequest | Inputs, progress: Progress
    ) -> tuple[WarmupRequest | Inputs, Progress]:
        """Send one request; where the inputs had to be read first, give the request made of it."""
        terms, now_s, kept = one.terms, _loop_s(), request
        left_s = progress.begun_s + terms.timeout_s - now_s
        deadline_s = min(LONGEST_REQUEST_S, max(left_s, 2.0 * terms.max_latency_s, LATE_REQUEST_S))
        try:
            if isinstance(request, Inputs):
                told = await self._requester.get(_url(one, request.path), deadline_s)
                if told.status != 200:
                    return request, _refused(progress, request.path, told)
                request = request.request(told.text)
                kept = request if request.is_small else kept
            answer = await self._requester.post(
                _url(one, request.path), request.body, request.content_type, deadline_s
            )
        except RequestFailed as error:
            said = f"{error}: see whether runtime.port ({one.pod.port}) is its port"
            return kept, progress.failed(Fault.UNANSWERED, said, _loop_s())
        except UnknownRequest as error:
            return kept, progress.failed(Fault.REFUSED, str(error), _loop_s())
        except Exception as error:  # noqa: BLE001  (it counts as a failure: warmup.timeout passes)
            _log.error(
                "the warm-up request of %s/%s failed: %s",
                one.pod.namespace,
                one.pod.name,
                type(error).__name__,
                exc_info=progress.failures == 0,
            )
            said = f"{request.path}: {type(error).__name__}: see the operator's log"
            return kept, progress.failed(Fault.FAILED, said, _loop_s())
        if 200 <= answer.status < 300:
            return kept, progress.answered(answer.seconds, _loop_s(), terms)
        return kept, _refused(progress, request.path, answer)

    async def _write(self, one: _UnderWay, said: GateReason) -> bool:
        """Write the condition at the version that was read; return whether it was accepted."""
        manifest = gate.status_manifest(one.pod, said, self._clock.now_s())
        try:
            written = await self._cluster.apply_status(manifest, field_manager=FIELD_MANAGER)
        except NotFound:
            raise
        except Conflict:
            await _pause(one, SEEN_AGAIN_S)
            return False
        except ClusterError as error:
            _log.warning(
                "the gate of %s/%s is not written: %s", one.pod.namespace, one.pod.name, error
            )
            await asyncio.sleep(WRITTEN_AGAIN_S)
            return False
        one.told_s = _loop_s()
        one.pod = gate.read(written, one.pod.port) or one.pod
        return True


def _said(one: _UnderWay, request: WarmupRequest | Inputs | None, progress: Progress) -> GateReason:
    if request is None:
        return gate.not_needed(one.pod)
    if one.pod.on_host_network:
        return gate.unreachable(one.pod)
    return gate.wanted(one.pod, progress, one.terms, _loop_s())


def _is_same(before: GatedPod, now: GatedPod) -> bool:
    """Whether the progress so far still counts."""
    return (before.containers, before.address, before.started) == (
        now.containers,
        now.address,
        now.started,
    )


def _refused(progress: Progress, path: str, answer: Response) -> Progress:
    """Note an error response, with what to do about it."""
    said = " ".join(answer.text.split())[:_SHOWN]
    words = f"{path} answered {answer.status}" + (f" ({said})" if said else "")
    if 400 <= answer.status < 500 and answer.status not in _TRY_LATER:
        mend = "correct warmup.request, or model.name where the profile's request is sent"
        return progress.failed(Fault.REFUSED, f"{words}: {mend}", _loop_s())
    return progress.failed(Fault.FAILED, f"{words}: see the pod's log", _loop_s())


def _url(one: _UnderWay, path: str) -> str:
    address = one.pod.address
    host = f"[{address}]" if ":" in address else address
    return f"http://{host}:{one.pod.port}{path}"


async def _pause(one: _UnderWay, longest_s: float) -> None:
    """Wait until the pod was seen again."""
    one.seen.clear()
    try:
        async with asyncio.timeout(longest_s):
            await one.seen.wait()
    except TimeoutError:
        return


def _loop_s() -> float:
    return asyncio.get_running_loop().time()
