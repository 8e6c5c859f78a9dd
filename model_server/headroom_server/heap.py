"""Freed memory goes back to the kernel: large blocks at once, the rest when much was freed.

glibc raises the size from which blocks have pages of their own to the size of freed blocks, up to
32 MiB, and then keeps the bodies of requests among long-lived blocks: after bodies of 8 MiB a
server that takes 73 MiB kept 224 of its 256. gRPC's pieces of messages are smaller, and kept 100.
What was freed is a sum: at the bound, as much arrives as is freed, and the level stays.
"""

from __future__ import annotations

import asyncio
import ctypes
from typing import Any

from headroom_server.web.shared_bound import SharedBound

BLOCK_BYTES = 256 * 1024
"""Size of a read of a socket; bodies are larger."""
FREED_BYTES = 8 << 20
EVERY_S = 1.0
KEEPS = "torch"
"""The engine whose tensors on a CPU are large blocks that it needs again."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of mallopt(3)."""


def return_large_blocks(engine: str) -> bool:
    """Fix the size from which freed blocks go back at once; False where that is not done."""
    mallopt = _of_the_library("mallopt")
    if mallopt is None or engine == KEEPS:
        return False
    return all(mallopt(one, BLOCK_BYTES) for one in (_MMAP_THRESHOLD, _TRIM_THRESHOLD))


async def trim_after_peaks(receiving: SharedBound, engine: str) -> None:
    """Give freed memory back to the system, until cancelled."""
    trim = _of_the_library("malloc_trim")
    while trim is not None and engine != KEEPS:
        await asyncio.sleep(EVERY_S)
        if receiving.returned >= FREED_BYTES:
            receiving.returned = 0
            await asyncio.to_thread(trim, 0)  # milliseconds, without the interpreter's lock


def _of_the_library(name: str) -> Any:
    return getattr(ctypes.CDLL(None), name, None)
