"""The time of iterations in closed form, and the exact sums from which their cost can be learned.

An iteration takes a + b P + d D + c KV + e X, for P prompt tokens, D decoding sequences, KV tokens
of context and X products of prompt tokens and their contexts. A run of k plain decodes takes
k (a + d D) + c (k KV + D k (k-1) / 2).
"""

from __future__ import annotations

import math

from headroom.simulator.compiled.compiling import compiled
from headroom.simulator.generation.compiled.layout import FIRST_AT, Column, Cost, Real, Row
from headroom.simulator.generation.compiled.state import TokenState


@compiled
def plain_s(p: TokenState, sequences_: int, prompts: int) -> float:
    """Return an iteration's time without contexts and products, before noise."""
    cost = p.cost
    seconds: float = (
        cost[Cost.FIXED] + cost[Cost.SEQUENCE] * sequences_ + cost[Cost.PROMPT] * prompts
    )
    if cost[Cost.EXPERTS] > 0.0:
        untouched = (1.0 - cost[Cost.SHARE]) ** (sequences_ + prompts)
        seconds += cost[Cost.EXPERTS] * (1.0 - untouched)
    return seconds


@compiled
def run_s(p: TokenState, row: int, steps: int) -> float:
    """Return the time of the next iterations of the present run."""
    r, x = p.rows[row], p.reals[row]
    decoding = r[Row.DECODING]
    step_s = plain_s(p, decoding, r[Row.PROMPTS])
    contexts = steps * r[Row.CONTEXTS] + decoding * (steps * (steps - 1)) / 2
    without_products_s = steps * step_s + p.cost[Cost.CONTEXT] * contexts
    seconds: float = without_products_s + p.cost[Cost.PRODUCT] * x[Real.PRODUCTS]
    factor: float = x[Real.FACTOR]
    return factor * seconds


@compiled
def steps_within(p: TokenState, row: int, seconds: float) -> int:
    """Return how many iterations of a run of decodes end within this many seconds."""
    r = p.rows[row]
    decoding, slope = r[Row.DECODING], p.cost[Cost.CONTEXT]
    square = slope * decoding / 2.0
    linear = plain_s(p, decoding, 0) + slope * r[Row.CONTEXTS] - square
    wanted = seconds / p.reals[row, Real.FACTOR]
    steps = int(2.0 * wanted / (linear + math.sqrt(linear * linear + 4.0 * square * wanted)))
    while steps > 0 and run_s(p, row, steps) > seconds:
        steps -= 1
    while run_s(p, row, steps + 1) <= seconds:
        steps += 1
    return steps


@compiled
def add_to_sums(p: TokenState, row: int, steps: int) -> None:
    """Add iterations to the exact sums, in the order 1, P, D, KV, X."""
    r, s = p.rows[row], p.counters[row, Column.SUMS : FIRST_AT]
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
    each = plain_s(p, r[Row.DECODING], r[Row.PROMPTS]) + p.cost[Cost.PRODUCT] * products
    time = factor * (k * each + p.cost[Cost.CONTEXT] * first)
    s[15] += time
    s[16] += prompts * time
    s[17] += d * time
    s[18] += factor * (each * first + p.cost[Cost.CONTEXT] * second)
    s[19] += products * time
