"""Lead Services back from gateways to replicas, in an operator that has no gateways.

An earlier operator with gateways left EndpointSlices that lead to them: gateways were switched off,
or an upgrade was rolled back. The gateways end soon, and accept connections meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from headroom.api import InferenceService, InvalidSpec
from headroom.controller.gather.gateways.route_status import NOT_ROUTED, RouteStatus
from headroom.controller.gather.workloads.workload import TargetUnusable, read_workload
from headroom.controller.ports import Clock, Cluster, Manifest
from headroom.controller.routing import port_numbers
from headroom.controller.routing.gateway_probe import GatewayProber
from headroom.controller.routing.ports import Probe
from headroom.controller.routing.ready_pods import ReadyPodIndex
from headroom.controller.routing.route_writer import Routed, RouteWriter
from headroom.controller.routing.target_selector import service_selector
from headroom.controller.services.service_cache import ServiceCache
from headroom.errors import AnswerTooLarge, ClusterError, Forbidden
from headroom.fair_slots import FairSlots
from headroom.repeated_failures import RepeatedFailures, pause_after_s
from headroom.resources.endpoint_slice import MANAGED_BY_SELECTOR
from headroom.scaling.values.observation import CostModel

_log = logging.getLogger(__name__)

LOOK_EVERY_S = 60.0
"""Between two looks at slices: the operator before may have written one while it ended. A service
that has no ready replica yet delays no look: the next one finds it again."""
AGAIN_S = 1.0
STEP_EVERY_S = 0.5
AT_ONCE = 8
"""Services whose objects are written at a time; a namespace has at most half of these places."""


@dataclass(slots=True, kw_only=True)
class HandBack:
    """Empties the slices of earlier gateways during one term of leadership."""

    probe: Probe
    clock: Clock
    namespaces: Sequence[str] = ()
    _left: dict[str, Routed] = field(default_factory=dict)
    """Services that lead to gateways, by UID."""
    _selectors: dict[str, Mapping[str, str] | None] = field(default_factory=dict)
    """Selectors of the pods of their targets."""

    async def lead(
        self, cluster: Cluster, cache: ServiceCache, _cost_of: Callable[[str], CostModel | None]
    ) -> None:
        """Hand back until cancelled. A failure in here is logged: scaling continues meanwhile."""
        await cache.synced.wait()
        failures = RepeatedFailures()
        while True:
            pause_s = LOOK_EVERY_S
            try:
                await self._hand_back(cluster, cache)
                pause_s = AGAIN_S if self._left else LOOK_EVERY_S
                failures.ends()
            except ClusterError as error:
                shortest_s = LOOK_EVERY_S if isinstance(error, Forbidden) else AGAIN_S
                pause_s = pause_after_s(error, shortest_s)
                if failures.is_news(error):
                    _log.warning("the slices of earlier gateways could not be read: %s", error)
            except Exception:  # noqa: BLE001  (whatever it is, scaling goes on)
                _log.exception("handing back failed, and is tried again in %g s", LOOK_EVERY_S)
            await asyncio.sleep(pause_s)

    def changed(self) -> None:
        """Do nothing: no gateway is configured."""

    def selector(self, uid: str) -> Mapping[str, str] | None:
        """Return the selector of a target's pods; None where it is unknown."""
        return self._selectors.get(uid)

    def route_status(self, service: InferenceService) -> RouteStatus:
        """Return how requests reach a service now."""
        routed = self._left.get(service.uid)
        if routed is None:
            return NOT_ROUTED
        return RouteStatus(gateways=routed.addresses, trouble=routed.last_error)

    async def _hand_back(self, cluster: Cluster, cache: ServiceCache) -> None:
        slices = [one async for one in self._slices(cluster, cache)]
        recorded = port_numbers.read(slices, cache.by_uid())
        self._left = {uid: Routed.recorded(one) for uid, one in recorded.items()}
        prober = GatewayProber(ReadyPodIndex(lambda: None), "", self.probe)
        writer, places = RouteWriter(cluster, self, prober, self.clock), FairSlots(AT_ONCE)

        loop = asyncio.get_running_loop()
        ends_s = loop.time() + LOOK_EVERY_S

        async def until_back(uid: str, routed: Routed) -> None:
            while routed.addresses and (service := _parsed(cache.get(uid))) is not None:
                if loop.time() >= ends_s:
                    return
                if routed.may_be_written(service, loop.time()):
                    async with places.slot(service.namespace):
                        await self._step(cluster, writer, service, routed)
                await asyncio.sleep(STEP_EVERY_S)
            del self._left[uid]

        async with asyncio.TaskGroup() as group:
            for uid, routed in list(self._left.items()):
                group.create_task(until_back(uid, routed))

    async def _slices(self, cluster: Cluster, cache: ServiceCache) -> AsyncIterator[Manifest]:
        """Yield them; one object that is too large to be read hides those of no other namespace."""
        kind = ("discovery.k8s.io/v1", "EndpointSlice")
        scopes: list[str | None] = [*self.namespaces] or [None]
        while scopes:
            scope = scopes.pop()
            try:
                found = await cluster.list_all(*kind, scope, MANAGED_BY_SELECTOR)
            except AnswerTooLarge as error:
                found = []
                if scope is None:
                    scopes += {str(one["metadata"]["namespace"]) for one in cache.objects()}
                else:
                    _log.warning("slices of namespace %s are not handed back: %s", scope, error)
            for one in found:
                yield one

    async def _step(
        self, cluster: Cluster, writer: RouteWriter, service: InferenceService, routed: Routed
    ) -> None:
        try:
            if service.spec.target_ref is not None:
                self._selectors[service.uid] = await _selector(cluster, service)
            await writer.converge(service, routed)
            routed.succeeded()
        except ClusterError as error:
            if str(error) != routed.last_error:
                name = f"{service.namespace}/{service.name}"
                _log.warning("%s still leads to an earlier gateway: %s", name, error)
            routed.failed(service, error, asyncio.get_running_loop().time())


def _parsed(raw: Manifest | None) -> InferenceService | None:
    """Return the service; None where it is gone or invalid."""
    if raw is None or raw["metadata"].get("deletionTimestamp"):
        return None
    try:
        return InferenceService.parse(raw)
    except InvalidSpec:
        return None


async def _selector(cluster: Cluster, service: InferenceService) -> Mapping[str, str] | None:
    try:
        workload = await read_workload(cluster, service)
    except TargetUnusable:
        return None
    return None if workload is None else service_selector(workload)
