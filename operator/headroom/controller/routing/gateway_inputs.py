"""Builds the configuration of gateways and activators, one service after the other. Pure.

A tenant chooses what its service says and, by the pages of its pods, what was learned of it. What
cannot be built costs the routes of no other service.
"""

from __future__ import annotations

from collections.abc import Collection, Container
from dataclasses import dataclass, field

from headroom.api import InferenceService
from headroom.controller.routing import route_builder
from headroom.controller.routing.ready_pods import ReadyPod
from headroom.controller.routing.route_builder import Learned
from headroom.gateway import Endpoint, Route
from headroom.gateway.activator_messages import Served


@dataclass(slots=True)
class GatewayInputs:
    """Routes and bounds by the services' keys, and the services that activators hold for."""

    routes: list[Route] = field(default_factory=list)
    hosts: dict[str, list[Endpoint]] = field(default_factory=dict)
    bounds: dict[str, int] = field(default_factory=dict)
    """Requests in flight, where known."""
    busy: dict[str, int] = field(default_factory=dict)
    """Requests that keep all replicas busy, where known."""
    served: list[Served] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    """Reason why a service is left out: an error of this program."""

    def add(
        self,
        service: InferenceService,
        port: int,
        learned: Learned,
        pods: tuple[ReadyPod, ...],
        *,
        others: Container[str],
        activators: Collection[str],
        held: int,
    ) -> None:
        """Add a service; without a ready replica its requests go to the activators' addresses.

        `others` are the keys of all services that have a route, `held` its requests at activators.
        """
        key = f"{service.namespace}/{service.name}"
        try:
            route = route_builder.route(service, port, others)
            served = route_builder.served(service, port, learned, pods)
            hosts = route_builder.endpoints(service, pods)
            most = route_builder.in_flight(service, learned, len(pods))
            busy = route_builder.busy(learned.cost, len(pods))
        except Exception as error:  # noqa: BLE001  (whatever it is, the others are routed)
            self.failed[key] = f"{type(error).__name__}: {error}"
            return
        self.routes.append(route)
        self.served.append(served)
        if not pods:  # activators bound what they hold
            self.hosts[key] = [Endpoint(address, port) for address in activators]
            return
        self.hosts[key] = hosts
        if most is not None:
            self.bounds[key] = most + held
        if busy is not None:
            self.busy[key] = busy
