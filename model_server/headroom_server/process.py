"""What the process itself needs: a listening socket, and an interpreter tuned for one device."""

from __future__ import annotations

import gc
import logging
import socket
import sys

log = logging.getLogger("headroom_server")

BACKLOG = 2048


def listen(host: str, port: int) -> socket.socket:
    """A socket that clients can connect to from now on; they wait until the server runs.

    Raises:
        OSError: where the address is taken, or none of this machine's.
    """
    family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.create_server(address, family=family, backlog=BACKLOG)
    log.info("listening on %s, port %d", *listener.getsockname()[:2])
    return listener


def quiet_garbage_collector() -> None:
    """What was imported lives for ever: keep it out of every later collection."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


def prompt_device_thread() -> None:
    """Let the device thread have the interpreter soon after its batch ends, not after 5 ms."""
    sys.setswitchinterval(0.0005)
