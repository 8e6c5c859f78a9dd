"""Ports of loopback that no other process of this machine takes before they are used.

A port that the kernel picks for `bind(0)` and that is closed again may be given away in the
next moment: to a test in another process, or to the near end of an outgoing connection. So each
process claims a block of ports below the kernel's own range (32768 and up on Linux) for as long
as it lives, by keeping the first port of the block bound, and hands out the others in turn.
"""

from __future__ import annotations

import os
import socket
from functools import cache
from itertools import cycle

LOOPBACK = "127.0.0.1"
FIRST_PORT, LAST_PORT = 20_000, 29_999
"""The ports of routed services; also below those of Kubernetes' node ports."""
BLOCK = 100


def free_port() -> int:
    """Return a port of loopback without a listener, which this process alone hands out."""
    ports = _claimed(os.getpid())
    return next(port for port in ports if _is_free(port))


@cache
def _claimed(pid: int) -> cycle[int]:
    # by process id: a child that was forked claims a block of its own
    blocks = range(FIRST_PORT, LAST_PORT, BLOCK)
    start = pid % len(blocks)
    for first in (*blocks[start:], *blocks[:start]):
        claim = socket.socket()
        try:
            claim.bind((LOOPBACK, first))
        except OSError:
            claim.close()
        else:
            claim.detach()  # bound until the process ends
            return cycle(range(first + 1, first + BLOCK))
    raise OSError(f"a block of ports from {FIRST_PORT} to {LAST_PORT} must be free; all are taken")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # after TIME_WAIT
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True
