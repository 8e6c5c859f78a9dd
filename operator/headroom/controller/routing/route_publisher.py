"""Publishes the configuration of gateways and activators for all services in Gateway mode."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from headroom.api import InferenceService
from headroom.controller.ports import Clock
from headroom.controller.routing.gateway_inputs import GatewayInputs
from headroom.controller.routing.paced_routes import PacedRoutes
from headroom.controller.routing.parsed_services import ParsedServices
from headroom.controller.routing.ports import Activators, Publisher
from headroom.controller.routing.ready_pods import ReadyPod, ReadyPodIndex
from headroom.controller.routing.route_table import RouteTable
from headroom.controller.routing.route_writer import Routed
from headroom.controller.routing.target_pods import TargetPods
from headroom.gateway import snapshot
from headroom.gateway.built_routes import BuiltEndpoints, build
from headroom.gateway.values import is_kept

_log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class RoutePublisher:
    """Composes the configuration of gateways and activators from the present knowledge."""

    services: ParsedServices
    table: RouteTable
    replica_index: ReadyPodIndex
    gates: ReadyPodIndex
    targets: TargetPods
    publisher: Publisher
    activators: Activators
    clock: Clock
    gateway_namespace: str
    unread: Collection[str]
    """Namespaces whose services are unknown."""
    unlisted: Callable[[], Collection[str]]
    """Namespaces whose pods are unknown."""
    _paced: PacedRoutes = field(default_factory=lambda: PacedRoutes(build))
    _endpoints: BuiltEndpoints = field(default_factory=BuiltEndpoints)

    def publish(self, now_s: float) -> None:
        """Configure gateways and activators; without a ready replica requests go to activators.

        What is not known now stays there as it is.
        """
        kept = {*self.unread, *self.unlisted()}
        inputs = self._inputs(kept)
        self.activators.publish(inputs.served, kept)
        routed = self._routed_by_key()
        in_use = {key for key, one in routed.items() if one.is_in_use(self.clock.now_s())}
        paced = self._paced.publish(inputs.routes, lambda key: is_kept(key, kept), now_s, in_use)
        for key, one in routed.items():
            one.direct = key in paced.direct
        found = snapshot(
            paced.built,
            inputs.hosts,
            inputs.bounds,
            [pod.address for pod in self.gates.ready(self.gateway_namespace)],
            inputs.busy,
            kept=frozenset({*kept, *paced.late}),
            kept_listeners=[*self.table.reserved.values(), *paced.late],
            assigned=self._endpoints,
        )
        failed = {**inputs.failed, **found.failed, **paced.left_out}
        for key in failed.keys() - self.table.failed.keys():
            _log.error("%s cannot be routed through gateways as it is: %s", key, failed[key])
        self.table.failed, self.table.left_out = failed, paced.left_out
        self.publisher.publish(found)

    def _routed_by_key(self) -> dict[str, Routed]:
        return {
            f"{service.namespace}/{service.name}": self.table.routed[service.uid]
            for service, _ in self.services
            if service.uid in self.table.routed
        }

    def _inputs(self, kept: set[str]) -> GatewayInputs:
        """Return the inputs of routed services; add those without known pods to `kept`."""
        inputs, known = GatewayInputs(), []
        for service, learned in self.services:
            if service.namespace in kept:
                continue
            routed, pods = service.uid in self.table.routed, self._pods(service)
            if routed and pods is not None:
                known.append((service, learned, pods))
            elif routed or service.uid in self.table.waiting:
                kept.add(f"{service.namespace}/{service.name}")
        keys = {f"{service.namespace}/{service.name}" for service, _, _ in known}
        for service, learned, pods in known:
            port = self.table.routed[service.uid].port
            inputs.add(
                service,
                port,
                learned,
                pods,
                others=keys,
                activators=self.activators.accepting(port),
                held=self.activators.held(f"{service.namespace}/{service.name}"),
            )
        return inputs

    def _pods(self, service: InferenceService) -> tuple[ReadyPod, ...] | None:
        """Return the ready replicas; None while they are not known yet."""
        if service.spec.target_ref is None:
            return self.replica_index.ready(service.namespace, service.name)
        target = self.targets.of(service.uid)
        return None if target is None else target.ready()
