"""The counters of generating pods: what each added since its scrape before, as one table.

A counter that a server does not report is NaN, so that missing never reads as zero. A process that
restarts counts from zero again; a new pod begins with its first scrape.

Histograms are counted on one grid: during a rollout some servers have other bounds, and one that
shows no histogram before its first request has counted none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from struct import Struct

import numpy as np
from numpy.typing import NDArray

from headroom.scaling.flags import all_set, any_set
from headroom.scaling.latency_counts import LatencyCounts
from headroom.scaling.token_values import CostSums, GenerationSample
from headroom.scaling.values import PodSample
from headroom.scaling.windows.histogram import rebinned

Vector = NDArray[np.float64]
Bounds = tuple[tuple[float, ...], ...]
Counts = Sequence[Sequence[float]]
"""Of histograms, cumulative per bound."""
SUMS = 20
"""15 values of X'X and 5 of X'y."""


class Count(IntEnum):
    """The columns of the table; sums of the cost and the histograms follow."""

    ARRIVALS = 0
    MISSED = 1
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


LONGEST_S = 60.0
"""Counters further apart are no mean of one load."""
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
        """Of all four, in order."""
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


@dataclass(frozen=True, kw_only=True, eq=False)
class Increase:
    """What pods added since their scrape before; one row per pod that was scraped again."""

    pods: tuple[str, ...] = ()
    elapsed_s: Vector = field(default_factory=lambda: np.zeros(0))
    added: Vector = field(default_factory=lambda: np.zeros((0, FIRST_BUCKET)))
    """Of each pod, without the histograms where these are `summed`."""
    summed: Vector | None = None
    """The histograms, over all pods."""
    context_tokens: Vector = field(default_factory=lambda: np.zeros(0))
    """Mean of the gauge at both ends; NaN where it is not reported."""
    waiting_tokens: Vector = field(default_factory=lambda: np.zeros(0))
    """By how much the prompt tokens that wait have grown; NaN where it is not reported."""

    @cached_property
    def total(self) -> Vector:
        """The sum over pods; NaN where no pod reports a counter, and of sums of the cost."""
        total: Vector = self.added.sum(axis=0)
        if not self._alike:
            unknown = self._unknown
            partly = np.flatnonzero(unknown.any(axis=0) & ~unknown.all(axis=0))
            total[partly] = np.nansum(self.added[:, partly], axis=0)
        return total if self.summed is None else np.concatenate((total, self.summed))

    @cached_property
    def _unknown(self) -> NDArray[np.bool_]:
        return np.isnan(self.added[:, :FIRST_SUM])

    @cached_property
    def _alike(self) -> bool:
        """Whether all pods report the same counters."""
        return not (len(self.pods) and any_set(self._unknown != self._unknown[0]))

    def reporting(self, count: Count) -> Increase:
        """Return the increase of the pods that report this counter; of all if none does."""
        known = ~self._unknown[:, count]
        return self if self._alike or not any_set(known) else self.chosen(known)

    def chosen(self, pods: NDArray[np.bool_]) -> Increase:
        """Return the increase of these pods, without histograms."""
        return Increase(
            pods=tuple(pod for pod, one in zip(self.pods, pods.tolist(), strict=True) if one),
            elapsed_s=self.elapsed_s[pods],
            added=self.added[pods][:, :FIRST_BUCKET],
            context_tokens=self.context_tokens[pods],
            waiting_tokens=self.waiting_tokens[pods],
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TokenCounters:
    """The newest scrape of each pod, also of those that are silent since."""

    grid: Grid = field(default_factory=Grid)
    rows: dict[str, int] = field(default_factory=dict)
    times_s: Vector = field(default_factory=lambda: np.zeros(0))
    scraped: Vector = field(default_factory=lambda: np.zeros((0, FIRST_BUCKET)))
    summed: Vector = field(default_factory=lambda: np.zeros(0))
    """The histograms, over all pods: of the same pods they are subtracted at once."""
    contexts: Vector = field(default_factory=lambda: np.zeros(0))
    """Gauge: tokens in the contexts of running sequences."""
    waiting: Vector = field(default_factory=lambda: np.zeros(0))
    """Gauge: prompt tokens that wait."""

    def advance(self, samples: Sequence[PodSample]) -> tuple[TokenCounters, Increase]:
        """Return the counters with these scrapes, and what they added; old scrapes add nothing.

        Of several scrapes of one pod the newest counts. A pod that is not among the samples keeps
        its last one for LONGEST_S, then begins again. So do all where the grid changes, because
        counts on another one cannot be subtracted.
        """
        pages = [one.generation for one in samples if one.generation is not None]
        if not pages:
            return self, Increase()
        grid = self.grid.of(pages)
        if grid != self.grid:
            return TokenCounters(grid=grid).advance(samples)
        if len({one.pod for one in samples}) < len(samples):
            samples = _newest(samples)
        uids, table = _table(samples, grid)
        known = uids == list(self.rows)
        latest = TokenCounters(
            grid=grid,
            rows=self.rows if known else {uid: number for number, uid in enumerate(uids)},
            times_s=table[:, 0],
            contexts=table[:, 1],
            waiting=table[:, 2],
            scraped=table[:, GAUGES:],
            summed=table[:, GAUGES + FIRST_BUCKET :].sum(axis=0),
        )
        if known and all_set(latest.times_s > self.times_s):
            return latest, _increase_of_all(uids, latest, self)
        return latest._with_silent(self), self._increase(latest, uids)

    def _with_silent(self, before: TokenCounters) -> TokenCounters:
        """Return the counters with the pods that were scraped before, and not long ago."""
        since_s = self.times_s.max() - LONGEST_S
        silent = [
            (uid, number)
            for uid, number in before.rows.items()
            if uid not in self.rows and before.times_s[number] >= since_s
        ]
        if not silent:
            return self
        uids, numbers = zip(*silent, strict=True)
        kept = before._chosen(np.array(numbers))
        scraped = np.concatenate((self.scraped, kept.scraped))
        return TokenCounters(
            grid=self.grid,
            rows={uid: number for number, uid in enumerate((*self.rows, *uids))},
            times_s=np.concatenate((self.times_s, kept.times_s)),
            scraped=scraped,
            summed=scraped[:, FIRST_BUCKET:].sum(axis=0),
            contexts=np.concatenate((self.contexts, kept.contexts)),
            waiting=np.concatenate((self.waiting, kept.waiting)),
        )

    def _increase(self, latest: TokenCounters, uids: Sequence[str]) -> Increase:
        """Return what the pods added that were known before and are scraped again."""
        again = [number for number, uid in enumerate(uids) if uid in self.rows]
        if not again:
            return Increase()
        before = [self.rows[uids[number]] for number in again]
        newer = latest.times_s[again] > self.times_s[before]
        after = np.array(again)[newer]
        return _increase(
            [uids[number] for number in after],
            latest._chosen(after),
            self._chosen(np.array(before)[newer]),
        )

    def _chosen(self, numbers: NDArray[np.intp]) -> TokenCounters:
        return TokenCounters(
            grid=self.grid,
            times_s=self.times_s[numbers],
            scraped=self.scraped[numbers],
            contexts=self.contexts[numbers],
            waiting=self.waiting[numbers],
        )


def _newest(samples: Sequence[PodSample]) -> list[PodSample]:
    """Return the newest sample of each pod; of equally old ones the last."""
    newest: dict[str, PodSample] = {}
    for one in samples:
        before = newest.get(one.pod)
        if before is None or before.time_s <= one.time_s:
            newest[one.pod] = one
    return list(newest.values())


def _increase_of_all(uids: Sequence[str], after: TokenCounters, before: TokenCounters) -> Increase:
    """Return what the same pods added, with the histograms as their sum unless a counter fell."""
    added = after.scraped[:, :FIRST_BUCKET] - before.scraped[:, :FIRST_BUCKET]
    summed = after.summed - before.summed
    if any_set(added < 0) or any_set(summed < 0):
        return _increase(uids, after, before)
    return _increase(uids, after, before, added, summed)


def _increase(
    uids: Sequence[str],
    after: TokenCounters,
    before: TokenCounters,
    added: Vector | None = None,
    summed: Vector | None = None,
) -> Increase:
    """Return what was added between two scrapes of the same pods, row by row."""
    return Increase(
        pods=tuple(uids),
        elapsed_s=after.times_s - before.times_s,
        added=_added(after.scraped, before.scraped) if added is None else added,
        summed=summed,
        context_tokens=(after.contexts + before.contexts) / 2.0,
        waiting_tokens=after.waiting - before.waiting,
    )


def _added(after: Vector, before: Vector) -> Vector:
    """Return what was added; of a process that has restarted, all that it counts."""
    added: Vector = after - before
    below = added < 0
    if any_set(below):
        fell = below.any(axis=1)
        added[fell] = after[fell]
    return added


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


def _table(samples: Sequence[PodSample], grid: Grid) -> tuple[list[str], Vector]:
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
        sample.missed,
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
    )
