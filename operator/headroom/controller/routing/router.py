"""Route services through gateways: configure the gateways, and point Services to them.

The gateways' configuration follows every change of a pod or a resource at once. Services and their
slices are written level-triggered, a few at a time, while this process decides.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from headroom.api import InferenceService, InvalidSpec
from headroom.api.status import Status
from headroom.controller.act.child_writer import ChildWriter
from headroom.controller.gather.gateway_pages import EVERY_S, GatewayPages
from headroom.controller.gather.route_status import NOT_ROUTED, RouteStatus
from headroom.controller.ports import Clock, Cluster
from headroom.controller.routing import port_numbers, route_builder
from headroom.controller.routing.gateway_probe import GatewayProber
from headroom.controller.routing.handover import RETIRED_AFTER_S
from headroom.controller.routing.ports import Activators, Probe, Publisher, Watch, WatchPods
from headroom.controller.routing.ready_pods import ReadyPod, ReadyPodIndex
from headroom.controller.routing.route_builder import Learned
from headroom.controller.routing.route_writer import Routed, RouteWriter
from headroom.controller.routing.target_pods import TargetPods
from headroom.controller.scheduling import tick_period
from headroom.controller.services.service_cache import ServiceCache
from headroom.errors import ClusterError
from headroom.gateway import Endpoint, snapshot
from headroom.resources.endpoint_slice import MANAGED_BY_SELECTOR
from headroom.scaling.values.observation import CostModel

_log = logging.getLogger(__name__)

GATHERED_S = 0.02
"""Changes within this time are published together."""
BOUNDS_EVERY_S = 5.0
ROUND_S = 0.5
LOOK_EVERY_S = 0.2
"""A hanging gateway is noticed after this; a killed one closes its stream and is noticed at once,
a second before its pod's status changes."""
AT_ONCE = 8
SEED_AGAIN_S = 1.0
RESTART_AFTER_S = 5.0
"""After a failure of this program itself."""


