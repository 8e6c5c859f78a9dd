"""Whether and how `headroom run` tells gateways what they route."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

XDS_PORT = 18000
ACTIVATOR_PORT = 18001
GATEWAY = "headroom-gateway"
"""Name of the gateways' ServiceAccount, and of their pods by label."""
ACTIVATOR = "headroom-activator"
"""Name of the activators' ServiceAccount."""
AUDIENCE = "headroom-operator"
"""That the gateways' and activators' tokens are issued for: they open nothing else."""

GatewayNamespace = Annotated[
    str | None,
    typer.Option(
        metavar="NAMESPACE",
        help="Route services in Gateway mode through the gateways of this namespace; without it "
        "they are routed as in Service mode.",
    ),
]
XdsPort = Annotated[
    int, typer.Option(min=1, max=65535, help="Port at which the gateways ask what they route.")
]

ActivatorPort = Annotated[
    int, typer.Option(min=1, max=65535, help="Port at which the activators ask what is served.")
]


@dataclass(frozen=True, slots=True)
class GatewayChoice:
    """Where the gateways are, and where they ask."""

    namespace: str
    port: int = XDS_PORT
    activator_port: int = ACTIVATOR_PORT
