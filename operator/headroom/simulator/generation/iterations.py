"""The iterations of a replica: vLLM v1's policy, with runs of plain decodes in closed form.

Policy (vLLM 0.33 v1/core/sched/scheduler.py, first come first served): every decoding sequence
gets a token; then a prompt that is partly computed continues; then waiting requests are admitted
in order while the iteration has tokens, the replica seats and memory left: for the whole sequence,
not only its first chunk (`scheduler_reserve_full_isl`, the default). If a running sequence finds no
memory, the one admitted last is preempted and computed again later; nothing is admitted in such an
iteration.

While all sequences decode and none can be admitted, k iterations take
k (a + d D) + c (k KV + D k (k-1) / 2): one run, up to the next end, arrival or lack of memory.
"""

from __future__ import annotations

import math

from headroom.simulator.compiled.compiling import compiled
from headroom.simulator.compiled.rng import normal
from headroom.simulator.generation import memory, sequences
from headroom.simulator.generation.layout import (
    DECODES,
    IDLE,
    MIXED,
    NONE,
    Ask,
    Column,
    Cost,
    Real,
    Row,
    Whole,
)
from headroom.simulator.generation.state import TokenState

LEAST_FACTOR = 0.2


@compiled
def _plain_s(p: TokenState, sequences_: int, prompts: int) -> float:
    """Return an iteration's time without contexts and products, before noise."""
    cost = p.cost
    seconds = cost[Cost.FIXED] + cost[Cost.SEQUENCE] * sequences_ + cost[Cost.PROMPT] * prompts
    if cost[Cost.EXPERTS] > 0.0:
        untouched = (1.0 - cost[Cost.SHARE]) ** (sequences_ + prompts)
        seconds += cost[Cost.EXPERTS] * (1.0 - untouched)
    return seconds


@compiled
def run_s(p: TokenState, row: int, steps: int) -> float:
    """Return the time of the next iterations of the present run."""
    r, x = p.rows[row], p.reals[row]
    decoding = r[Row.DECODING]
    seconds = _plain_s(p, decoding, r[Row.PROMPTS])
    contexts = steps * r[Row.CONTEXTS] + decoding * (steps * (steps - 1)) / 2
    seconds = steps * seconds + p.cost[Cost.CONTEXT] * contexts
    return x[Real.FACTOR] * (seconds + p.cost[Cost.PRODUCT] * x[Real.PRODUCTS])


@compiled
def steps_within(p: TokenState, row: int, seconds: float) -> int:
    """Return how many iterations of a run of decodes end within so many seconds."""
    r = p.rows[row]
    decoding, slope = r[Row.DECODING], p.cost[Cost.CONTEXT]
    square = slope * decoding / 2.0
    linear = _plain_s(p, decoding, 0) + slope * r[Row.CONTEXTS] - square
    wanted = seconds / p.reals[row, Real.FACTOR]
    steps = int(2.0 * wanted / (linear + math.sqrt(linear * linear + 4.0 * square * wanted)))
    while steps > 0 and run_s(p, row, steps) > seconds:
        steps -= 1
    while run_s(p, row, steps + 1) <= seconds:
        steps += 1
    return steps


@compiled
def _sum(p: TokenState, row: int, steps: int) -> None:
    """Add iterations to the exact sums, in the order 1, P, D, KV, X."""
    r, s = p.rows[row], p.counters[row, Column.SUMS : Column.SUMS + 20]
    k, d, kv = float(steps), float(r[Row.DECODING]), float(r[Row.CONTEXTS])
    prompts, products = float(r[Row.PROMPTS]), p.reals[row, Real.PRODUCTS]
    pairs = k * (k - 1.0) / 2.0
    first = k * kv + d * pairs
    second = k * kv * kv + 2.0 * kv * d * pairs + d * d * pairs * (2.0 * k - 1.0) / 3.0
    s[0] += k
    s[1] += prompts
    s[2] += k * d
    s[3] += first
    s[4] += products
    s[5] += prompts * prompts
    s[6] += prompts * d
    s[7] += prompts * kv
    s[8] += prompts * products
    s[9] += k * d * d
    s[10] += d * first
    s[11] += d * products
    s[12] += second
    s[13] += kv * products
    s[14] += products * products
    factor = p.reals[row, Real.FACTOR]
    each = _plain_s(p, r[Row.DECODING], r[Row.PROMPTS]) + p.cost[Cost.PRODUCT] * products
    time = factor * (k * each + p.cost[Cost.CONTEXT] * first)
    s[15] += time
    s[16] += prompts * time
    s[17] += d * time
    s[18] += factor * (each * first + p.cost[Cost.CONTEXT] * second)
    s[19] += products * time


