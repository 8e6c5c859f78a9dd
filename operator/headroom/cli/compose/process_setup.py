"""Settings of the operator process: log, memory allocator, garbage collector, signals."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import logging
import os
import resource
import signal
import sys
from collections.abc import Coroutine
from typing import Any

from headroom.printable import printable

END_WITHIN_S = 5.0
"""After SIGTERM.

A write in progress is finished or abandoned: the next start reads the state from the cluster.
"""
COLLECTED_AFTER = (100_000, 20, 50)
"""Containers made and not freed, then young collections, then middle ones.

With Python's default (700, 10, 10) every few LISTs cause a collection over all objects of a
thousand services, which takes half a second and finds nothing: they are in no cycle. A LIST makes
up to 20 000 objects that reference counting frees; to examine those took a tenth of all CPU time.
"""
BIG_BYTES = 128 * 1024
"""The initial mmap threshold of glibc. glibc raises it to the size of freed blocks, up to 32 MB,
and then keeps the buffers of a LIST, or the 256 kB of a TLS connection, among long-lived blocks."""
DEEPEST_JSON = 10_000
"""Levels that the API server accepts. kopf decodes the events of the watch with Python's parser,
which counts each level as a call; one object must not end the watch of all services."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of mallopt(3)."""


class _OneLine(logging.Formatter):
    """Keeps each message on one line: tenants' text, which it quotes, must not begin one."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - of the library
        """Return the line of a message; a traceback follows it."""
        record.message = printable(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802 - of the library
        """Return the lines of a traceback, each of which begins with a space."""
        return "\n".join(f" {printable(line)}" for line in super().formatException(ei).splitlines())


def configure_logging(level: int = logging.INFO) -> None:
    """Log to standard error from this level on."""
    handler = logging.StreamHandler()
    handler.setFormatter(_OneLine("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level, handlers=[handler])
    # The watch logs once why it ended; kopf logs each attempt with a traceback.
    logging.getLogger("kopf").setLevel(logging.CRITICAL)
    logging.captureWarnings(capture=True)
    # Read when gRPC is imported. It would write a line for each client without a certificate.
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")


def raise_open_files() -> None:
    """Open as many files as the process may: systemd, and so containerd, begins with 1024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def configure_memory() -> None:
    """Return big blocks to the kernel, collect garbage rarely, and decode what is nested deeply."""
    sys.setrecursionlimit(DEEPEST_JSON + 2000)
    return_big_blocks()
    gc.set_threshold(*COLLECTED_AFTER)
    gc.collect()
    gc.freeze()  # imported modules stay: half of what a collection would examine


def return_big_blocks() -> bool:
    """Fix the threshold from which freed blocks go back to the kernel; False without mallopt."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(_MMAP_THRESHOLD, BIG_BYTES)) and bool(mallopt(_TRIM_THRESHOLD, BIG_BYTES))


async def run_until_signal(*parts: Coroutine[None, None, None]) -> None:
    """Run the parts until SIGTERM or SIGINT, or until one of them fails, which ends all."""
    signalled = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, signalled.set)
    tasks = [asyncio.create_task(part) for part in parts]
    end = asyncio.create_task(signalled.wait())
    await asyncio.wait([*tasks, end], return_when=asyncio.FIRST_COMPLETED)
    failed = next((task for task in tasks if task.done()), None)
    for task in (*tasks, end):
        task.cancel()
    await asyncio.wait([*tasks, end], timeout=END_WITHIN_S)
    if failed is not None:
        await failed
