"""Adds the counts of replicas since the last time to the ledger of an engine's cost. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from headroom.scaling.frozen import replace
from headroom.scaling.generation.counters.token_increase import Increase
from headroom.scaling.generation.learning.iteration_cost import intervals
from headroom.scaling.generation.learning.iteration_cost.doubt import (
    LEAST,
    columns_at_load,
    error_at_load,
)
from headroom.scaling.generation.learning.iteration_cost.ledger import Ledger
from headroom.scaling.generation.learning.iteration_cost.ratios import Ratios
from headroom.scaling.values.tokens import IterationCost, RequestShape


class Taught(NamedTuple):
    """The ledger afterwards, and the cost that follows from it."""

    ledger: Ledger
    source: str | None
    """Source of the increases; empty if they do not suffice, None if there were none."""
    cost: IterationCost | None
    error: float = LEAST
    """Standard error of the time of a request at full load, as a share of it."""


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
    `level` how many replicas get requests in turn. Before `enough` load was seen, of mixtures
    of experts that are as likely the slowest counts.
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
    at_load = None if shape is None else columns_at_load(shape)
    estimate = ledger.fit(ratios, prior, None if enough else at_load)
    if estimate is None:
        return Taught(ledger, source, prior)
    error = LEAST if at_load is None else max(LEAST, error_at_load(estimate, at_load))
    return Taught(replace(ledger, share=estimate.share), source, estimate.cost(ratios), error)
