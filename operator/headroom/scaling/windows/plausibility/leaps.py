"""Finds samples that no server of the fleet can have written, compared with the others'. Pure.

A replica leaps if it has answered, executed or worked more since its last sample than twice what
its cost allows, and more than three times as much as any other replica: the page is another
server's, an old one, or its counters are not its own. A replica that was in doubt before leaps
already with one and a half times as much as the others: counters that stood still make up for it.
If few connections explain the doubt, that must be more than chance. So does one whose counters
fell: since it started, after its last sample, it served less than they.
And counters that fall a second time within a minute or two, while the replica stays ready, are no
restart.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from headroom.scaling.mathematics.arrays import Vector
from headroom.scaling.mathematics.chance import DOUBTED, e_folds_apart
from headroom.scaling.mathematics.flags import any_set
from headroom.scaling.values.observation import CostModel, PodSample
from headroom.scaling.windows.by_replica import arrivals_of
from headroom.scaling.windows.counter_series import ARRIVALS, BATCH_ITEMS, BATCH_SECONDS
from headroom.scaling.windows.sliding_windows import Windows

HIGH, HIGH_CAPACITIES, CATCHES_UP = 3.0, 2.0, 1.5
HIGH_SLOTS = 64.0
"""A server may have more workers than it says, and become slow: it is replaced, not held out."""
_QUIET_S = 12.0


def may_leap(before: Windows, after: Windows, cost: CostModel) -> bool:
    """Return whether some sample looks like a leap or a restart: cheap, for most ticks."""
    series, older = after.series, before.series
    if not len(series.added) or not older.columns:
        return False
    count = len(older.columns)
    if before.bounds_s != after.bounds_s or list(series.columns)[:count] != list(older.columns):
        return True
    if any_set(series.scraped[:count, ARRIVALS] < older.scraped[:, ARRIVALS]):
        return True
    elapsed_s = series.times_s[-1][:count] - older.times_s[-1]
    added: Vector = series.added[:count]
    served = added[:, BATCH_ITEMS]
    if after.bounds_s:
        served = served.clip(added[:, -1])
    most = HIGH_CAPACITIES * (cost.full_batch_rps * elapsed_s + cost.slots * cost.max_batch)
    most_s = HIGH_SLOTS * cost.slots * (elapsed_s + cost.batch_s(cost.max_batch))
    return any_set(served > most) or any_set(added[:, BATCH_SECONDS] > most_s)


class _Work(NamedTuple):
    """Work of a replica since its last sample."""

    requests: float
    seconds: float
    elapsed_s: float
    full_rps: float
    """Most that it could serve."""


def leaps(
    samples: Sequence[PodSample],
    windows: Windows,
    cost: CostModel,
    fell: Collection[str],
    proven: Collection[str],
    suspected: Collection[str],
) -> dict[str, str]:
    """Return the replicas whose samples leap, and why.

    `windows` end before these samples; the counters of those that `fell` did so shortly before.
    Of some it was `proven` shortly before that they contradict; others were `suspected`.
    """
    work: dict[str, _Work] = {}
    found: dict[str, str] = {}
    started: set[str] = set()
    for sample in samples:
        before = windows.last.get(sample.pod)
        if before is None or sample.time_s <= before.time_s:
            continue
        work[sample.pod] = _work(sample, before, cost)
        if sample.arrivals < before.arrivals:
            started.add(sample.pod)
            if sample.pod in fell:
                found[sample.pod] = "has counters that fall again and again while it stays ready"
    every = [*work.values(), *_quiet(windows, work)]
    rates_rps = sorted([one.requests / one.elapsed_s for one in every])[-2:]
    busiest = sorted([one.seconds / one.elapsed_s for one in every])[-2:]
    if len(every) < 2:
        return found
    for uid, one in work.items():
        high, most = HIGH, HIGH_CAPACITIES * one.full_rps * one.elapsed_s
        known = uid in proven or uid in started
        if known or uid in suspected:
            high, most = CATCHES_UP, 0.0
        most += HIGH_CAPACITIES * cost.slots * cost.max_batch
        most_s = HIGH_SLOTS * cost.slots * (one.elapsed_s + cost.batch_s(cost.max_batch))
        if one.requests <= most and one.seconds <= most_s:
            continue
        rate_rps = _of_others(rates_rps, one.requests / one.elapsed_s)
        busy = _of_others(busiest, one.seconds / one.elapsed_s)
        usual = rate_rps * one.elapsed_s
        over = one.requests > max(most, high * usual)
        if over and (known or _is_no_chance(one.requests, usual)):
            found[uid] = (
                f"served {one.requests:.4g} requests in {one.elapsed_s:.3g}s, "
                f"the others at most {rate_rps:.3g}/s each"
            )
        elif one.seconds > max(most_s, HIGH * busy * one.elapsed_s):
            found[uid] = f"executed for {one.seconds:.4g}s in {one.elapsed_s:.3g}s"
    return found


def _is_no_chance(requests: float, usual: float) -> bool:
    return bool(e_folds_apart(np.array([requests]), np.array([usual]))[0] > DOUBTED)


def _of_others(highest: Sequence[float], own: float) -> float:
    """Return the highest of the others, given the two highest of all."""
    second, first = highest
    return second if own >= first else first


def fallen(samples: Sequence[PodSample], windows: Windows) -> list[str]:
    """Return the replicas whose counters have fallen since their last sample."""
    return [
        one.pod
        for one in samples
        if (before := windows.last.get(one.pod)) is not None
        and one.time_s > before.time_s
        and one.arrivals < before.arrivals
    ]


def _work(sample: PodSample, before: PodSample, cost: CostModel) -> _Work:
    """Return its answers or executions since; after a restart, all of them."""
    claimed = before.cost.full_batch_rps if before.cost is not None else 0.0
    counts, then = sample.latency.counts, before.latency.counts
    answered, items = counts[-1] if counts else 0.0, sample.batch_items
    seconds = sample.batch_seconds
    if sample.arrivals >= before.arrivals:
        answered -= then[-1] if then else 0.0
        items, seconds = items - before.batch_items, seconds - before.batch_seconds
    return _Work(
        requests=max(answered, items, 0.0),
        seconds=max(seconds, 0.0),
        elapsed_s=sample.time_s - before.time_s,
        full_rps=max(cost.full_batch_rps, claimed),
    )


def _quiet(windows: Windows, heard: Mapping[str, _Work]) -> list[_Work]:
    """Return the work of replicas without a new sample, up to their last one."""
    quiet = [uid for uid in windows.series.columns if uid not in heard]
    if not quiet:
        return []
    arrived = arrivals_of(windows, quiet, _QUIET_S)
    return [_Work(requests, 0.0, _QUIET_S, 0.0) for requests in arrived.tolist()]
