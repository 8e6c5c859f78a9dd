"""A generating server among leavers, malformed bodies and clients that do not read, for seconds.

`make reliability ARGS=generation` does it for ten minutes, and measures the growth of memory.
"""

from __future__ import annotations

import pytest

from reliability import generation

pytestmark = pytest.mark.clock


async def test_accounts_stay_exact_and_no_block_leaks() -> None:
    books = await generation.soak(4.0, clients=16)
    assert books.wrongs() == []
    assert books.kills == 0
    assert books.seen["complete"] > 0 < books.seen["left"]


async def test_hundreds_of_streams_that_are_not_read_fit_the_memory() -> None:
    books = await generation.unread(streams=400, seconds=5.0)
    assert books.kills == 0
    assert max(books.memory_mb) - books.memory_mb[0] < generation.UNREAD_MB
    assert books.wrongs() == []
