"""Teaches the ledger of an engine's cost what its replicas counted since the last time. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from headroom.scaling.frozen import replace
from headroom.scaling.generation.counters.token_increase import Increase
from headroom.scaling.generation.learning.doubt import LEAST, error_at_load, slower_at_load
from headroom.scaling.generation.learning.iteration_cost import intervals
from headroom.scaling.generation.learning.iteration_cost.ledger import Ledger
from headroom.scaling.generation.learning.iteration_cost.ratios import Ratios
from headroom.scaling.values.tokens import IterationCost, RequestShape


class Taught(NamedTuple):
    """The ledger afterwards, and the cost that follows from it."""

    ledger: Ledger
    source: str | None
    """What the increases were read from; empty if they do not suffice, None if there were none."""
    cost: IterationCost | None
    error: float = LEAST
    """Of the time of a request at full load, as a share of it."""


def teach(
    ledger: Ledger,
    increases: Sequence[tuple[float, Increase]],
    ready_since_s: Mapping[str, float],
    *,
    shape: RequestShape | None,
    elapsed_s: float,
    expected: IterationCost | None,
    prior: IterationCost | None,
    level: float,
    enough: bool = True,
) -> Taught:
    """Return the ledger with these increases, each with its time, of replicas that are warm.

    Exact sums are preferred to intervals. `expected` is the cost so far, `prior` a stated one, and
    `level` how many replicas get requests in turn. Before `enough` load was seen, a mixture of
    experts is taken only if a full replica is slower by it.
    """
    ratios = Ratios.of(prior)
    source: str | None = None
    warm = [intervals.warm(one, ready_since_s, then_s) for then_s, one in increases]
    exact = [found for found in map(intervals.exact_sums, warm) if found is not None]
    if exact and shape is not None:
        source, chunk = intervals.EXACT_SUMS, intervals.chunk_tokens(shape)
        for inner, products in exact:
            spent_s = elapsed_s / len(exact)
            ledger = ledger.observe_sums(inner, products, ratios, spent_s, chunk)
    elif warm and shape is not None:
        found, source = intervals.intervals_of(intervals.joined(warm), shape, level)
        ledger = ledger.observe(found, ratios, elapsed_s, expected)
    estimate = ledger.fit(ratios, prior)
    if estimate is None:
        return Taught(ledger, source, prior)
    if estimate.share > 0.0 and prior is None and shape is not None and not enough:
        straight = ledger.fit(ratios, bends=False)
        if straight is not None:
            estimate = slower_at_load(estimate, straight, shape, ratios)
    error = LEAST if shape is None else max(LEAST, error_at_load(estimate, shape, ratios))
    return Taught(replace(ledger, share=estimate.share), source, estimate.cost(ratios), error)
