"""The sequences of a replica: a heap of those that decode, and the queue of those that wait."""

from __future__ import annotations

from headroom.simulator.compiled.compiling import compiled
from headroom.simulator.generation.compiled import memory
from headroom.simulator.generation.compiled.layout import (
    END_AT,
    FIRST_AT,
    NONE,
    OUTPUT_AT,
    PROMPT_AT,
    TOKEN_AT,
    Bound,
    Column,
    Floats,
    Plant,
    Request,
    Row,
    Time,
)
from headroom.simulator.generation.compiled.state import TokenState


@compiled
def _sift_up(p: TokenState, row: int, place: int) -> None:
    heap, key = p.heap[row], p.requests[:, Request.ENDS_STEP]
    request = heap[place]
    while place > 0:
        parent = (place - 1) >> 1
        if key[heap[parent]] <= key[request]:
            break
        heap[place] = heap[parent]
        place = parent
    heap[place] = request


@compiled
def _sift_down(p: TokenState, row: int, place: int, size: int) -> None:
    heap, key = p.heap[row], p.requests[:, Request.ENDS_STEP]
    request = heap[place]
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and key[heap[child + 1]] < key[heap[child]]:
            child += 1
        if key[heap[child]] >= key[request]:
            break
        heap[place] = heap[child]
        place = child
    heap[place] = request


@compiled
def begin_decoding(p: TokenState, row: int, request: int) -> None:
    """Add a sequence whose prompt is computed, with at least one token still to generate."""
    r = p.rows[row]
    context = p.requests[request, Request.PROMPT] + p.requests[request, Request.GENERATED]
    p.requests[request, Request.BASE] = context - r[Row.STEPS]
    p.requests[request, Request.ENDS_STEP] = (
        r[Row.STEPS] + p.requests[request, Request.OUTPUT] - p.requests[request, Request.GENERATED]
    )
    p.residues[row, p.requests[request, Request.BASE] % p.whole[Plant.BLOCK]] += 1
    r[Row.CONTEXTS] += context
    p.heap[row, r[Row.DECODING]] = request
    _sift_up(p, row, r[Row.DECODING])
    r[Row.DECODING] += 1


@compiled
def end_decoding(p: TokenState, row: int, place: int) -> int:
    """Take the sequence at this place of the heap out, free its memory and return it."""
    r = p.rows[row]
    request = p.heap[row, place]
    last = r[Row.DECODING] - 1
    r[Row.DECODING] = last
    if place != last:
        p.heap[row, place] = p.heap[row, last]
        _sift_down(p, row, place, last)
        _sift_up(p, row, place)
    context = p.requests[request, Request.BASE] + r[Row.STEPS]
    p.requests[request, Request.GENERATED] = context - p.requests[request, Request.PROMPT]
    p.residues[row, p.requests[request, Request.BASE] % p.whole[Plant.BLOCK]] -= 1
    r[Row.CONTEXTS] -= context
    memory.release(p, row, request, context - 1)
    return request


@compiled
def growth(p: TokenState, row: int, steps: int) -> int:
    """Return the blocks that decoding sequences need for this many further steps.

    A sequence needs one whenever its context is 1 above a multiple of the block.
    """
    size = p.whole[Plant.BLOCK]
    blocks = (steps // size) * p.rows[row, Row.DECODING]
    at = (1 - p.rows[row, Row.STEPS]) % size
    for step in range(steps % size):
        blocks += p.residues[row, (at - step) % size]
    return blocks


@compiled
def enqueue(p: TokenState, row: int, request: int) -> None:
    """Append to the queue."""
    r = p.rows[row]
    p.requests[request, Request.FOLLOWING] = NONE
    if r[Row.WAITING] == 0:
        r[Row.HEAD] = request
    else:
        p.requests[r[Row.TAIL], Request.FOLLOWING] = request
    r[Row.TAIL] = request
    r[Row.WAITING] += 1
    r[Row.WAITING_TOKENS] += (
        p.requests[request, Request.PROMPT] + p.requests[request, Request.GENERATED]
    )


@compiled
def dequeue(p: TokenState, row: int) -> int:
    """Take and return the head of the queue."""
    r = p.rows[row]
    request = r[Row.HEAD]
    r[Row.HEAD] = p.requests[request, Request.FOLLOWING]
    r[Row.WAITING] -= 1
    r[Row.WAITING_TOKENS] -= (
        p.requests[request, Request.PROMPT] + p.requests[request, Request.GENERATED]
    )
    return request


@compiled
def preempt(p: TokenState, row: int) -> None:
    """Put the sequence that was admitted last back to the head of the queue; nothing is kept."""
    r = p.rows[row]
    request = r[Row.PARTIAL]
    if request != NONE:
        r[Row.PARTIAL] = NONE
        memory.release(p, row, request, p.requests[request, Request.COMPUTED])
    else:
        latest = 0
        for place in range(1, r[Row.DECODING]):
            if (
                p.requests[p.heap[row, place], Request.ADMITTED]
                > p.requests[p.heap[row, latest], Request.ADMITTED]
            ):
                latest = place
        request = end_decoding(p, row, latest)
    p.requests[request, Request.PREEMPTED] += 1
    p.counters[row, Column.PREEMPTIONS] += 1
    p.requests[request, Request.FOLLOWING] = r[Row.HEAD] if r[Row.WAITING] > 0 else NONE
    if r[Row.WAITING] == 0:
        r[Row.TAIL] = request
    r[Row.HEAD] = request
    r[Row.WAITING] += 1
    r[Row.WAITING_TOKENS] += (
        p.requests[request, Request.PROMPT] + p.requests[request, Request.GENERATED]
    )


@compiled
def _observe(p: TokenState, row: int, start: int, bounds: Floats, value: float) -> None:
    index = 0
    while bounds[index] < value:
        index += 1
    p.counters[row, start + index] += 1


@compiled
def first_token(p: TokenState, row: int, request: int, now_s: float) -> None:
    """Record the end of a prompt: one token."""
    p.requests[request, Request.GENERATED] += 1
    p.counters[row, Column.GENERATED] += 1
    if (
        p.times[request, Time.FIRST] != p.times[request, Time.FIRST]
    ):  # nan: not its second prompt after preemption
        p.times[request, Time.FIRST] = now_s
        _observe(p, row, FIRST_AT, p.bounds[Bound.FIRST], now_s - p.times[request, Time.ARRIVED])


@compiled
def ended(p: TokenState, row: int, request: int, now_s: float) -> None:
    """Record the end of a request."""
    p.times[request, Time.END] = now_s
    p.rows[row, Row.IN_FLIGHT] -= 1
    counters = p.counters[row]
    counters[Column.ENDED] += 1
    counters[Column.PROMPT_SUM] += p.requests[request, Request.PROMPT]
    counters[Column.OUTPUT_SUM] += p.requests[request, Request.OUTPUT]
    _observe(p, row, END_AT, p.bounds[Bound.END], now_s - p.times[request, Time.ARRIVED])
    _observe(p, row, PROMPT_AT, p.bounds[Bound.LENGTH], float(p.requests[request, Request.PROMPT]))
    _observe(p, row, OUTPUT_AT, p.bounds[Bound.LENGTH], float(p.requests[request, Request.OUTPUT]))
    if p.requests[request, Request.OUTPUT] > 1:
        seconds = (now_s - p.times[request, Time.FIRST]) / (p.requests[request, Request.OUTPUT] - 1)
        _observe(p, row, TOKEN_AT, p.bounds[Bound.TOKEN], seconds)
