"""Large reads wait for their turn, so that the loop serves other connections between them."""

from __future__ import annotations

import asyncio
from functools import partial

from headroom_server.web.read_turns import ROUND_S, ReadTurns


class Reads:
    """Reads that each take some time of a clock."""

    def __init__(self, takes_s: float) -> None:
        self.now_s = 0.0
        self.takes_s = takes_s
        self.parsed: list[str] = []
        self.turns = ReadTurns(lambda: self.now_s)

    def arrive(self, client: str) -> None:
        parse = partial(self._parse, client)
        if self.turns.free:
            self.turns.parse(parse)
        else:
            self.turns.later(client, parse)

    def _parse(self, client: str) -> None:
        self.now_s += self.takes_s
        self.parsed.append(client)


async def test_round_of_the_loop_parses_for_some_milliseconds() -> None:
    reads, per_round = Reads(takes_s=0.6 * ROUND_S), list[int]()
    for _ in range(20):
        reads.arrive("a")
    before = 0
    while len(reads.parsed) < 20:
        per_round.append(len(reads.parsed) - before)
        before = len(reads.parsed)
        await asyncio.sleep(0)
    assert max(per_round) == 2


async def test_reads_that_take_no_time_do_not_wait() -> None:
    reads = Reads(takes_s=0.0)
    for _ in range(20):
        reads.arrive("a")
    assert len(reads.parsed) == 20


async def test_client_with_one_read_waits_for_one_of_each_other_client() -> None:
    reads = Reads(takes_s=2 * ROUND_S)
    for _ in range(50):
        reads.arrive("flood")
    reads.arrive("a")
    for _ in range(3):
        await asyncio.sleep(0)
    assert "a" in reads.parsed[:3]
