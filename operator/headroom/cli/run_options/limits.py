"""The limits of `headroom run` over all services."""

# ruff: noqa: PLC0415  (help is shown without the libraries that the operator needs)

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from headroom.controller.sharing.caps import Caps


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitOptions:
    """Limits over all services."""

    max_replicas_per_service: Annotated[
        int | None,
        typer.Option(
            min=1,
            envvar="HEADROOM_MAX_REPLICAS_PER_SERVICE",
            help="Maximum replicas of any service, whatever its maxReplicas. Replicas that already "
            "run are not removed. [default: no limit]",
            show_default=False,
        ),
    ] = None
    max_accelerators: Annotated[
        int | None,
        typer.Option(
            min=1,
            envvar="HEADROOM_MAX_ACCELERATORS",
            help="Maximum accelerators of all services together. Replicas that already run are not "
            "removed. [default: no limit]",
            show_default=False,
        ),
    ] = None
    not_accelerator: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN",
            envvar="HEADROOM_NOT_ACCELERATORS",
            help="Extended resource of pods that --max-accelerators does not count, such as "
            "rdma/*; repeatable. Every other one counts. [default: rdma/*, vpc.amazonaws.com/*, "
            "networking.gke.io.networks/*, devices.kubevirt.io/*]",
            show_default=False,
        ),
    ] = None

    def caps(self) -> Caps:
        """Return the limits; None is no limit."""
        from headroom.controller.sharing.caps import Caps
        from headroom.resources.accelerators import NOT_COUNTED

        return Caps(
            replicas_per_service=self.max_replicas_per_service,
            accelerators=self.max_accelerators,
            not_counted=tuple(self.not_accelerator or NOT_COUNTED),
        )
