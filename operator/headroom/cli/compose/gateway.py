"""Wires the parts that route services through gateways and activators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from headroom.adapters.activator_api import ActivatorApi
from headroom.adapters.gateway_scraper import GatewayScraper
from headroom.adapters.kubernetes_api import KubernetesApi
from headroom.adapters.pod_watch import PodWatch
from headroom.adapters.port_probe import PortProbe
from headroom.adapters.server_tls import ServerTls
from headroom.adapters.system_clock import SystemClock
from headroom.adapters.token_review import TokenReview
from headroom.certificates.values import Role
from headroom.cli.run_options import CertificateIssuer, GatewayChoice
from headroom.controller.gather.gateway_pages import GatewayPages
from headroom.controller.routing import Router
from headroom.ops.certificate_keeper import CertificateKeeper
from headroom.resources.names import SERVICE_LABEL

if TYPE_CHECKING:
    from headroom.adapters.xds_server import XdsServer

AUDIENCE = "headroom-operator"
"""Audience of the gateways' and activators' tokens: they are valid for the operator only."""


def routing_parts(
    api: KubernetesApi,
    clock: SystemClock,
    choice: GatewayChoice,
    namespaces: Sequence[str],
    pages: GatewayScraper,
    tls: ServerTls,
) -> tuple[Router, XdsServer, ActivatorApi]:
    """Build the router, the server for gateways, and the server for activators."""
    # 30 MB, which an operator without gateways need not hold.
    from headroom.adapters.xds_server import XdsServer  # noqa: PLC0415

    accounts = f"system:serviceaccount:{choice.namespace}"
    server = XdsServer(
        TokenReview(api, user=f"{accounts}:{Role.GATEWAY}", audience=AUDIENCE),
        tls,
        Role.GATEWAY.dns_name(choice.namespace),
    )
    desk = ActivatorApi(
        TokenReview(api, user=f"{accounts}:{Role.ACTIVATOR}", audience=AUDIENCE),
        tls=tls,
        peer=Role.ACTIVATOR.dns_name(choice.namespace),
    )
    gateways = f"app.kubernetes.io/name={Role.GATEWAY}"
    router = Router(
        replicas=PodWatch(
            api, selector=SERVICE_LABEL, namespace=namespaces[0] if len(namespaces) == 1 else None
        ),
        gateways=PodWatch(api, selector=gateways, namespace=choice.namespace),
        watch_pods=lambda namespace, selector: PodWatch(
            api, selector=selector, namespace=namespace
        ),
        publisher=server,
        activators=desk,
        probe=PortProbe(),
        clock=clock,
        counts=GatewayPages(pages, clock),
        gateway_namespace=choice.namespace,
        namespaces=namespaces,
        ports_per_namespace=choice.ports_per_namespace,
    )
    server.listen(on_left=router.gateway_left)
    return router, server, desk


def certificate_keeper(
    api: KubernetesApi,
    clock: SystemClock,
    choice: GatewayChoice,
    tls: ServerTls,
    leads: Callable[[], bool],
) -> CertificateKeeper:
    """Build what issues the certificates, or reads those that another issuer writes."""
    return CertificateKeeper(
        api,
        tls,
        clock.now_s,
        namespace=choice.namespace,
        issues=choice.certificates is CertificateIssuer.OPERATOR,
        leads=leads,
    )
