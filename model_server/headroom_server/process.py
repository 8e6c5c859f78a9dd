"""Process setup: the listening socket, garbage collection and thread switching."""

from __future__ import annotations

import gc
import logging
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from headroom_server.engine import LoadError

if TYPE_CHECKING:
    from headroom_server.settings import Settings

log = logging.getLogger("headroom_server")

BACKLOG = 2048
ACCEPTS_PER_ROUND = 16
"""libuv accepts one connection of a listener in each round of its loop: with 200 clients that open
connections again and again, and rounds of 30 ms of their bodies, a probe waited for 4 s. An idle
copy of a listener costs a failed accept (0.5 us) for each connection."""


def listen(host: str, port: int) -> socket.socket:
    """Return a socket as `bound_to`, and log its address."""
    listener = bound_to(host, port)
    log.info("listening on %s, port %d", *listener.getsockname()[:2])
    return listener


def bound_to(host: str, port: int) -> socket.socket:
    """Return a socket that accepts connections from now on; they wait until the server runs.

    Raises:
        OSError: the address is in use, or not an address of this machine.
    """
    family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    return socket.create_server(address, family=family, backlog=BACKLOG)


def acceptors(listener: socket.socket) -> list[socket.socket]:
    """Return copies of a listener, each of which accepts one connection in a round of the loop."""
    return [listener, *(listener.dup() for _ in range(ACCEPTS_PER_ROUND - 1))]


def quiet_garbage_collector() -> None:
    """Exclude imported objects, which live as long as the process, from garbage collection."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


def quiet_panics() -> None:
    """Have Rust's libraries log a line for a panic, which a client's text can cause.

    With `RUST_BACKTRACE` in the environment, each request for which a tokenizer panics writes 4 to
    7 kB to the log. Rust reads it at the first panic.
    """
    os.environ["RUST_BACKTRACE"] = "0"


def prompt_device_thread() -> None:
    """Let the device thread get the interpreter within 0.5 ms of its batch's end, not 5 ms."""
    sys.setswitchinterval(0.0005)


class StartError(Exception):
    """The server cannot start; the message says why, and what to change."""


@contextmanager
def explained(settings: Settings, needed_by: str) -> Iterator[None]:
    """Explain what prevents the start; `needed_by` is the setting that needs another library.

    Raises:
        StartError: something does.
    """
    try:
        yield
    except LoadError as error:
        raise StartError(str(error)) from error
    except OSError as error:
        raise StartError(
            f"cannot listen on HEADROOM_HOST={settings.host}, HEADROOM_PORT={settings.port}: "
            f"{error.strerror or error}"
        ) from error
    except ModuleNotFoundError as error:
        raise StartError(
            f"{needed_by} requires {error.name}, which is not installed in this image"
        ) from error