@dataclass(slots=True)
class _Parsed:
    generation: int
    service: InferenceService
    status: object = None
    """As last read; another object is read again."""
    learned: Learned = field(default_factory=Learned)


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
    _dirty: asyncio.Event = field(default_factory=asyncio.Event)
    _left: asyncio.Event = field(default_factory=asyncio.Event)
    _routed: dict[str, Routed] = field(default_factory=dict)
    """By UID, as the present leadership knows them."""
    refused: dict[str, str] = field(default_factory=dict)
    """Why a service in Gateway mode has no port, by UID."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Why a service has no configuration, by its key."""

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
        routed = self._routed.get(service.uid)
        if routed is None:
            return replace(NOT_ROUTED, refused=self.refused.get(service.uid, ""))
        key = f"{service.namespace}/{service.name}"
        return RouteStatus(
            gateways=routed.addresses,
            activators=len(self.activators.accepting(routed.port)),
            held=self.activators.held(key),
            arrived=self.activators.arrived(key),
            totals=None if self.counts is None else self.counts.of(key),
            trouble=routed.last_error,
        )

    async def _route(
        self, cluster: Cluster, cache: ServiceCache, cost_of: Callable[[str], CostModel | None]
    ) -> None:
        book, gates = ReadyPodIndex(self._dirty.set), ReadyPodIndex(self._gateways_changed)
        await cache.synced.wait()
        self._routed = await self._seed(cluster, cache)
        async with asyncio.TaskGroup() as group:
            targets = TargetPods(cluster, self.watch_pods, self._dirty.set, group)
            loop = RoutingLoop(self, cluster, cache, cost_of, book, gates, targets, self._routed)
            group.create_task(self.replicas.run(book.replace, book.observe))
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
        self._dirty.set()

    def gateway_left(self) -> None:
        """Probe the gateways now: one of them closed its stream."""
        self._left.set()

    def _gateways_changed(self) -> None:
        self._dirty.set()
        self._left.set()

    async def until_look(self) -> bool:
        """Wait for the next probe; return whether a gateway has come or gone."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_EVERY_S):
                await self._left.wait()
        changed = self._left.is_set()
        self._left.clear()
        return changed

    async def until_changed(self) -> None:
        """Wait for a change; bounds follow the learned cost, which is not announced."""
        with suppress(TimeoutError):
            async with asyncio.timeout(BOUNDS_EVERY_S):
                await self._dirty.wait()
        self._dirty.clear()

    async def _seed(self, cluster: Cluster, cache: ServiceCache) -> dict[str, Routed]:
        """Read the ports that an earlier operator assigned."""
        while True:
            try:
                slices = [
                    one
                    for namespace in self.namespaces or (None,)
                    for one in await cluster.list_all(
                        "discovery.k8s.io/v1", "EndpointSlice", namespace, MANAGED_BY_SELECTOR
                    )
                ]
            except ClusterError as error:
                _log.warning("the slices of gateways could not be read: %s", error)
                await asyncio.sleep(SEED_AGAIN_S)
                continue
            known = {uid: one for uid in cache.uids() if (one := cache.get(uid)) is not None}
            return {
                uid: Routed(
                    port=one.port,
                    writer=ChildWriter(),
                    addresses=one.addresses,
                    service_name=one.service_name,
                )
                for uid, one in port_numbers.read(slices, known).items()
            }


class RoutingLoop:
    """Keeps routes up to date while this process decides."""

    def __init__(
        self,
        router: Router,
        cluster: Cluster,
        cache: ServiceCache,
        cost_of: Callable[[str], CostModel | None],
        book: ReadyPodIndex,
        gates: ReadyPodIndex,
        targets: TargetPods,
        routed: dict[str, Routed],
    ) -> None:
        self._router = router
        self._cache = cache
        self._cost_of = cost_of
        self._parsed: dict[str, _Parsed] = {}
        self._book = book
        self._gates = gates
        self._targets = targets
        self._prober = GatewayProber(gates, router.gateway_namespace, router.probe)
        self._writer = RouteWriter(cluster, targets, self._prober, router.clock)
        self._missed = asyncio.Event()
        self._routed = routed

    def _services(self) -> Iterator[tuple[InferenceService, Learned]]:
        """Yield every service as last parsed: one that became invalid is routed as before."""
        uids = self._cache.uids()
        for gone in self._parsed.keys() - set(uids):
            del self._parsed[gone]
        for uid in uids:
            raw = self._cache.get(uid)
            if raw is None or raw["metadata"].get("deletionTimestamp"):
                continue
            generation, known = raw["metadata"].get("generation", 0), self._parsed.get(uid)
            if known is None or known.generation != generation:
                try:
                    known = _Parsed(generation, InferenceService.parse(raw))
                except InvalidSpec:
                    if known is None:
                        continue
                self._parsed[uid] = known
            if known.status is not raw.get("status"):
                known.status = raw.get("status")
                known.learned = Learned.of(Status.read(known.status))
            exact = self._cost_of(uid)  # what status shows is rounded
            yield known.service, replace(known.learned, cost=exact) if exact else known.learned

    async def publish_changes(self) -> None:
        """Publish after each change, until cancelled."""
        while True:
            await self._router.until_changed()
            await asyncio.sleep(GATHERED_S)
            if self._book.synced and self._gates.synced:
                self._assign()
                if self._targets.settled:
                    self._publish()

    async def sync(self) -> None:
        """Write Services and slices that are out of date, until cancelled."""
        gate = asyncio.Semaphore(AT_ONCE)

        async def one(service: InferenceService, routed: Routed) -> None:
            async with gate:
                try:
                    await self._writer.converge(service, routed)
                    routed.last_error = ""
                except ClusterError as error:
                    if str(error) != routed.last_error:
                        routed.last_error = str(error)
                        name = f"{service.namespace}/{service.name}"
                        _log.warning("%s: its routing could not be written: %s", name, error)

        while True:
            if self._book.synced and self._gates.synced:
                self._assign()
                found = [
                    (service, self._routed[service.uid])
                    for service, _ in self._services()
                    if service.uid in self._routed
                ]
                await asyncio.gather(*(one(service, routed) for service, routed in found))
                self._retire()
            with suppress(TimeoutError):
                async with asyncio.timeout(ROUND_S):
                    await self._missed.wait()
            self._missed.clear()

    async def probe(self) -> None:
        """Notice gateways that accept no more connections, until cancelled."""
        while True:
            changed = await self._router.until_look()
            shut = await self._prober.look({routed.port for routed in self._routed.values()})
            if shut or changed:
                self._missed.set()

    def _assign(self) -> None:
        """Assign every service in Gateway mode a port; release those of deleted services."""
        known = {service.uid: service for service, _ in self._services()}
        for uid in [uid for uid in self._routed if uid not in known]:
            del self._routed[uid]
        taken = {routed.port for routed in self._routed.values()}
        held = Counter(known[uid].namespace for uid in self._routed)
        refused: dict[str, str] = {}
        for uid, service in known.items():
            if service.spec.routing.mode != "Gateway" or uid in self._routed:
                continue
            share = self._router.ports_per_namespace
            if held[service.namespace] >= share:
                refused[uid] = (
                    f"services of the namespace have all {share} ports of the gateways that one "
                    "namespace may have (--gateway-ports-per-namespace)"
                )
                continue
            port = port_numbers.choose(uid, taken)
            if port is None:
                refused[uid] = f"all {port_numbers.PORTS} ports of the gateways are taken"
                continue
            taken.add(port)
            held[service.namespace] += 1
            self._routed[uid] = Routed(port=port, writer=ChildWriter())
        for uid in refused.keys() - self._router.refused.keys():
            _log.error("%s/%s: %s", known[uid].namespace, known[uid].name, refused[uid])
        self._router.refused = refused
        self._targets.follow(
            service
            for uid, service in known.items()
            if uid in self._routed and service.spec.target_ref is not None
        )

    def _pods(self, service: InferenceService) -> tuple[ReadyPod, ...] | None:
        """Return the ready replicas; None while those of a target are not known yet."""
        if service.spec.target_ref is None:
            return self._book.ready(service.namespace, service.name)
        target = self._targets.of(service.uid)
        return None if target is None else target.ready()

    def _publish(self) -> None:
        """Configure gateways and activators; without a ready replica requests go to activators."""
        activators = self._router.activators
        routes, hosts, bounds, busy, served = [], {}, {}, {}, []
        known = [
            (service, learned, pods)
            for service, learned in self._services()
            if service.uid in self._routed and (pods := self._pods(service)) is not None
        ]
        keys = {f"{service.namespace}/{service.name}" for service, _, _ in known}
        for service, learned, pods in known:
            routed = self._routed[service.uid]
            route = route_builder.route(service, routed.port, keys)
            routes.append(route)
            served.append(route_builder.served(service, routed.port, learned, pods))
            if not pods:  # activators bound what they hold
                listening = activators.accepting(routed.port)
                hosts[route.key] = [Endpoint(address, routed.port) for address in listening]
                continue
            hosts[route.key] = route_builder.endpoints(service, pods)
            most = route_builder.in_flight(service, learned, len(pods))
            if most is not None:
                bounds[route.key] = most + activators.held(route.key)
            at_least = route_builder.busy(learned.cost, len(pods))
            if at_least is not None:
                busy[route.key] = at_least
        activators.publish(served)
        gateways = [pod.address for pod in self._gates.ready(self._router.gateway_namespace)]
        told = snapshot(routes, hosts, bounds, gateways, busy)
        for key in told.failed.keys() - self._router.failed.keys():
            _log.error("%s cannot be routed through gateways: %s", key, told.failed[key])
        self._router.failed = told.failed
        self._router.publisher.publish(told)

    def _retire(self) -> None:
        """Release the port of a service whose slice has been empty for long enough."""
        now_s = self._router.clock.now_s()
        modes = {service.uid: service.spec.routing.mode for service, _ in self._services()}
        for uid, routed in list(self._routed.items()):
            if modes.get(uid) == "Gateway" or routed.addresses:
                continue
            if routed.emptied_s is None or not 0 <= now_s - routed.emptied_s < RETIRED_AFTER_S:
                del self._routed[uid]
                self._router.changed()
