"""The KV memory of a replica: blocks, and units of prefixes that requests share or leave behind.

A unit in use counts once, however many requests use it. One that nothing uses stays until memory
is needed; the one that was left longest ago goes first (vLLM's queue of free blocks). Simpler than
vLLM: blocks without a name are reused before any unit is evicted.
"""

from __future__ import annotations

from headroom.simulator.compiled.compiling import compiled
from headroom.simulator.generation.compiled.layout import NONE, Plant, Request, Row, Unit
from headroom.simulator.generation.compiled.state import TokenState


@compiled
def blocks_of(p: TokenState, tokens: int) -> int:
    """Return the blocks that these tokens need."""
    size = p.whole[Plant.BLOCK]
    return (tokens + size - 1) // size


@compiled
def free(p: TokenState, row: int) -> int:
    """Return the blocks that a request can get; units that nothing uses are evicted for it."""
    return p.whole[Plant.BLOCKS] - p.rows[row, Row.USED]


@compiled
def _unlink(p: TokenState, row: int, unit: int) -> None:
    before, after = p.units[row, unit, Unit.BEFORE], p.units[row, unit, Unit.AFTER]
    if before == NONE:
        p.rows[row, Row.OLDEST] = after
    else:
        p.units[row, before, Unit.AFTER] = after
    if after == NONE:
        p.rows[row, Row.NEWEST] = before
    else:
        p.units[row, after, Unit.BEFORE] = before
    p.rows[row, Row.CACHED] -= p.whole[Plant.UNIT]


@compiled
def _leave(p: TokenState, row: int, unit: int) -> None:
    newest = p.rows[row, Row.NEWEST]
    p.units[row, unit, Unit.BEFORE], p.units[row, unit, Unit.AFTER] = newest, NONE
    if newest == NONE:
        p.rows[row, Row.OLDEST] = unit
    else:
        p.units[row, newest, Unit.AFTER] = unit
    p.rows[row, Row.NEWEST] = unit
    p.rows[row, Row.CACHED] += p.whole[Plant.UNIT]


@compiled
def take(p: TokenState, row: int, blocks: int) -> None:
    """Use this many more blocks, which must be free; evicts units."""
    p.rows[row, Row.USED] += blocks
    while p.rows[row, Row.USED] + p.rows[row, Row.CACHED] > p.whole[Plant.BLOCKS]:
        oldest = p.rows[row, Row.OLDEST]
        _unlink(p, row, oldest)
        p.units[row, oldest, Unit.USES] = NONE


@compiled
def hits(p: TokenState, row: int, request: int) -> int:
    """Return how many units at the start of its prompt are in memory; one token is left over."""
    start = p.requests[request, Request.UNITS]
    tokens = p.whole[Plant.UNIT] * p.whole[Plant.BLOCK]
    most = min(
        p.requests[request, Request.UNITS_END] - start,
        (p.requests[request, Request.PROMPT] - 1) // tokens,
    )
    count = 0
    while count < most and p.units[row, p.unit_ids[start + count], Unit.USES] != NONE:
        count += 1
    return count


@compiled
def revived(p: TokenState, row: int, request: int, count: int) -> int:
    """Return the blocks of its first units that nothing uses now."""
    start, found = p.requests[request, Request.UNITS], 0
    for index in range(start, start + count):
        found += p.units[row, p.unit_ids[index], Unit.USES] == 0
    return found * p.whole[Plant.UNIT]


@compiled
def adopt(p: TokenState, row: int, request: int, count: int) -> None:
    """Use the first units of a prompt, which are in memory."""
    start = p.requests[request, Request.UNITS]
    for index in range(start, start + count):
        unit = p.unit_ids[index]
        if p.units[row, unit, Unit.USES] == 0:
            _unlink(p, row, unit)
            p.rows[row, Row.USED] += p.whole[Plant.UNIT]
        p.units[row, unit, Unit.USES] += 1
    p.requests[request, Request.SHARED] = count


@compiled
def publish(p: TokenState, row: int, request: int) -> None:
    """Let others use the units of a prompt that is computed; a second copy is dropped."""
    start = p.requests[request, Request.UNITS]
    tokens = p.whole[Plant.UNIT] * p.whole[Plant.BLOCK]
    last = min(
        p.requests[request, Request.UNITS_END] - start,
        p.requests[request, Request.PROMPT] // tokens,
    )
    for index in range(start + p.requests[request, Request.SHARED], start + last):
        unit = p.unit_ids[index]
        if p.units[row, unit, Unit.USES] == NONE:
            p.units[row, unit, Unit.USES] = 1
        elif p.units[row, unit, Unit.USES] == 0:
            _unlink(p, row, unit)
            p.units[row, unit, Unit.USES] = 1
        else:
            p.units[row, unit, Unit.USES] += 1
            p.rows[row, Row.USED] -= p.whole[Plant.UNIT]
    p.requests[request, Request.SHARED] = max(p.requests[request, Request.SHARED], last)


@compiled
def release(p: TokenState, row: int, request: int, tokens: int) -> None:
    """Free the blocks of a request with this many tokens; its last units are evicted first."""
    unit_blocks = p.whole[Plant.UNIT]
    p.rows[row, Row.USED] -= (
        blocks_of(p, tokens) - p.requests[request, Request.SHARED] * unit_blocks
    )
    start = p.requests[request, Request.UNITS]
    for offset in range(p.requests[request, Request.SHARED] - 1, -1, -1):
        unit = p.unit_ids[start + offset]
        p.units[row, unit, Unit.USES] -= 1
        if p.units[row, unit, Unit.USES] == 0:
            p.rows[row, Row.USED] -= unit_blocks
            _leave(p, row, unit)
    p.requests[request, Request.SHARED] = 0
