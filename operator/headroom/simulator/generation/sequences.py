"""The sequences of a replica: a heap of those that decode, and the queue of those that wait."""

from __future__ import annotations

from headroom.simulator.compiling import compiled
from headroom.simulator.generation import memory
from headroom.simulator.generation.state import (
    END_AT,
    FIRST_AT,
    NONE,
    OUTPUT_AT,
    PROMPT_AT,
    TOKEN_AT,
    Column,
    Floats,
    Row,
    TokenState,
    Whole,
)


@compiled
def _sift_up(p: TokenState, row: int, place: int) -> None:
    heap, key = p.heap[row], p.ends_step
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
    heap, key = p.heap[row], p.ends_step
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
    context = p.prompt[request] + p.generated[request]
    p.base[request] = context - r[Row.STEPS]
    p.ends_step[request] = r[Row.STEPS] + p.output[request] - p.generated[request]
    p.residues[row, p.base[request] % p.whole[Whole.BLOCK]] += 1
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
    context = p.base[request] + r[Row.STEPS]
    p.generated[request] = context - p.prompt[request]
    p.residues[row, p.base[request] % p.whole[Whole.BLOCK]] -= 1
    r[Row.CONTEXTS] -= context
    memory.release(p, row, request, context - 1)
    return request


@compiled
def growth(p: TokenState, row: int, steps: int) -> int:
    """Return the blocks that decoding sequences need for so many further steps.

    A sequence needs one whenever its context is 1 above a multiple of the block.
    """
    size = p.whole[Whole.BLOCK]
    blocks = (steps // size) * p.rows[row, Row.DECODING]
    at = (1 - p.rows[row, Row.STEPS]) % size
    for step in range(steps % size):
        blocks += p.residues[row, (at - step) % size]
    return blocks


@compiled
def enqueue(p: TokenState, row: int, request: int) -> None:
    """Append to the queue."""
    r = p.rows[row]
    p.following[request] = NONE
    if r[Row.WAITING] == 0:
        r[Row.HEAD] = request
    else:
        p.following[r[Row.TAIL]] = request
    r[Row.TAIL] = request
    r[Row.WAITING] += 1
    r[Row.WAITING_TOKENS] += p.prompt[request] + p.generated[request]


@compiled
def dequeue(p: TokenState, row: int) -> int:
    """Take and return the head of the queue."""
    r = p.rows[row]
    request = r[Row.HEAD]
    r[Row.HEAD] = p.following[request]
    r[Row.WAITING] -= 1
    r[Row.WAITING_TOKENS] -= p.prompt[request] + p.generated[request]
    return request


@compiled
def preempt(p: TokenState, row: int) -> None:
    """Put the sequence that was admitted last back to the head of the queue; nothing is kept."""
    r = p.rows[row]
    request = r[Row.PARTIAL]
    if request != NONE:
        r[Row.PARTIAL] = NONE
        memory.release(p, row, request, p.computed[request])
    else:
        latest = 0
        for place in range(1, r[Row.DECODING]):
            if p.admitted[p.heap[row, place]] > p.admitted[p.heap[row, latest]]:
                latest = place
        request = end_decoding(p, row, latest)
    p.preempted[request] += 1
    p.counters[row, Column.PREEMPTIONS] += 1
    p.following[request] = r[Row.HEAD] if r[Row.WAITING] > 0 else NONE
    if r[Row.WAITING] == 0:
        r[Row.TAIL] = request
    r[Row.HEAD] = request
    r[Row.WAITING] += 1
    r[Row.WAITING_TOKENS] += p.prompt[request] + p.generated[request]


@compiled
def _observe(p: TokenState, row: int, start: int, bounds: Floats, value: float) -> None:
    index = 0
    while bounds[index] < value:
        index += 1
    p.counters[row, start + index] += 1


@compiled
def first_token(p: TokenState, row: int, request: int, now_s: float) -> None:
    """Record the end of a prompt: one token."""
    p.generated[request] += 1
    p.counters[row, Column.GENERATED] += 1
    if p.first_s[request] != p.first_s[request]:  # nan: not its second prompt after preemption
        p.first_s[request] = now_s
        _observe(p, row, FIRST_AT, p.first_bounds, now_s - p.arrival_s[request])


@compiled
def ended(p: TokenState, row: int, request: int, now_s: float) -> None:
    """Record the end of a request."""
    p.end_s[request] = now_s
    p.rows[row, Row.IN_FLIGHT] -= 1
    counters = p.counters[row]
    counters[Column.ENDED] += 1
    counters[Column.PROMPT_SUM] += p.prompt[request]
    counters[Column.OUTPUT_SUM] += p.output[request]
    _observe(p, row, END_AT, p.end_bounds, now_s - p.arrival_s[request])
    _observe(p, row, PROMPT_AT, p.length_bounds, float(p.prompt[request]))
    _observe(p, row, OUTPUT_AT, p.length_bounds, float(p.output[request]))
    if p.output[request] > 1:
        seconds = (now_s - p.first_s[request]) / (p.output[request] - 1)
        _observe(p, row, TOKEN_AT, p.token_bounds, seconds)
