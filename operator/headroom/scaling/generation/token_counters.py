"""The counters of generating pods: what each added since its scrape before, as one table.

A counter that a server does not report is NaN, so that missing never reads as zero. A process that
restarts counts from zero again; a new pod begins with its first scrape.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from struct import Struct

import numpy as np
from numpy.typing import NDArray

from headroom.scaling.token_values import GenerationSample
from headroom.scaling.values import PodSample

Vector = NDArray[np.float64]
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

    @classmethod
    def of(cls, sample: GenerationSample) -> Grid:
        """Return the bounds that this page has."""
        return cls(
            prompt=sample.prompt_lengths.bounds if sample.prompt_lengths else (),
            output=sample.output_lengths.bounds if sample.output_lengths else (),
            first_token=sample.first_token.bounds_s if sample.first_token else (),
            output_token=sample.output_token.bounds_s if sample.output_token else (),
        )

    @property
    def buckets(self) -> int:
        """Number of buckets of all four."""
        return len(self.prompt) + len(self.output) + len(self.first_token) + len(self.output_token)

    def slices(self) -> tuple[slice, slice, slice, slice]:
        """Return where each histogram lies in a row."""
        found, start = [], FIRST_BUCKET
        for bounds in (self.prompt, self.output, self.first_token, self.output_token):
            found.append(slice(start, start + len(bounds)))
            start += len(bounds)
        return found[0], found[1], found[2], found[3]


@dataclass(frozen=True, kw_only=True, eq=False)
class Increase:
    """What pods added since their scrape before; one row per pod that was scraped again."""

    pods: tuple[str, ...] = ()
    elapsed_s: Vector = field(default_factory=lambda: np.zeros(0))
    added: Vector = field(default_factory=lambda: np.zeros((0, FIRST_BUCKET)))
    context_tokens: Vector = field(default_factory=lambda: np.zeros(0))
    """Mean of the gauge at both ends; NaN where it is not reported."""
    waiting_tokens: float = 0.0
    """By how much the prompt tokens that wait have grown."""

    @cached_property
    def total(self) -> Vector:
        """The sum over pods; NaN where no pod reports a counter."""
        total: Vector = self.added.sum(axis=0)
        partly = np.flatnonzero(np.isnan(total))
        if len(partly):
            unknown = np.isnan(self.added[:, partly])
            if not unknown.all():
                partly = partly[~unknown.all(axis=0)]
                total[partly] = np.nansum(self.added[:, partly], axis=0)
        return total


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TokenCounters:
    """The newest scrape of each pod."""

    grid: Grid = field(default_factory=Grid)
    rows: dict[str, int] = field(default_factory=dict)
    times_s: Vector = field(default_factory=lambda: np.zeros(0))
    scraped: Vector = field(default_factory=lambda: np.zeros((0, FIRST_BUCKET)))
    gauges: Vector = field(default_factory=lambda: np.zeros((0, 2)))
    """Context tokens and waiting tokens."""

    def advance(self, samples: Sequence[PodSample]) -> tuple[TokenCounters, Increase]:
        """Return the counters with these scrapes, and what they added; old scrapes add nothing.

        Pods that are not among the samples are forgotten: they begin again with their next scrape.
        """
        pages = [(one, one.generation) for one in samples if one.generation is not None]
        if not pages:
            return self, Increase()
        grid = self.grid if self.rows else Grid.of(pages[0][1])
        chosen = [(one, page) for one, page in pages if _has(page, grid)]
        if not chosen:  # every server has changed: begin again
            return TokenCounters().advance(samples) if self.rows else (self, Increase())
        uids = [one.pod for one, _ in chosen]
        latest = TokenCounters(
            grid=grid,
            rows={uid: number for number, uid in enumerate(uids)},
            times_s=np.array([one.time_s for one, _ in chosen]),
            scraped=_table(chosen, grid),
            gauges=np.array(
                [(_number(page.context_tokens), _number(page.waiting_tokens)) for _, page in chosen]
            ),
        )
        return latest, self._increase(latest, uids)

    def _increase(self, latest: TokenCounters, uids: Sequence[str]) -> Increase:
        if uids == list(self.rows) and (latest.times_s > self.times_s).all():  # no copies
            return _increase(
                uids,
                latest.times_s - self.times_s,
                _added(latest.scraped, self.scraped),
                latest.gauges,
                self.gauges,
            )
        again = [number for number, uid in enumerate(uids) if uid in self.rows]
        if not again:
            return Increase()
        before = [self.rows[uids[number]] for number in again]
        newer = latest.times_s[again] > self.times_s[before]
        after = np.array(again)[newer]
        before_rows = np.array(before)[newer]
        return _increase(
            [uids[number] for number in after],
            latest.times_s[after] - self.times_s[before_rows],
            _added(latest.scraped[after], self.scraped[before_rows]),
            latest.gauges[after],
            self.gauges[before_rows],
        )


def _increase(
    uids: Sequence[str], elapsed_s: Vector, added: Vector, after: Vector, before: Vector
) -> Increase:
    return Increase(
        pods=tuple(uids),
        elapsed_s=elapsed_s,
        added=added,
        context_tokens=(after[:, 0] + before[:, 0]) / 2.0,
        waiting_tokens=float(np.nansum(after[:, 1] - before[:, 1])),
    )


def _added(after: Vector, before: Vector) -> Vector:
    """Return what was added; of a process that has restarted, all that it counts."""
    added: Vector = after - before
    fell = (added < 0).any(axis=1)
    if fell.any():
        added[fell] = after[fell]
    return added


def _table(pages: Iterable[tuple[PodSample, GenerationSample]], grid: Grid) -> Vector:
    """Return the counters, [pods, counters]; packed by `struct`, which is faster than tuples."""
    packed = Struct(f"{FIRST_BUCKET + grid.buckets}d").pack
    rows = [packed(*_row(one, page)) for one, page in pages]
    return np.frombuffer(b"".join(rows)).reshape(len(rows), -1)


_NO_SUMS = (NAN,) * SUMS


def _row(sample: PodSample, page: GenerationSample) -> tuple[float, ...]:
    sums = page.cost_sums
    prompt, output = page.prompt_lengths, page.output_lengths
    first, token = page.first_token, page.output_token
    return (
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
        NAN if prompt is None else prompt.total,
        NAN if output is None else output.total,
        NAN if page.preemptions is None else page.preemptions,
        *(_NO_SUMS if sums is None else (*sums.xx, *sums.xy)),
        *(prompt.counts if prompt else ()),
        *(output.counts if output else ()),
        *(first.counts if first else ()),
        *(token.counts if token else ()),
    )


def _has(page: GenerationSample, grid: Grid) -> bool:
    """Whether the page has these bounds: mostly the same objects, which compare at once."""
    prompt, output = page.prompt_lengths, page.output_lengths
    first, token = page.first_token, page.output_token
    return (
        (prompt.bounds if prompt else ()) == grid.prompt
        and (output.bounds if output else ()) == grid.output
        and (first.bounds_s if first else ()) == grid.first_token
        and (token.bounds_s if token else ()) == grid.output_token
    )


def _number(value: float | None) -> float:
    return NAN if value is None else value
