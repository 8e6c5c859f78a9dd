"""Ports of routing; adapters fit by structure, tests use fakes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Protocol

from headroom.api import InferenceService
from headroom.controller.gather.gateways.route_status import RouteStatus
from headroom.controller.ports import Cluster, Manifest
from headroom.controller.services.service_cache import ServiceCache
from headroom.gateway import Snapshot
from headroom.gateway.activator_messages import Served
from headroom.scaling.values.observation import CostModel

OnList = Callable[[list[Manifest]], None]
OnEvent = Callable[[str, Manifest], None]


class Watch(Protocol):
    """Pods as they are and as they change."""

    async def run(self, on_list: OnList, on_event: OnEvent) -> None:
        """Report the existing objects, then changes, until cancelled."""
        ...


WatchPods = Callable[[str, str], Watch]
"""Watches the pods in a namespace that a label selector selects."""


class Selectors(Protocol):
    """Know the pods of targets."""

    def selector(self, uid: str) -> Mapping[str, str] | None:
        """Return the selector by which a Service leads to a target; None where it is unknown."""
        ...


class Routing(Protocol):
    """Leads the clients of services to gateways or replicas."""

    async def lead(
        self, cluster: Cluster, cache: ServiceCache, cost_of: Callable[[str], CostModel | None], /
    ) -> None:
        """Do so until cancelled, while this process decides."""
        ...

    def changed(self) -> None:
        """Note that a service or its status has changed."""
        ...

    def route_status(self, service: InferenceService) -> RouteStatus:
        """Return how requests reach a service now."""
        ...


class Publisher(Protocol):
    """Publishes configuration to the gateways."""

    def publish(self, snapshot: Snapshot) -> None:
        """Publish this until the next call."""
        ...

    def withdraw(self) -> None:
        """Stop publishing: another process decides."""
        ...


class Probe(Protocol):
    """Tries whether a gateway accepts connections."""

    async def is_open(self, address: str, port: int) -> bool:
        """Return whether a process listens there, within a fraction of a second."""
        ...


class Activators(Protocol):
    """Hold requests while a service has no warm replica."""

    def publish(self, services: Iterable[Served], kept: Collection[str] = ()) -> None:
        """Publish this until the next call.

        Other services stay as they are if `kept` has their namespace or key.
        """
        ...

    def withdraw(self) -> None:
        """Stop publishing: another process decides."""
        ...

    def accepting(self, port: int) -> tuple[str, ...]:
        """Return the addresses of those that take requests at a service's port."""
        ...

    def arrived(self, key: str) -> int:
        """Count the requests that came to them for a service, since some moment."""
        ...

    def held(self, key: str) -> int:
        """Count the requests that are held for a service, by `namespace/name`."""
        ...
