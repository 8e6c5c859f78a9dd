"""Share one LIST of Deployments and one of pods among the services that are evaluated soon.

They are complete answers of the API server; each tick reads its own part. For all ticks but the
first they are a moment old: enough to find that nothing is to be done, never to write replicas
from.

The LIST selects by the services' names, in all namespaces, and any tenant may label an object so:
what belongs to no service of the LIST is dropped while it is read. A service whose name too many
objects have is read in its own namespace.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from headroom.api import InferenceService
from headroom.controller.gather.workloads.crowded_names import CrowdedNames
from headroom.controller.gather.workloads.listed_parts import CrowdedError, Name, Part
from headroom.controller.gather.workloads.workload import workload_of
from headroom.controller.gather.workloads.workload_reads import Seen, list_together, read_alone
from headroom.controller.ports import Cluster, Manifest
from headroom.controller.services.service_cache import ServiceCache
from headroom.errors import AnswerTooLarge

MOST = 32
"""Services of one LIST: a hundred pods are some 0.5 MB, and 3 ms to read."""

Upcoming = Callable[[float], Iterable[tuple[float, str]]]
"""Gives who is due within this many seconds, or is being evaluated: since when on the event loop's
clock, and the UID, in the order in which they are due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """Reads that ticks may share."""

    ahead_s: float
    """Services that are due within this time share a LIST; 0: each tick reads for itself."""
    period_s: float
    """Time between two ticks of a service. What was read along is no older, however late they are:
    ticks that come late and then find nothing would be later still."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listing:
    """LISTs that have started, answered or not."""

    begun_s: float
    """On the event loop's clock."""
    answer: asyncio.Future[dict[Name, Part]] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    def serves(self, oldest_s: float) -> bool:
        """Return whether it started after that time and has not failed."""
        failed = self.answer.done() and self.answer.exception() is not None
        return self.begun_s > oldest_s and not failed


class SharedReads:
    """Workloads and pods as ticks need them; those of services that make their own are shared."""

    def __init__(
        self, cluster: Cluster, cache: ServiceCache, upcoming: Upcoming, *, clusterwide: bool
    ) -> None:
        """Read in all namespaces at once, or in that of a service."""
        self._cluster = cluster
        self._cache = cache
        self._upcoming = upcoming
        self._clusterwide = clusterwide
        self._listings: dict[str, _Listing] = {}
        """Listings by UID, until the service has read its part."""
        self._read_s: dict[str, float] = {}
        """Time when a service was last read."""
        self._alone: set[str] = set()
        self._invalidated_s: dict[str, float] = {}
        """Time when a watch last reported a change of a service's pods."""
        self._crowded = CrowdedNames()
        self._running: set[asyncio.Task[None]] = set()

    async def of(self, service: InferenceService, sharing: Sharing) -> Seen:
        """Return the workload and its pods, from LISTs begun a moment ago, or now.

        A service that scales has reads of its own; one that waits for a shared read shares its
        failure too. Raises TargetUnusable, or ClusterError.
        """
        now_s, uid = asyncio.get_running_loop().time(), service.uid
        known = self._listings.pop(uid, None)
        self._read_s[uid] = now_s
        oldest_s = max(now_s - sharing.period_s, self._invalidated_s.get(uid, -math.inf))
        alone = sharing.ahead_s <= 0.0 or uid in self._alone or oldest_s >= now_s
        alone = alone or self._crowded.has(service.name, now_s)
        if alone or service.spec.target_ref is not None:
            return await read_alone(self._cluster, service)
        name = service.namespace, service.name
        own = known is None or not known.serves(oldest_s)
        if known is None or own:
            known = self._list(service, sharing, now_s)
        answer = await asyncio.shield(known.answer)
        deployment, pods = answer.pop(name, (None, ()))
        if deployment is None:  # also where its label was removed
            return await read_alone(self._cluster, service)
        return Seen(workload=workload_of(deployment, service.name), pods=pods, own=own)

    def invalidate(self, uid: str) -> None:
        """Note that a service's pods have changed: earlier lists are too old for it."""
        self._invalidated_s[uid] = asyncio.get_running_loop().time()

    def moves(self, uid: str, *, moves: bool) -> None:
        """Note whether a service is changing, or is about to."""
        (self._alone.add if moves else self._alone.discard)(uid)

    def forget(self, uid: str) -> None:
        """Discard the state of a deleted service."""
        self._alone.discard(uid)
        for known in (self._listings, self._read_s, self._invalidated_s):
            known.pop(uid, None)

    def _list(self, service: InferenceService, sharing: Sharing, now_s: float) -> _Listing:
        """Begin a list for all waiting services; it goes on if the first one is deleted."""
        listing = _Listing(begun_s=now_s)
        wanted = {(service.namespace, service.name)}
        for uid, name in self._due_soon(service, sharing, now_s):
            self._listings[uid] = listing
            wanted.add(name)
        task = asyncio.create_task(self._answer(listing, service.namespace, wanted))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return listing

    async def _answer(self, listing: _Listing, namespace: str, wanted: set[Name]) -> None:
        place = None if self._clusterwide else namespace
        try:
            listing.answer.set_result(await list_together(self._cluster, place, wanted))
        except CrowdedError as crowded:
            self._crowded.add(crowded.names, listing.begun_s)
            listing.answer.set_result({})  # each reads alone
        except AnswerTooLarge:  # a foreign object: each reads in its own namespace
            self._crowded.add((name for _, name in wanted), listing.begun_s)
            listing.answer.set_result({})
        except Exception as error:  # noqa: BLE001  (raised where it is waited for)
            listing.answer.set_exception(error)
            listing.answer.exception()  # no reader may be waiting

    def _due_soon(
        self, service: InferenceService, sharing: Sharing, now_s: float
    ) -> Iterator[tuple[str, Name]]:
        """Return UID and name of those that will ask next, and have not been read for since."""
        found = 0
        for due_s, uid in self._upcoming(sharing.ahead_s):
            raw = self._cache.get(uid)
            if raw is None or uid in self._alone or uid == service.uid or not _may_share(raw):
                continue
            known = self._listings.get(uid)
            waits = known is not None and known.serves(now_s - sharing.period_s)
            name = raw["metadata"]["namespace"], raw["metadata"]["name"]
            within = self._clusterwide or name[0] == service.namespace
            within = within and not self._crowded.has(name[1], now_s)
            if within and not waits and self._read_s.get(uid, -math.inf) < due_s:
                yield uid, name
                found += 1
                if found == MOST - 1:
                    return


def _may_share(raw: Manifest) -> bool:
    """Return whether the service is one that reads with others, as far as it can be read at all."""
    spec = raw.get("spec") or {}
    follows = (spec.get("scaling") or {}).get("mode") == "External"
    return not follows and "targetRef" not in spec
