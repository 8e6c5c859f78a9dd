"""Start options of the operator: its name, its namespaces, its tick, its bounds."""

from __future__ import annotations

from dataclasses import dataclass

from headroom.controller.sharing.caps import NO_CAPS, Caps
from headroom.resources.settings import DEFAULTS, Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerOptions:
    """Options that are the same for all services."""

    instance: str
    """Name of this process in events."""
    namespaces: tuple[str, ...] = ()
    """Namespaces of the services to keep; none given means all."""
    tick_s: float = 2.0
    """Time between two evaluations of a service."""
    caps: Caps = NO_CAPS
    settings: Settings = DEFAULTS
