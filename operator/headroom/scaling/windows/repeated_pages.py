"""Leaves out pages that repeat themselves while requests are in flight. Pure.

A replica with requests in flight ends a batch or an iteration soon, and its counters move. A page
that stays the same for longer is no news: what writes it hangs, or something in between keeps it.
Taken as news it shows a replica without arrivals, and later the requests of all that time in one
tick. Left out, the replica is silent (`unscraped`), and what it counts next is of the whole time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from headroom.scaling.frozen import replace
from headroom.scaling.replica_defect import LeftOut
from headroom.scaling.values.observation import CostModel, Observation, PodSample

BATCHES, ITERATION_S = 3.0, 2.0
"""So many full batches a page may stay the same, as executions vary, or so long an iteration."""
NAMED_S = 10.0
"""Until then it may be an execution that takes long."""
REAL_S = 600.0
"""A gauge may be wrong; a page that stays the same for so long is taken as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedPages:
    """Since when the page of a replica has been the same, while requests were in flight."""

    since_s: Mapping[str, float] = field(default_factory=dict)
    named: tuple[LeftOut, ...] = ()
    """Those that are left out at this tick, and have been for a while."""

    def without(
        self, observation: Observation, last: Mapping[str, PodSample], cost: CostModel | None
    ) -> tuple[RepeatedPages, Observation]:
        """Return the record after this tick, and the observation without such pages.

        `last` are the newest pages that were taken in. A page without iterations is left out only
        if the cost of a batch is known.
        """
        same = [
            sample
            for sample in observation.samples
            if (before := last.get(sample.pod)) is not None
            and sample.arrivals == before.arrivals
            and _repeats(sample, before)
        ]
        if not same and not self.since_s:
            return _NONE, observation
        batches_s = math.inf if cost is None else BATCHES * cost.batch_s(cost.max_batch)
        sampled = {sample.pod for sample in observation.samples}
        since_s = {
            uid: at_s for uid, at_s in self.since_s.items() if uid in last and uid not in sampled
        }
        left, named = set(), list[LeftOut]()
        for sample in same:
            before_s = last[sample.pod].time_s
            began_s = since_s[sample.pod] = self.since_s.get(sample.pod, before_s)
            least_s = ITERATION_S if _counts_iterations(sample) else batches_s
            same_s = sample.time_s - began_s
            if least_s < same_s <= REAL_S:
                left.add(sample.pod)
                if same_s >= least_s + NAMED_S:
                    why = f"has shown the same page for {same_s:.3g}s with requests in flight"
                    named.append(LeftOut(pod=sample.pod, why=why))
        if not since_s:
            return _NONE, observation
        found = RepeatedPages(since_s=since_s, named=tuple(named))
        if not left:
            return found, observation
        kept = tuple(sample for sample in observation.samples if sample.pod not in left)
        return found, replace(observation, samples=kept)


def _counts_iterations(sample: PodSample) -> bool:
    return sample.generation is not None and bool(sample.generation.iterations)


def _repeats(sample: PodSample, before: PodSample) -> bool:
    return (
        sample.waiting + sample.running > 0
        and sample.time_s > before.time_s
        and replace(sample, time_s=before.time_s) == before
    )


_NONE = RepeatedPages()
