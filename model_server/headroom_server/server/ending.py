"""Ends the server: after SIGTERM by a drain, or because what it serves cannot execute any more.

On SIGTERM the server becomes unready at once but accepts requests during the drain delay, because
endpoints take a moment to update. Then it accepts no new connections, finishes accepted requests
within the grace period, and exits with 0.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from headroom_server.server.served import Served
from headroom_server.server.uvicorn_server import Server
from headroom_server.settings import Settings

if TYPE_CHECKING:
    from headroom_server.open_inference_grpc.server import GrpcServer


log = logging.getLogger("headroom_server")

LINGER_S = 0.2
"""Time between closing the listener and closing idle connections: late requests are served."""
CLOSING_S = 2.0
"""Time for the last responses to be written after the grace period."""


async def drain(
    models: Served,
    server: Server,
    http: asyncio.Task[None],
    settings: Settings,
    grpc: GrpcServer | None,
) -> int:
    """Drain, and return the exit code: 0 if every accepted request was answered."""
    was_ready = models.begun
    models.drain()
    if was_ready:
        await asyncio.sleep(settings.drain_delay_s)
        server.refuse_connections()
        await asyncio.sleep(LINGER_S)
    server.should_exit = True  # idle connections end now, the others after their answer
    if grpc is not None:
        grpc.leave(settings.drain_grace_s)
    end_s = asyncio.get_running_loop().time() + settings.drain_grace_s
    try:
        await asyncio.wait_for(models.wait_idle(), settings.drain_grace_s)
        abandoned = 0
    except TimeoutError:
        models.close_intake()
        abandoned = models.abandon()
        log.error("the drain grace period ended; %d accepted requests were not executed", abandoned)
    await _close(server, http, end_s)
    return 1 if abandoned or models.impaired else 0


async def fail(
    models: Served,
    server: Server,
    http: asyncio.Task[None],
    stop: asyncio.Task[bool],
) -> int:
    """End after what is served cannot execute any more; return the exit code.

    A server that never was ready has nothing to keep: its restart shows in the pod's status. One
    that was ready stays, neither live nor ready, until the kubelet stops it, so that its last
    answers and its metrics can still be read.
    """
    if models.warm:
        await stop
    server.should_exit = True  # idle connections end now, the others after their answer
    await _close(server, http, asyncio.get_running_loop().time())
    return 1


async def _close(server: Server, http: asyncio.Task[None], end_s: float) -> None:
    # Requests that are still arriving and responses that are read slowly may finish, but they do
    # not extend the drain beyond its grace period.
    left_s = max(0.0, end_s - asyncio.get_running_loop().time()) + CLOSING_S
    done, _ = await asyncio.wait((http,), timeout=left_s)
    if not done:
        log.warning("closed %d connections that sent or read too slowly", server.abort())
        await asyncio.wait((http,), timeout=CLOSING_S)
