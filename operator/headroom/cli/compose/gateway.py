"""Wires the parts that route services through gateways and activators."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headroom.adapters.api_server.kubernetes_api import KubernetesApi
from headroom.adapters.api_server.token_review import TokenReview
from headroom.adapters.gateways.activator_access import Authenticate
from headroom.adapters.gateways.activator_api import ActivatorApi
from headroom.adapters.gateways.gateway_scraper import GatewayScraper
from headroom.adapters.pods.port_probe import PortProbe
from headroom.adapters.system_clock import SystemClock
from headroom.adapters.watches.pod_watch import PodWatch
from headroom.adapters.watches.pod_watches import PodWatches
from headroom.adapters.watches.waiting_events import WatchShares
from headroom.certificates.values import Role
from headroom.cli.run_options.gateway import CertificateIssuer, GatewayChoice
from headroom.controller.gather.gateways.gateway_pages import GatewayPages
from headroom.controller.routing import Router
from headroom.resources.names import SERVICE_LABEL

if TYPE_CHECKING:
    from headroom.adapters.gateways.xds_server import XdsServer
    from headroom.ops.certificate_keeper import CertificateKeeper

_GATEWAYS = f"app.kubernetes.io/name={Role.GATEWAY}"
AUDIENCE = "headroom-operator"
"""Audience of the gateways' and activators' tokens: they are valid for the operator only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateways:
    """Additional parts of an operator with gateways."""

    choice: GatewayChoice
    router: Router
    xds: XdsServer
    activator_api: ActivatorApi
    keeper: CertificateKeeper

    def loops(self) -> tuple[Coroutine[None, None, None], ...]:
        """Return the tasks that run as long as the operator."""
        return (
            self.keeper.watch(),
            self.xds.serve(self.choice.port),
            self.activator_api.serve(self.choice.activator_port),
        )


def gateways_of(
    api: KubernetesApi,
    clock: SystemClock,
    choice: GatewayChoice,
    namespaces: Sequence[str],
    pages: GatewayScraper,
    shares: WatchShares,
    *,
    leads: Callable[[], bool],
    known: Callable[[Mapping[str, float]], None],
) -> Gateways:
    """Build the router, the servers for gateways and activators, and the keeper of certificates.

    `known` takes the times at which certificates expire, by Secret.
    """
    # 40 MB, which an operator without gateways need not hold.
    from headroom.adapters.certificates.server_tls import ServerTls  # noqa: PLC0415
    from headroom.adapters.gateways.xds_server import XdsServer  # noqa: PLC0415
    from headroom.ops.certificate_keeper import CertificateKeeper  # noqa: PLC0415

    tls = ServerTls(clock.now_s)
    gateway, activator = (
        role.dns_name(choice.namespace) for role in (Role.GATEWAY, Role.ACTIVATOR)
    )
    server = XdsServer(_reviews(api, choice, Role.GATEWAY), tls, gateway)
    activator_api = ActivatorApi(_reviews(api, choice, Role.ACTIVATOR), tls=tls, peer=activator)
    keeper = CertificateKeeper(
        api,
        tls,
        clock.now_s,
        namespace=choice.namespace,
        issues=choice.certificates is CertificateIssuer.OPERATOR,
        leads=leads,
        known=known,
    )
    replicas = _replicas(api, namespaces, shares)
    router = Router(
        replicas=replicas,
        unlisted=replicas.unlisted if isinstance(replicas, PodWatches) else frozenset,
        gateways=PodWatch(api, selector=_GATEWAYS, namespace=choice.namespace, shares=shares),
        watch_pods=lambda namespace, selector: PodWatch(
            api, selector=selector, namespace=namespace, shares=shares
        ),
        publisher=server,
        activators=activator_api,
        probe=PortProbe(),
        clock=clock,
        counts=GatewayPages(pages, clock),
        gateway_namespace=choice.namespace,
        namespaces=namespaces,
        ports_per_namespace=choice.ports_per_namespace,
    )
    server.listen(on_left=router.gateway_left)
    return Gateways(
        choice=choice, router=router, xds=server, activator_api=activator_api, keeper=keeper
    )


def _reviews(api: KubernetesApi, choice: GatewayChoice, role: Role) -> Authenticate:
    """Return the check of a bearer token; without reviews, the certificate alone identifies it."""
    if not choice.reviews_tokens:
        return _certified
    account = f"system:serviceaccount:{choice.namespace}:{role}"
    return TokenReview(api, user=account, audience=AUDIENCE)


async def _certified(_: str, __: str) -> bool:
    return True


def _replicas(
    api: KubernetesApi, namespaces: Sequence[str], shares: WatchShares
) -> PodWatch | PodWatches:
    watches = [
        PodWatch(api, selector=SERVICE_LABEL, namespace=one, shares=shares)
        for one in tuple(namespaces) or (None,)
    ]
    return PodWatches(watches) if len(watches) > 1 else watches[0]
