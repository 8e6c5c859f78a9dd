"""The iterations of a replica: vLLM v1's policy, with runs of plain decodes in closed form.

Policy (vLLM 0.33 v1/core/sched/scheduler.py, first come first served): every decoding sequence
gets a token; then a prompt that is partly computed continues; then waiting requests are admitted
in order while the iteration has tokens, the replica seats and memory left: for the whole sequence,
not only its first chunk (`scheduler_reserve_full_isl`, the default). If a running sequence finds no
memory, the one admitted last is preempted and computed again later; nothing is admitted in such an
iteration.

While all sequences decode and none can be admitted, iterations are one run, up to the next end,
arrival or lack of memory.
"""

from __future__ import annotations

import math

from headroom.simulator.compiled.compiling import compiled
from headroom.simulator.compiled.rng import normal
from headroom.simulator.generation.compiled import memory, sequences
from headroom.simulator.generation.compiled.iteration_cost import add_to_sums, run_s
from headroom.simulator.generation.compiled.layout import (
    DECODES,
    IDLE,
    MIXED,
    NONE,
    Column,
    Cost,
    Plant,
    Real,
    Request,
    Row,
)
from headroom.simulator.generation.compiled.state import TokenState

LEAST_FACTOR = 0.2


@compiled
def commit(p: TokenState, row: int, steps: int) -> None:
    """Record that the next iterations of the present run have ended."""
    if steps == 0:
        return
    r, counters = p.rows[row], p.counters[row]
    seconds, decoding = run_s(p, row, steps), r[Row.DECODING]
    add_to_sums(p, row, steps)
    if r[Row.DOING] == DECODES:
        memory.take(p, row, sequences.growth(p, row, steps))
    r[Row.STEPS] += steps
    r[Row.CONTEXTS] += decoding * steps
    r[Row.LEFT] -= steps
    p.reals[row, Real.BEGAN] += seconds
    p.whole[Plant.ITERATIONS] += steps
    counters[Column.ITERATIONS] += steps
    counters[Column.ENGINE_S] += seconds
    counters[Column.GENERATED] += decoding * steps
    counters[Column.SEQUENCE_STEPS] += decoding * steps
    counters[Column.SEQUENCE_S] += decoding * seconds
    counters[Column.COMPUTED] += r[Row.PROMPTS]


@compiled
def _chunk(p: TokenState, row: int, request: int, tokens: int) -> None:
    """Add tokens of a prompt, for which there is memory, to the iteration."""
    r, done = p.rows[row], p.requests[request, Request.COMPUTED]
    r[Row.PROMPTS] += tokens
    p.reals[row, Real.PRODUCTS] += tokens * (done + tokens / 2.0)
    p.requests[request, Request.COMPUTED] = done + tokens
    if (
        done + tokens
        == p.requests[request, Request.PROMPT] + p.requests[request, Request.GENERATED]
    ):
        p.fills[row, r[Row.FILLED]] = request
        r[Row.FILLED] += 1
        r[Row.PARTIAL] = NONE
    else:
        r[Row.PARTIAL] = request


@compiled
def _continue(p: TokenState, row: int) -> bool:
    """Continue the prompt that is partly computed; False: it was preempted."""
    r = p.rows[row]
    request = r[Row.PARTIAL]
    if request == NONE:
        return True
    done = p.requests[request, Request.COMPUTED]
    room = p.whole[Plant.BUDGET] - r[Row.DECODING]
    tokens = min(
        room, p.requests[request, Request.PROMPT] + p.requests[request, Request.GENERATED] - done
    )
    blocks = memory.blocks_of(p, done + tokens) - memory.blocks_of(p, done)
    if blocks > memory.free(p, row):
        sequences.preempt(p, row)
        return False
    memory.take(p, row, blocks)
    _chunk(p, row, request, tokens)
    return True


