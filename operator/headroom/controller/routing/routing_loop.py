"""Keeps routes up to date while this process decides: when they are published and written."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection
from contextlib import suppress

from headroom.api import InferenceService
from headroom.controller.ports import Clock, Cluster
from headroom.controller.routing.gateway_probe import GatewayProber
from headroom.controller.routing.parsed_services import ParsedServices
from headroom.controller.routing.ports import Activators, Probe, Publisher
from headroom.controller.routing.ready_pods import ReadyPodIndex
from headroom.controller.routing.route_publisher import RoutePublisher
from headroom.controller.routing.route_table import RouteTable
from headroom.controller.routing.route_writer import Routed, RouteWriter
from headroom.controller.routing.routing_changes import RoutingChanges
from headroom.controller.routing.target_pods import TargetPods
from headroom.controller.routing.vacant_ports import VacantPorts
from headroom.errors import ClusterError
from headroom.fair_slots import FairSlots

_log = logging.getLogger(__name__)

GATHERED_S = 0.02
"""Changes within this time are published together."""
PAUSE = 3.0
"""A pause of this many times the time that publishing took: it takes as long for one change of one
pod as for all, 38 ms with 1000 services, and any pod may change 20 times a second."""
ROUND_S = 0.5
AT_ONCE = 8
"""Services whose objects are written at a time; a namespace has at most half of these places."""


class RoutingLoop:
    """Keeps the routes of a table up to date."""

    def __init__(
        self,
        cluster: Cluster,
        services: ParsedServices,
        table: RouteTable,
        changes: RoutingChanges,
        *,
        replica_index: ReadyPodIndex,
        gates: ReadyPodIndex,
        targets: TargetPods,
        publisher: Publisher,
        activators: Activators,
        probe: Probe,
        clock: Clock,
        gateway_namespace: str,
        ports_per_namespace: int,
        unread: Collection[str],
        unlisted: Callable[[], Collection[str]],
        seconds: Callable[[], float] = time.thread_time,
    ) -> None:
        """`unread` are the namespaces whose services are unknown, `unlisted` whose pods are.

        `seconds` reads CPU time: by the wall, publishing would wait on a crowded machine.
        """
        self._services = services
        self._table = table
        self._changes = changes
        self._book = replica_index
        self._gates = gates
        self._targets = targets
        self._clock = clock
        self._ports_per_namespace = ports_per_namespace
        self._prober = GatewayProber(gates, gateway_namespace, probe)
        self._writer = RouteWriter(cluster, targets, self._prober, clock)
        self._vacant = VacantPorts(gates, gateway_namespace, probe, unread)
        self._route_publisher = RoutePublisher(
            services=services,
            table=table,
            replica_index=replica_index,
            gates=gates,
            targets=targets,
            publisher=publisher,
            activators=activators,
            clock=clock,
            gateway_namespace=gateway_namespace,
            unread=unread,
            unlisted=unlisted,
        )
        self._missed = asyncio.Event()
        self._places = FairSlots(AT_ONCE)
        self._seconds = seconds

    async def publish_changes(self) -> None:
        """Publish after each change, until cancelled."""
        while True:
            await self._changes.until_changed()
            await asyncio.sleep(GATHERED_S)
            if self._book.synced and self._gates.synced:
                begun_s = self._seconds()
                self._assign()
                if self._targets.settled:
                    self._route_publisher.publish(self._time_s())
                await asyncio.sleep(PAUSE * (self._seconds() - begun_s))

    async def sync(self) -> None:
        """Write Services and slices that are out of date, until cancelled.

        No service waits for another namespace's.
        """
        async with asyncio.TaskGroup() as group:
            while True:
                if self._book.synced and self._gates.synced:
                    self._assign()
                    self._begin_writes(group)
                    if self._table.retire(self._services.by_uid(), self._clock.now_s()):
                        self._changes.changed()
                with suppress(TimeoutError):
                    async with asyncio.timeout(ROUND_S):
                        await self._missed.wait()
                self._missed.clear()

    def _begin_writes(self, group: asyncio.TaskGroup) -> None:
        for service, _ in self._services:
            routed = self._table.routed.get(service.uid)
            if routed is not None and routed.may_be_written(service, self._time_s()):
                routed.writing = True
                group.create_task(self._write(service, routed))

    async def _write(self, service: InferenceService, routed: Routed) -> None:
        """Take the next step of one service in its namespace's turn."""
        try:
            async with self._places.slot(service.namespace):
                await self._writer.converge(service, routed)
            routed.succeeded()
        except ClusterError as error:
            if str(error) != routed.last_error:
                name = f"{service.namespace}/{service.name}"
                _log.warning("%s: its routing could not be written: %s", name, error)
            routed.failed(service, error, self._time_s())
        finally:
            routed.writing = False

    def _time_s(self) -> float:
        return asyncio.get_running_loop().time()

    async def probe(self) -> None:
        """Notice gateways that accept no more connections, and vacant ports, until cancelled."""
        while True:
            changed = await self._changes.until_look()
            shut = await self._prober.look({routed.port for routed in self._table.routed.values()})
            if shut or changed:
                self._missed.set()
            if await self._vacant.look():
                self._changes.changed()

    def _assign(self) -> None:
        """Assign ports, and follow the pods of the targets that have one."""
        known = self._services.by_uid()
        self._table.assign(known, self._ports_per_namespace, self._vacant.is_vacant)
        self._targets.follow(
            service
            for uid, service in known.items()
            if uid in self._table.routed and service.spec.target_ref is not None
        )
