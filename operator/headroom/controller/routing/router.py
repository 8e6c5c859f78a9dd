"""Route services through gateways: configure the gateways, and point Services to them.

The gateways' configuration follows every change of a pod or a resource at once. Services and their
slices are written level-triggered, a few at a time, while this process decides.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from headroom.api import InferenceService
from headroom.controller.gather.gateways.gateway_pages import EVERY_S, GatewayPages
from headroom.controller.gather.gateways.route_status import NOT_ROUTED, RouteStatus
from headroom.controller.ports import Clock, Cluster
from headroom.controller.routing import port_numbers
from headroom.controller.routing.parsed_services import ParsedServices
from headroom.controller.routing.ports import Activators, Probe, Publisher, Watch, WatchPods
from headroom.controller.routing.ready_pods import ReadyPodIndex
from headroom.controller.routing.recorded_slices import recorded_slices
from headroom.controller.routing.route_table import RouteTable
from headroom.controller.routing.routing_changes import RoutingChanges
from headroom.controller.routing.routing_loop import RoutingLoop
from headroom.controller.routing.target_pods import TargetPods
from headroom.controller.routing.unread_namespaces import UnreadNamespaces
from headroom.controller.scheduling import tick_period
from headroom.controller.services.service_cache import ServiceCache
from headroom.scaling.values.observation import CostModel

_log = logging.getLogger(__name__)

RESTART_AFTER_S = 5.0
"""After a failure of this program itself."""


@dataclass(slots=True, kw_only=True)
class Router:
    """Keeps the routes of all services during one term of leadership."""

    replicas: Watch
    gateways: Watch
    watch_pods: WatchPods
    """Watches the pods of a target."""
    publisher: Publisher
    activators: Activators
    probe: Probe
    clock: Clock
    gateway_namespace: str
    namespaces: Sequence[str] = ()
    counts: GatewayPages | None = None
    """The gateways' counts of each service; None if they are not read."""
    ports_per_namespace: int = port_numbers.PER_NAMESPACE
    restart_after_s: float = RESTART_AFTER_S
    unlisted: Callable[[], Collection[str]] = frozenset
    """Namespaces whose replicas are not known yet."""
    _changes: RoutingChanges = field(default_factory=RoutingChanges)
    _table: RouteTable = field(default_factory=RouteTable)

    @property
    def refused(self) -> Mapping[str, str]:
        """Reasons why services in Gateway mode have no port, by UID."""
        return self._table.refused

    async def lead(
        self, cluster: Cluster, cache: ServiceCache, cost_of: Callable[[str], CostModel | None]
    ) -> None:
        """Route until cancelled; then the last configuration is kept.

        A failure in here is logged and routing restarts: scaling continues meanwhile.
        """
        try:
            while True:
                try:
                    await self._route(cluster, cache, cost_of)
                except Exception:  # noqa: BLE001  (whatever it is, scaling goes on)
                    _log.exception("routing failed, and restarts in %g s", self.restart_after_s)
                await asyncio.sleep(self.restart_after_s)
        finally:
            self.publisher.withdraw()
            self.activators.withdraw()

    def route_status(self, service: InferenceService) -> RouteStatus:
        """Return how requests reach a service now."""
        routed = self._table.routed.get(service.uid)
        if routed is None:
            return replace(NOT_ROUTED, refused=self._table.refused.get(service.uid, ""))
        key = f"{service.namespace}/{service.name}"
        return RouteStatus(
            gateways=routed.addresses,
            activators=len(self.activators.accepting(routed.port)),
            held=self.activators.held(key),
            arrived=self.activators.arrived(key),
            totals=None if self.counts is None else self.counts.of(key),
            trouble=routed.last_error,
            left_out="" if routed.addresses else self._table.left_out.get(key, ""),
        )

    async def _route(
        self, cluster: Cluster, cache: ServiceCache, cost_of: Callable[[str], CostModel | None]
    ) -> None:
        changed = self._changes.changed
        replica_index, gates = ReadyPodIndex(changed), ReadyPodIndex(self._changes.gateways_changed)
        await cache.synced.wait()
        unread = UnreadNamespaces(cluster, cache, self._table, self._changes)
        await self._seed(cluster, cache, unread.names)
        async with asyncio.TaskGroup() as group:
            targets = TargetPods(cluster, self.watch_pods, changed, group)
            loop = RoutingLoop(
                cluster,
                ParsedServices(cache, cost_of, without=unread.names),
                self._table,
                self._changes,
                replica_index=replica_index,
                gates=gates,
                targets=targets,
                publisher=self.publisher,
                activators=self.activators,
                probe=self.probe,
                clock=self.clock,
                gateway_namespace=self.gateway_namespace,
                ports_per_namespace=self.ports_per_namespace,
                unread=unread.names,
                unlisted=self.unlisted,
            )
            group.create_task(unread.adopt())
            group.create_task(self.replicas.run(replica_index.replace, replica_index.observe))
            group.create_task(self.gateways.run(gates.replace, gates.observe))
            group.create_task(loop.publish_changes())
            group.create_task(loop.sync())
            group.create_task(loop.probe())
            if self.counts is not None:
                group.create_task(
                    self.counts.run(
                        lambda: gates.ready(self.gateway_namespace),
                        lambda: tick_period.period_s(EVERY_S, len(cache)),
                    )
                )

    def changed(self) -> None:
        """Note that a service or its status has changed."""
        self._changes.changed()

    def gateway_left(self) -> None:
        """Probe the gateways now: one of them closed its stream."""
        self._changes.gateway_left()

    async def _seed(self, cluster: Cluster, cache: ServiceCache, unread: Collection[str]) -> None:
        """Read the ports that an earlier operator assigned."""
        served = {str(one["metadata"]["namespace"]) for one in cache.objects()}
        slices = await recorded_slices(cluster, self.namespaces, served, unread)
        known = {
            uid: one
            for uid, one in cache.by_uid().items()
            if one["metadata"].get("namespace") not in unread
        }
        self._table.restore(slices, known, unread, self.ports_per_namespace)
