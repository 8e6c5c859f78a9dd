"""The page of each generating pod as a row of one table. Pure.

A counter that a server does not report is NaN, so that missing never reads as zero.

Histograms are counted on one grid: during a rollout some servers have other bounds, and one that
shows no histogram before its first request has counted none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from struct import Struct

import numpy as np

from headroom.scaling.mathematics.arrays import Vector
from headroom.scaling.values.latency_counts import LatencyCounts
from headroom.scaling.values.observation import PodSample
from headroom.scaling.values.tokens import CostSums, GenerationSample
from headroom.scaling.windows.histogram import rebinned

Bounds = tuple[tuple[float, ...], ...]
Counts = Sequence[Sequence[float]]
"""Counts of histograms, cumulative per bound."""
SUMS = 20
"""15 values of X'X and 5 of X'y."""


class Count(IntEnum):
    """The columns of the table; sums of the cost and the histograms follow."""

    ARRIVALS = 0
    MISSED = 1
    """Without a first token."""
    ITERATIONS = 2
    ENGINE_S = 3
    COMPUTED = 4
    CACHED = 5
    GENERATED = 6
    STEPS = 7
    SEQUENCE_S = 8
    DRAFTS = 9
    ACCEPTED = 10
    PROMPT_TOTAL = 11
    OUTPUT_TOTAL = 12
    PREEMPTIONS = 13
    GIVEN_UP = 14
    PROMPT_S = 15
    TIMED_PROMPTS = 16


FIRST_SUM = len(Count)
FIRST_BUCKET = FIRST_SUM + SUMS
NAN = math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The bounds of the four histograms; empty where a server has none."""

    prompt: tuple[float, ...] = ()
    output: tuple[float, ...] = ()
    first_token: tuple[float, ...] = ()
    output_token: tuple[float, ...] = ()

    @property
    def bounds(self) -> Bounds:
        """Bounds of all four, in order."""
        return self.prompt, self.output, self.first_token, self.output_token

    def of(self, pages: Sequence[GenerationSample]) -> Grid:
        """Return the grid for these pages: the known bounds of a histogram while any page has them.

        Otherwise those of the first page that shows the histogram.
        """
        known = self.bounds
        if all(known) and _histograms(pages[0])[0] == known:
            return self
        shown = zip(*(_histograms(page)[0] for page in pages), strict=True)
        found = [_bounds(had, every) for had, every in zip(known, shown, strict=True)]
        return Grid(prompt=found[0], output=found[1], first_token=found[2], output_token=found[3])

    @property
    def buckets(self) -> int:
        """Number of buckets of all four."""
        return sum(map(len, self.bounds))

    def slices(self) -> tuple[slice, slice, slice, slice]:
        """Return where each histogram lies in a row."""
        found, start = [], FIRST_BUCKET
        for bounds in self.bounds:
            found.append(slice(start, start + len(bounds)))
            start += len(bounds)
        return found[0], found[1], found[2], found[3]


def _histograms(page: GenerationSample) -> tuple[Bounds, Counts]:
    """Return the bounds and the counts of the four histograms; empty where there is none."""
    prompts, outputs = page.prompt_lengths, page.output_lengths
    firsts, tokens = page.first_token, page.output_token
    return (
        prompts.bounds if prompts else (),
        outputs.bounds if outputs else (),
        firsts.bounds_s if firsts else (),
        tokens.bounds_s if tokens else (),
    ), (
        prompts.counts if prompts else (),
        outputs.counts if outputs else (),
        firsts.counts if firsts else (),
        tokens.counts if tokens else (),
    )


def _bounds(known: tuple[float, ...], shown: Sequence[tuple[float, ...]]) -> tuple[float, ...]:
    """Return the bounds to count on: the known ones, or the first that are shown in their place."""
    if known and known in shown:
        return known
    return next((bounds for bounds in shown if bounds), known)


def _on_bounds(
    own: tuple[float, ...], counts: Sequence[float], bounds: tuple[float, ...]
) -> Sequence[float]:
    """Return the counts on these bounds, in tokens or in seconds alike; zeros where there are none.

    Whole requests, so that sums over ticks stay exact.
    """
    if own == bounds:
        return counts
    found = rebinned(LatencyCounts(bounds_s=own, counts=tuple(counts)), bounds).counts
    return [math.floor(count) for count in found]


def table_of(samples: Sequence[PodSample], grid: Grid) -> tuple[list[str], Vector]:
    """Return the pods, and of each time, context and waiting tokens, and counters on this grid.

    [pods, GAUGES + counters]. Packed by `struct`, each histogram alone: nothing is copied into a
    longer tuple first.
    """
    bounds = grid.bounds
    packs = [Struct(f"{len(one)}d").pack for one in bounds]
    uids: list[str] = []
    parts: list[bytes] = []
    for one in samples:
        page = one.generation
        if page is None:
            continue
        own, counts = _histograms(page)
        if own != bounds:
            counts = list(map(_on_bounds, own, counts, bounds))
        uids.append(one.pod)
        parts += (
            _packed_counts(one, page),
            _NO_SUMS if page.cost_sums is None else _packed_sums(page.cost_sums),
        )
        parts += [pack(*each) for pack, each in zip(packs, counts, strict=True)]
    return uids, np.frombuffer(b"".join(parts)).reshape(len(uids), -1)


GAUGES = 3
_pack_counts, _pack_sums = Struct(f"{GAUGES + FIRST_SUM}d").pack, Struct(f"{SUMS}d").pack
_NO_SUMS = _pack_sums(*(NAN,) * SUMS)


def _packed_sums(sums: CostSums) -> bytes:
    return _pack_sums(*sums.xx, *sums.xy)


def _packed_counts(sample: PodSample, page: GenerationSample) -> bytes:
    prompts, outputs = page.prompt_lengths, page.output_lengths
    return _pack_counts(
        sample.time_s,
        NAN if page.context_tokens is None else page.context_tokens,
        NAN if page.waiting_tokens is None else page.waiting_tokens,
        sample.arrivals,
        sample.missed - page.given_up,
        NAN if page.iterations is None else page.iterations,
        NAN if page.engine_seconds is None else page.engine_seconds,
        NAN if page.computed_prompt_tokens is None else page.computed_prompt_tokens,
        NAN if page.cached_prompt_tokens is None else page.cached_prompt_tokens,
        NAN if page.generated_tokens is None else page.generated_tokens,
        NAN if page.sequence_steps is None else page.sequence_steps,
        NAN if page.sequence_seconds is None else page.sequence_seconds,
        NAN if page.drafts is None else page.drafts,
        NAN if page.accepted_tokens is None else page.accepted_tokens,
        NAN if prompts is None else prompts.total,
        NAN if outputs is None else outputs.total,
        NAN if page.preemptions is None else page.preemptions,
        page.given_up,
        NAN if page.prompt_seconds is None else page.prompt_seconds,
        NAN if page.timed_prompts is None else page.timed_prompts,
    )
