"""Bounds over all services, as whoever runs the operator sets them."""

from __future__ import annotations

from typing import Annotated

import typer

MaxReplicas = Annotated[
    int | None,
    typer.Option(
        "--max-replicas-per-service",
        min=1,
        envvar="HEADROOM_MAX_REPLICAS_PER_SERVICE",
        help="No service is scaled beyond, whatever its maxReplicas. What stands is not removed "
        "for it. [default: no bound]",
        show_default=False,
    ),
]
MaxAccelerators = Annotated[
    int | None,
    typer.Option(
        "--max-accelerators",
        min=1,
        envvar="HEADROOM_MAX_ACCELERATORS",
        help="All services together are not scaled beyond this many accelerators. What stands is "
        "not removed for it. [default: no bound]",
        show_default=False,
    ),
]
