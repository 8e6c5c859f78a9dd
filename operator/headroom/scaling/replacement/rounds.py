"""Compares each replica with the other replicas in a round of some seconds. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from statistics import median_low

import numpy as np

from headroom.scaling.mathematics.arrays import Vector
from headroom.scaling.values.observation import CostModel
from headroom.scaling.values.replica_defect import Defect
from headroom.scaling.windows.counter_series import (
    ARRIVALS,
    BATCH_ITEMS,
    BATCH_SECONDS,
    BATCHES,
    LATENCY,
    MISSED,
    CounterSeries,
)
from headroom.scaling.windows.histogram import at_least_late

ROUND_S = 20.0
"""Length of a round: at least ten times a tick of production."""
SLOW_FROM = 2.0 * (1.0 - 1e-9)
"""Times as long as the others: hardware of one fleet differs by less."""
FEWEST_ARRIVALS = 10.0
"""Fewer requests in a round say nothing about a replica that answers none of them."""
LEAST_SHARE = 0.25
"""Share of the median arrivals: a replica with fewer has another reason to answer less."""
ANSWERS_NOTHING = 0.05
"""Share of the others' median answers: fewer answers count as none."""
OTHERS_ANSWER = 0.5
"""Share of their requests that the others must answer; if they fail too, the fault is shared."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RoundStart:
    """The counters at the start of a round. References, no copies: a series never changes."""

    time_s: float
    columns: Mapping[str, int]
    counters: Vector

    @classmethod
    def of(cls, series: CounterSeries, now_s: float) -> RoundStart:
        """Return the start of a round that begins now."""
        return cls(time_s=now_s, columns=series.columns, counters=series.newest)


class Acquittal(Enum):
    """The verdict on a replica that works as the others do."""

    HEALTHY = "Healthy"


HEALTHY = Acquittal.HEALTHY


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRound:
    """A round in which a replica was far slower than the others, or answered nothing."""

    defect: Defect
    batches: float
    took_s: float
    usual_s: float
    """Time of the other replicas for the same batches."""
    others: float
    """Batches of the other replicas, from which that is known."""
    ended: float
    """Requests that ended, answered or missed; the arrivals if none did."""
    late: float
    """The part of them that missed the target."""


Verdict = BadRound | Acquittal


def judge(
    start: RoundStart,
    series: CounterSeries,
    bounds_s: tuple[float, ...],
    replicas: Iterable[str],
    cost: CostModel | None,
    target_s: float,
) -> dict[str, Verdict]:
    """Return the verdicts on these replicas; none on a replica that did too little.

    The expected seconds of a batch come from the learned cost, the comparison from the other
    replicas: if all of them become slower, the cost has changed, and no replica is slow.
    """
    if start.counters.shape[1:] != series.newest.shape[1:]:
        return {}  # another histogram: a server upgrade
    known = [one for one in replicas if one in start.columns and one in series.columns]
    if len(known) < 2:
        return {}
    added = (
        series.newest[[series.columns[one] for one in known]]
        - start.counters[[start.columns[one] for one in known]]
    )
    took_s, usual_s = added[:, BATCH_SECONDS], _usual_s(added, cost)
    ratios = took_s / np.where(usual_s > 0.0, usual_s, np.inf)
    common = _common(took_s, usual_s, ratios)
    failing = _failing(added)
    batches = float(added[:, BATCHES].sum())
    verdicts: dict[str, Verdict] = {}
    for number, one in enumerate(known):
        row = added[number]
        if ratios[number] > 0.0 and ratios[number] >= SLOW_FROM * common[number] > 0.0:
            verdicts[one] = _bad(
                row,
                Defect.SLOW,
                usual_s=float(usual_s[number] * common[number]),
                others=batches - float(row[BATCHES]),
                late=_late(row, bounds_s, target_s),
            )
        elif failing[number]:
            late = _late(row, bounds_s, target_s)
            verdicts[one] = _bad(row, Defect.FAILING, usual_s=0.0, others=0.0, late=late)
        elif row[BATCHES] >= 1.0 or row[LATENCY:][-1:].sum() >= FEWEST_ARRIVALS:
            verdicts[one] = HEALTHY
    return verdicts


def _usual_s(added: Vector, cost: CostModel | None) -> Vector:
    """Return the seconds that the batches of each replica take by the cost; 0 without a batch."""
    if cost is None:
        return np.zeros(len(added))
    usual_s = cost.fixed_s * added[:, BATCHES] + cost.per_item_s * added[:, BATCH_ITEMS]
    known_s: Vector = np.where(added[:, BATCHES] >= 1.0, usual_s, 0.0)
    return known_s


def _common(took_s: Vector, usual_s: Vector, ratios: Vector) -> Vector:
    """Return the comparison of each ratio: the median of all, and the mean of the others.

    The larger of the two. The median of few executions that vary is below their mean: by a factor
    of 2.2 for single lognormal ones of cv 2. One replica that reports too much or too little moves
    the mean, and hardly the median.
    """
    known = ratios[ratios > 0.0].tolist()
    if not known:
        return np.zeros(len(ratios))
    known_s = np.where(usual_s > 0.0, took_s, 0.0)
    others_s = usual_s.sum() - usual_s
    mean = (known_s.sum() - known_s) / np.where(others_s > 0.0, others_s, np.inf)
    compared: Vector = np.maximum(mean, median_low(known))
    return compared


def _failing(added: Vector) -> list[bool]:
    """Return which replicas take requests and answer none, while the others answer theirs.

    Its errors do not count as answers. Worked: 40 requests each in a round, 38 answered by each of
    the others: a replica that answered 1 fails, one that answered 3 does not.
    """
    arrivals = added[:, ARRIVALS].tolist()
    answered = added[:, -1].tolist() if added.shape[1] > LATENCY else None
    if answered is None:  # without a histogram no answer is counted
        return [False] * len(arrivals)
    total, answers = sum(arrivals), sum(answered)
    usual, usually = median_low(arrivals), median_low(answered)
    found = []
    for came, done in zip(arrivals, answered, strict=True):
        others_answer = answers - done >= OTHERS_ANSWER * max(1.0, total - came)
        loaded = came >= FEWEST_ARRIVALS and came >= LEAST_SHARE * usual
        found.append(loaded and others_answer and done <= ANSWERS_NOTHING * usually)
    return found


def _late(row: Vector, bounds_s: tuple[float, ...], target_s: float) -> tuple[float, float]:
    """Return the requests that ended and how many of them were late.

    Without a histogram all count as late. If none ended, all that arrived are.
    """
    if not bounds_s:
        return float(row[BATCH_ITEMS]), float(row[BATCH_ITEMS])
    ended = float(row[-1] + row[MISSED])
    if ended <= 0.0:
        return float(row[ARRIVALS]), float(row[ARRIVALS])
    late = float(at_least_late(bounds_s, row[LATENCY:], target_s) + row[MISSED])
    return ended, min(ended, max(0.0, late))


def _bad(
    row: Vector, defect: Defect, *, usual_s: float, others: float, late: tuple[float, float]
) -> BadRound:
    slow = defect is Defect.SLOW
    return BadRound(
        defect=defect,
        batches=float(row[BATCHES]) if slow else 0.0,
        took_s=float(row[BATCH_SECONDS]) if slow else 0.0,
        usual_s=usual_s,
        others=others,
        ended=late[0],
        late=late[1],
    )
