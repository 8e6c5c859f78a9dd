"""Memory of ended requests goes back to the kernel."""

from __future__ import annotations

import asyncio

from headroom_server.heap import FREED_BYTES, return_large_blocks, trim_after_peaks
from headroom_server.web.shared_bound import Reservation, SharedBound
from support.server_world import until


def test_threshold_of_large_blocks_can_be_fixed() -> None:
    assert return_large_blocks("emulated")
    assert not return_large_blocks("torch")


async def test_memory_is_given_back_once_after_much_was_freed() -> None:
    receiving = SharedBound(64 << 20)
    trimming = asyncio.create_task(trim_after_peaks(receiving, "emulated"))
    one, another = Reservation(receiving, "a"), Reservation(receiving, "b")
    one.grow(FREED_BYTES)
    one.close()
    another.grow(FREED_BYTES)  # as much has arrived meanwhile
    assert receiving.returned == FREED_BYTES
    await until(lambda: receiving.returned == 0)
    another.shrink(FREED_BYTES - 1)
    another.close()
    assert receiving.returned == FREED_BYTES
    trimming.cancel()
    await asyncio.gather(trimming, return_exceptions=True)
