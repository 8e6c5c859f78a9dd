"""Puts the fronts together, where the settings ask for some."""

from __future__ import annotations

from collections.abc import Sequence
from socket import socket
from typing import TYPE_CHECKING

from headroom_server.fronts.client_connection import Bounds
from headroom_server.fronts.fronts import Fronts
from headroom_server.fronts.register import Register
from headroom_server.fronts.visits import Visits
from headroom_server.runtime.registry import Models
from headroom_server.settings import Settings

if TYPE_CHECKING:
    import uvicorn


def fronts_of(
    models: Models,
    server: uvicorn.Server,
    settings: Settings,
    listeners: Sequence[socket],
    *,
    traced: bool,
) -> Fronts:
    """One per listener, begun.

    `traced`: spans are made around ASGI, so that every request is the device process's.
    """
    bounds = Bounds(
        settings.max_body_bytes, settings.connection_max_age_s, settings.connection_idle_s
    )
    fronts = Fronts(listeners, Register(models, hidden=traced), Visits(server), bounds)
    fronts.start()
    return fronts
