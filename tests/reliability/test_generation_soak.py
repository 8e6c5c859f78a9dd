"""A generating server among leavers, malformed bodies and clients that do not read, for seconds.

`make reliability ARGS=generation` does it for ten minutes, and measures the growth of memory.
"""

from __future__ import annotations

import pytest

from reliability.generation import generation

pytestmark = pytest.mark.clock


async def test_accounts_stay_exact_and_no_block_leaks() -> None:
    accounts = await generation.soak(4.0, clients=16)
    assert accounts.wrongs() == []
    assert accounts.kills == 0
    assert accounts.seen["complete"] > 0 < accounts.seen["left"]


async def test_hundreds_of_streams_that_are_not_read_fit_the_memory() -> None:
    accounts = await generation.unread(streams=400, seconds=5.0)
    assert accounts.kills == 0
    assert max(accounts.memory_mb) - accounts.memory_mb[0] < generation.UNREAD_MB
    assert accounts.wrongs() == []
