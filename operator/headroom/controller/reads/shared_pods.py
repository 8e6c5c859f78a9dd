"""One LIST of a namespace's pods for all services that are evaluated while it is young.

It is a true answer of the API server that several ticks read. What it says is a moment old for all
but the first: enough to find that nothing is to be done, never to write replicas from.
"""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import orjson

from headroom.api import InferenceService
from headroom.controller.ports import Cluster, Manifest
from headroom.errors import Unavailable
from headroom.resources import names

_ByService = Mapping[str, bytes]
"""Lists of pods as JSON, which is a quarter of the memory."""
_NONE = b"[]"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listing:
    """A LIST that was begun, and maybe answered."""

    begun_s: float
    """On the event loop's clock."""
    answer: asyncio.Future[_ByService] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    def failed(self) -> bool:
        """Whether there will be no answer."""
        return self.answer.done() and self.answer.exception() is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The pods that wear a service's label."""

    pods: Sequence[Manifest]
    own: bool
    """The LIST was begun for this tick."""


class SharedPods:
    """The pods of services that make their own Deployment, listed by namespace."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._listings: dict[str, _Listing] = {}
        self._alone: set[str] = set()
        self._told_s: dict[str, float] = {}
        """When a watch last told of a service's pods."""

    async def of(self, service: InferenceService, within_s: float) -> Seen:
        """Return a service's pods from a LIST that was begun `within_s` or less ago, or is now.

        A service that moves has a LIST of its own; whoever waits for a shared one shares its
        failure too. Raises ClusterError.
        """
        now_s = asyncio.get_running_loop().time()
        within_s = min(within_s, now_s - self._told_s.get(service.uid, -math.inf))
        if within_s <= 0.0 or service.uid in self._alone:
            selector = names.selector_text(service.name)
            listed = await self._cluster.list_all("v1", "Pod", service.namespace, selector)
            return Seen(pods=listed, own=True)
        return await self._shared(service.namespace, service.name, within_s, now_s)

    def told(self, uid: str) -> None:
        """Take in that a service's pods have changed: what was listed before is too old for it."""
        self._told_s[uid] = asyncio.get_running_loop().time()

    def moves(self, uid: str, *, moves: bool) -> None:
        """Take in whether a service has something under way, or is about to."""
        (self._alone.add if moves else self._alone.discard)(uid)

    def forget(self, uid: str) -> None:
        """Drop what is known of a service that is gone."""
        self._alone.discard(uid)
        self._told_s.pop(uid, None)

    async def _shared(self, namespace: str, service: str, within_s: float, now_s: float) -> Seen:
        known = self._listings.get(namespace)
        if known is None or known.failed() or now_s - known.begun_s > within_s:
            self._forget_before(now_s - within_s)
            known = self._listings[namespace] = _Listing(begun_s=now_s)
            await self._list(namespace, known)
            return Seen(pods=_read(known.answer.result(), service), own=True)
        return Seen(pods=_read(await asyncio.shield(known.answer), service), own=False)

    async def _list(self, namespace: str, into: _Listing) -> None:
        """Answer all who wait, also where the tick that began it is given up."""
        try:
            pods, _ = await self._cluster.list_at("v1", "Pod", namespace, names.SERVICE_LABEL)
        except BaseException as error:
            failure = error if isinstance(error, Exception) else Unavailable("it was given up")
            into.answer.set_exception(failure)
            into.answer.exception()  # nobody may be waiting
            raise
        grouped: dict[str, list[Manifest]] = defaultdict(list)
        for pod in pods:
            grouped[pod["metadata"]["labels"][names.SERVICE_LABEL]].append(pod)
        into.answer.set_result({name: orjson.dumps(some) for name, some in grouped.items()})

    def _forget_before(self, moment_s: float) -> None:
        """Drop what nobody may read any more."""
        for namespace, one in list(self._listings.items()):
            if one.answer.done() and one.begun_s < moment_s:
                del self._listings[namespace]


def _read(found: _ByService, service: str) -> Sequence[Manifest]:
    return cast("list[Manifest]", orjson.loads(found.get(service, _NONE)))
