"""Write the Service and the EndpointSlice that lead a service's clients to gateways or replicas."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass

from headroom.api import InferenceService
from headroom.controller.act.adoption import ForeignObject
from headroom.controller.act.child_writer import ChildWriter
from headroom.controller.act.rejected_again import sent_again_after_s
from headroom.controller.ports import Clock, Cluster, Manifest
from headroom.controller.routing.gateway_probe import GatewayProber
from headroom.controller.routing.handover import RETIRED_AFTER_S, ServiceTarget, step
from headroom.controller.routing.port_numbers import Recorded
from headroom.controller.routing.ports import Selectors
from headroom.errors import ClusterError, Forbidden, Rejected
from headroom.resources import endpoint_slice
from headroom.resources import service as services
from headroom.resources.endpoint_slice import MANAGED_BY_KUBERNETES, SERVICE_NAME_LABEL
from headroom.resources.names import client_service

_log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class Routed:
    """One service with a gateway port."""

    port: int
    writer: ChildWriter
    addresses: tuple[str, ...] = ()
    """Addresses in its slice; as read, until it is written."""
    service_name: str = ""
    """The Service of its slice."""
    emptied_s: float | None = None
    """Time since which its slice is empty, in Service mode or led to its replicas."""
    direct: bool = False
    """Whether clients are led to the replicas, although it is in Gateway mode."""
    last_error: str = ""
    writing: bool = False
    """Whether a step of it is under way, or waits for its turn."""
    refused: Refused | None = None

    @classmethod
    def recorded(cls, one: Recorded) -> Routed:
        """Continue from the record of a slice."""
        return cls(
            port=one.port,
            writer=ChildWriter(),
            addresses=one.addresses,
            service_name=one.service_name,
        )

    def is_in_use(self, now_s: float) -> bool:
        """Return whether clients are led to a gateway, or were until now."""
        emptied_s = self.emptied_s
        lately = emptied_s is not None and 0.0 <= now_s - emptied_s < RETIRED_AFTER_S
        return bool(self.addresses) or lately

    def may_be_written(self, service: InferenceService, now_s: float) -> bool:
        """Return whether its next step may be taken now, on the event loop's clock."""
        refused = self.refused
        if self.writing:
            return False
        return refused is None or now_s >= refused.again_s or service != refused.service

    def succeeded(self) -> None:
        """Note that a step was taken."""
        self.last_error, self.refused = "", None

    def failed(self, service: InferenceService, error: ClusterError, now_s: float) -> None:
        """Note that a step failed.

        What the API server refuses is tried again at growing intervals: a tenant whose 300 services
        have names of other objects caused 300 requests a second. Other failures end soon.
        """
        self.last_error, before = str(error), self.refused
        if not isinstance(error, Rejected | Forbidden):
            self.refused = None
            return
        since_s = before.since_s if before and before.service == service else now_s
        again_s = now_s + sent_again_after_s(now_s - since_s)
        self.refused = Refused(service=service, since_s=since_s, again_s=again_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The API server refuses a Service or slice."""

    service: InferenceService
    """Service as it was then: another spec is tried at once."""
    since_s: float
    again_s: float


class RouteWriter:
    """Brings the Services and slices of routed services up to date, one step at a time."""

    def __init__(
        self, cluster: Cluster, targets: Selectors, prober: GatewayProber, clock: Clock
    ) -> None:
        self._cluster = cluster
        self._targets = targets
        self._prober = prober
        self._clock = clock

    async def converge(self, service: InferenceService, routed: Routed) -> None:
        """Take the next step for the Service and the slice of one service; raise ClusterError."""
        is_routed = service.spec.routing.mode == "Gateway"
        if is_routed and not routed.direct:
            routed.emptied_s = None
        elif not is_routed and not routed.addresses:
            return
        listening = await self._prober.open_for(service.uid, routed.port)
        if routed.direct:
            listening = listening[:0]
        leaves = bool(routed.addresses) and not (is_routed and listening)
        accepts = leaves and await self._prober.accepts(routed.addresses[0], routed.port)
        following = step(
            routed=is_routed,
            gateways=[pod.address for pod in listening],
            current=routed.addresses,
            accepts=accepts,
            replicas_known=accepts and await self._replicas_known(service),
        )
        if routed.service_name not in ("", client_service(service)):
            await self._release(service, routed)
        await self._write_slice(service, routed, following.slice_first)
        now_s = self._clock.now_s()
        if following.service is ServiceTarget.GATEWAY:
            await routed.writer.keep(self._cluster, service, services.build_routed(service), now_s)
        elif manifest := self._leading_to_replicas(service, following.service):
            await routed.writer.keep(self._cluster, service, manifest, now_s)
        await self._write_slice(service, routed, following.slice_after)

    def _leading_to_replicas(self, service: InferenceService, to: ServiceTarget) -> Manifest | None:
        """Build the Service for clients without a gateway; None: nothing is written.

        With a targetRef the reconciler writes no Service, and some selectors no Service can have.
        """
        if service.spec.target_ref is None:
            return services.build(service) if to is ServiceTarget.REPLICAS else None
        selector = self._targets.selector(service.uid)
        return services.build_for_clients(service, selector) if selector else None

    async def _release(self, service: InferenceService, routed: Routed) -> None:
        """Lead a Service whose name is no longer `serviceName` to the replicas: it has clients."""
        name, selector = routed.service_name, self._targets.selector(service.uid)
        if not selector:
            return
        direct = services.build_for_clients(service, selector, name)
        empty = endpoint_slice.build(service, (), routed.port, name)
        for manifest in (direct, empty):
            with suppress(ForeignObject):
                await ChildWriter().write(self._cluster, service, manifest)

    async def _write_slice(
        self, service: InferenceService, routed: Routed, addresses: tuple[str, ...] | None
    ) -> None:
        if addresses is None or (not addresses and not routed.addresses):
            return
        now_s = self._clock.now_s()
        ipv6 = ":" in (addresses or routed.addresses)[0]
        manifest = endpoint_slice.build(service, addresses, routed.port, ipv6=ipv6)
        await routed.writer.keep(self._cluster, service, manifest, now_s)
        if addresses != routed.addresses:
            where = ", ".join(addresses) or "nowhere"
            _log.info("%s/%s: its slice leads to %s", service.namespace, service.name, where)
        routed.addresses, routed.service_name = addresses, client_service(service)
        if not addresses:
            routed.emptied_s = now_s

    async def _replicas_known(self, service: InferenceService) -> bool:
        """Return whether the Service's own slices have a ready replica again."""
        slices = await self._cluster.list_all(
            "discovery.k8s.io/v1",
            "EndpointSlice",
            service.namespace,
            f"{SERVICE_NAME_LABEL}={client_service(service)},{MANAGED_BY_KUBERNETES}",
        )
        return any(_is_ready(one) for one in slices)


def _is_ready(one: Manifest) -> bool:
    endpoints = one.get("endpoints") or ()
    return any((entry.get("conditions") or {}).get("ready") for entry in endpoints)
