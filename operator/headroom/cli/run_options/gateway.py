"""The gateways and activators that `headroom run` configures."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer

XDS_PORT = 18000
PORTS, PORTS_PER_NAMESPACE = 10_000, 1_000
ACTIVATOR_PORT = 18001


class CertificateIssuer(StrEnum):
    """Issuer of the certificates of operator, gateways and activators."""

    OPERATOR = "operator"
    SECRET = "secret"  # noqa: S105  (the operator only reads the Secret)


@dataclass(frozen=True, slots=True)
class GatewayChoice:
    """Namespace of the gateways, and the ports that gateways and activators connect to."""

    namespace: str
    port: int = XDS_PORT
    activator_port: int = ACTIVATOR_PORT
    ports_per_namespace: int = PORTS_PER_NAMESPACE
    certificates: CertificateIssuer = CertificateIssuer.OPERATOR
    reviews_tokens: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayOptions:
    """Gateways and activators."""

    gateway_namespace: Annotated[
        str | None,
        typer.Option(
            metavar="NAMESPACE",
            help="Route services in Gateway mode through the gateways of this namespace. Without "
            "it they are routed as in Service mode.",
        ),
    ] = None
    xds_port: Annotated[
        int, typer.Option(min=1, max=65535, help="Port on which gateways get their configuration.")
    ] = XDS_PORT
    activator_port: Annotated[
        int,
        typer.Option(min=1, max=65535, help="Port on which activators get their configuration."),
    ] = ACTIVATOR_PORT
    gateway_ports_per_namespace: Annotated[
        int,
        typer.Option(
            min=1,
            max=PORTS,
            help=f"Maximum gateway ports per namespace, of {PORTS} in total.",
        ),
    ] = PORTS_PER_NAMESPACE
    gateway_certificates: Annotated[
        CertificateIssuer,
        typer.Option(
            help="Who issues the certificates of operator, gateways and activators: the operator, "
            "into Secrets of their namespace, or another issuer, such as cert-manager, into the "
            "same ones."
        ),
    ] = CertificateIssuer.OPERATOR
    review_gateway_tokens: Annotated[
        bool,
        typer.Option(
            "--review-gateway-tokens/--no-review-gateway-tokens",
            help="Have the API server review the tokens of gateways and activators, in addition to "
            "their certificates. This requires a cluster-wide permission.",
        ),
    ] = True

    def choice(self) -> GatewayChoice | None:
        """Return where the gateways are; None without a namespace."""
        if not self.gateway_namespace:
            return None
        return GatewayChoice(
            namespace=self.gateway_namespace,
            port=self.xds_port,
            activator_port=self.activator_port,
            ports_per_namespace=self.gateway_ports_per_namespace,
            certificates=self.gateway_certificates,
            reviews_tokens=self.review_gateway_tokens,
        )