@compiled
def _admit(p: TokenState, row: int) -> None:
    """Admit waiting requests in order while tokens, seats and memory are left."""
    r = p.rows[row]
    while r[Row.WAITING] > 0 and r[Row.PARTIAL] == NONE:
        room = p.whole[Plant.BUDGET] - r[Row.DECODING] - r[Row.PROMPTS]
        if room <= 0 or r[Row.DECODING] + r[Row.FILLED] >= p.whole[Plant.SEATS]:
            return
        request = r[Row.HEAD]
        count = memory.hits(p, row, request)
        found = count * p.whole[Plant.UNIT] * p.whole[Plant.BLOCK]
        known = p.requests[request, Request.PROMPT] + p.requests[request, Request.GENERATED]
        tokens = min(room, known - found)
        shared = count * p.whole[Plant.UNIT]
        needed = memory.blocks_of(p, known) - shared + memory.revived(p, row, request, count)
        if needed > memory.free(p, row):
            return
        own = memory.blocks_of(p, found + tokens) - shared
        sequences.dequeue(p, row)
        memory.adopt(p, row, request, count)
        memory.take(p, row, own)
        p.whole[Plant.ADMITTED] += 1
        p.requests[request, Request.ADMITTED] = p.whole[Plant.ADMITTED]
        p.requests[request, Request.COMPUTED] = found
        p.counters[row, Column.CACHED] += found
        _chunk(p, row, request, tokens)


@compiled
def plan(p: TokenState, row: int, now_s: float) -> None:
    """Choose the next iteration, or the next run of decodes."""
    r, x = p.rows[row], p.reals[row]
    p.whole[Plant.EVENTS] += 1
    r[Row.PROMPTS] = r[Row.FILLED] = 0
    x[Real.PRODUCTS] = 0.0
    preempted = False
    reserved = sequences.growth(p, row, 1)
    while reserved > memory.free(p, row):
        sequences.preempt(p, row)
        preempted = True
        reserved = sequences.growth(p, row, 1)
    memory.take(p, row, reserved)  # decodes come first
    if not _continue(p, row):
        preempted = True
    if not preempted or r[Row.DECODING] == 0:
        _admit(p, row)
    x[Real.BEGAN] = now_s
    if r[Row.DECODING] == 0 and r[Row.PROMPTS] == 0:
        r[Row.DOING] = IDLE
        return
    steps = 1
    if r[Row.PROMPTS] > 0:
        r[Row.DOING] = MIXED
    else:
        r[Row.DOING] = DECODES
        r[Row.USED] -= reserved  # `commit` takes them
        if not preempted:
            steps = _longest(p, row)
    r[Row.LEFT] = steps
    noise = p.cost[Cost.CV] * normal(p.random) / math.sqrt(steps) if p.cost[Cost.CV] > 0 else 0.0
    x[Real.FACTOR] = max(LEAST_FACTOR, 1.0 + noise)
    x[Real.ENDS] = now_s + run_s(p, row, steps)


@compiled
def _longest(p: TokenState, row: int) -> int:
    """Return the iterations until the next sequence ends or memory lacks; at least 1."""
    r = p.rows[row]
    steps = p.requests[p.heap[row, 0], Request.ENDS_STEP] - r[Row.STEPS]
    room = memory.free(p, row)
    if sequences.growth(p, row, steps) <= room:
        return steps
    steps = (room // r[Row.DECODING]) * p.whole[Plant.BLOCK]
    while sequences.growth(p, row, steps + 1) <= room:
        steps += 1
    return steps


@compiled
def end(p: TokenState, row: int) -> None:
    """End the present iteration or run, and plan the next."""
    r = p.rows[row]
    now_s = p.reals[row, Real.ENDS]
    commit(p, row, r[Row.LEFT])
    while r[Row.DECODING] > 0 and p.requests[p.heap[row, 0], Request.ENDS_STEP] <= r[Row.STEPS]:
        sequences.ended(p, row, sequences.end_decoding(p, row, 0), now_s)
    for index in range(r[Row.FILLED]):
        request = p.fills[row, index]
        memory.publish(p, row, request)
        sequences.first_token(p, row, request, now_s)
        if p.requests[request, Request.GENERATED] >= p.requests[request, Request.OUTPUT]:
            tokens = (
                p.requests[request, Request.PROMPT] + p.requests[request, Request.GENERATED] - 1
            )
            memory.release(p, row, request, tokens)
            sequences.ended(p, row, request, now_s)
        else:
            sequences.begin_decoding(p, row, request)
    plan(p, row, now_s)