@compiled
def commit(p: TokenState, row: int, steps: int) -> None:
    """Record that the next iterations of the present run have ended."""
    if steps == 0:
        return
    r, counters = p.rows[row], p.counters[row]
    seconds, decoding = run_s(p, row, steps), r[Row.DECODING]
    _sum(p, row, steps)
    if r[Row.DOING] == DECODES:
        memory.take(p, row, sequences.growth(p, row, steps))
    r[Row.STEPS] += steps
    r[Row.CONTEXTS] += decoding * steps
    r[Row.LEFT] -= steps
    p.reals[row, Real.BEGAN] += seconds
    p.whole[Whole.ITERATIONS] += steps
    counters[Column.ITERATIONS] += steps
    counters[Column.ENGINE_S] += seconds
    counters[Column.GENERATED] += decoding * steps
    counters[Column.SEQUENCE_STEPS] += decoding * steps
    counters[Column.SEQUENCE_S] += decoding * seconds
    counters[Column.COMPUTED] += r[Row.PROMPTS]


@compiled
def _chunk(p: TokenState, row: int, request: int, tokens: int) -> None:
    """Add tokens of a prompt, for which there is memory, to the iteration."""
    r, done = p.rows[row], p.requests[request, Ask.COMPUTED]
    r[Row.PROMPTS] += tokens
    p.reals[row, Real.PRODUCTS] += tokens * (done + tokens / 2.0)
    p.requests[request, Ask.COMPUTED] = done + tokens
    if done + tokens == p.requests[request, Ask.PROMPT] + p.requests[request, Ask.GENERATED]:
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
    done = p.requests[request, Ask.COMPUTED]
    room = p.whole[Whole.BUDGET] - r[Row.DECODING]
    tokens = min(room, p.requests[request, Ask.PROMPT] + p.requests[request, Ask.GENERATED] - done)
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
        room = p.whole[Whole.BUDGET] - r[Row.DECODING] - r[Row.PROMPTS]
        if room <= 0 or r[Row.DECODING] + r[Row.FILLED] >= p.whole[Whole.SEATS]:
            return
        request = r[Row.HEAD]
        count = memory.hits(p, row, request)
        found = count * p.whole[Whole.UNIT] * p.whole[Whole.BLOCK]
        known = p.requests[request, Ask.PROMPT] + p.requests[request, Ask.GENERATED]
        tokens = min(room, known - found)
        shared = count * p.whole[Whole.UNIT]
        needed = memory.blocks_of(p, known) - shared + memory.revived(p, row, request, count)
        if needed > memory.free(p, row):
            return
        own = memory.blocks_of(p, found + tokens) - shared
        sequences.dequeue(p, row)
        memory.adopt(p, row, request, count)
        memory.take(p, row, own)
        p.whole[Whole.ADMITTED] += 1
        p.requests[request, Ask.ADMITTED] = p.whole[Whole.ADMITTED]
        p.requests[request, Ask.COMPUTED] = found
        p.counters[row, Column.CACHED] += found
        _chunk(p, row, request, tokens)


@compiled
def plan(p: TokenState, row: int, now_s: float) -> None:
    """Choose the next iteration, or the next run of decodes."""
    r, x = p.rows[row], p.reals[row]
    p.whole[Whole.EVENTS] += 1
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
    steps = p.requests[p.heap[row, 0], Ask.ENDS_STEP] - r[Row.STEPS]
    room = memory.free(p, row)
    if sequences.growth(p, row, steps) <= room:
        return steps
    steps = (room // r[Row.DECODING]) * p.whole[Whole.BLOCK]
    while sequences.growth(p, row, steps + 1) <= room:
        steps += 1
    return steps


@compiled
def end(p: TokenState, row: int) -> None:
    """End the present iteration or run, and plan the next."""
    r = p.rows[row]
    now_s = p.reals[row, Real.ENDS]
    commit(p, row, r[Row.LEFT])
    while r[Row.DECODING] > 0 and p.requests[p.heap[row, 0], Ask.ENDS_STEP] <= r[Row.STEPS]:
        sequences.ended(p, row, sequences.end_decoding(p, row, 0), now_s)
    for index in range(r[Row.FILLED]):
        request = p.fills[row, index]
        memory.publish(p, row, request)
        sequences.first_token(p, row, request, now_s)
        if p.requests[request, Ask.GENERATED] >= p.requests[request, Ask.OUTPUT]:
            tokens = p.requests[request, Ask.PROMPT] + p.requests[request, Ask.GENERATED] - 1
            memory.release(p, row, request, tokens)
            sequences.ended(p, row, request, now_s)
        else:
            sequences.begin_decoding(p, row, request)
    plan(p, row, now_s)
