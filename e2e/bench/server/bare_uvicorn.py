"""Serves the bare applications of the benchmarks by uvicorn with the model server's settings."""

from __future__ import annotations

from typing import Any

import uvicorn


def serve(application: Any, port: int) -> None:
    """Serve an ASGI application on loopback until the process ends."""
    uvicorn.run(
        application,
        host="127.0.0.1",
        port=port,
        loop="uvloop",
        http="httptools",
        lifespan="off",
        ws="none",
        proxy_headers=False,
        access_log=False,
        log_level="warning",
        server_header=False,
        date_header=False,
    )


async def body_of(receive: Any) -> bytes:
    """Return the whole body of a request."""
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body
