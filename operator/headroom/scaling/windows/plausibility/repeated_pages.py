"""Leaves out pages that repeat themselves while requests are in flight. Pure.

A replica with requests in flight ends a batch or an iteration soon, and its counters move. A page
that stays the same for longer is not new: what writes it hangs, or something in between keeps it.
Taken as new it shows a replica without arrivals, and later the requests of all that time in one
tick. Left out, the replica is silent (`unscraped`), and what it counts next is of the whole time.

A server that writes its page every 10 s repeats it also where the page happens to show no request
in flight. That is known once several pages were proved to repeat: each stayed the same with
requests in flight, and the next one counted several arrivals. Idle pages then say nothing either,
until one has stayed the same for longer than those did. A page that changes twice within 0.6 of
that time shows that pages are written all the time, and that some executions took long.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median

from headroom.scaling.frozen import replace
from headroom.scaling.values.observation import CostModel, Observation, PodSample
from headroom.scaling.values.replica_defect import LeftOut

BATCHES, ITERATION_S = 3.0, 2.0
"""This many full batches a page may stay the same, as executions vary, or so long an iteration."""
NAMED_S = 10.0
"""Time after which an unchanged page is named; until then, an execution may take long."""
REAL_S = 600.0
"""A gauge may be wrong; a page that stays the same for so long is taken as it is."""
FEWEST_ARRIVALS = 3.0
"""After a single execution that took long, one or two requests have come."""
PROOFS, PROVED_S = 3, 600.0
"""This many repeated pages within this time show that pages are written now and then."""
SOONER = 0.6
"""Two changes within this share of the usual time: pages are not written now and then."""
LONGER, MOST_WRITTEN_S = 1.5, 30.0
"""A page is read up to a tick after it was written, and may be written late. One that stays the
same for longer than the second is not written now and then: what writes it hangs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedPages:
    """Time since which a replica's page has been the same, and for how long pages usually are."""

    since_s: Mapping[str, float] = field(default_factory=dict)
    proved: tuple[tuple[float, float], ...] = ()
    """(time, seconds) of the latest pages that were proved to repeat, of all replicas."""
    pages: Mapping[str, tuple[PodSample, float]] = field(default_factory=dict)
    """The page of each replica, and when it changed, since the first proof."""
    named: tuple[LeftOut, ...] = ()
    """Pages that are left out at this tick, and have been for a while."""

    @property
    def written_s(self) -> float:
        """Possible age of a page that is written now and then; 0 where not known."""
        return LONGER * self._usual_s if len(self.proved) >= PROOFS else 0.0

    @property
    def _usual_s(self) -> float:
        return median(took_s for _, took_s in self.proved) if self.proved else 0.0

    def without(
        self, observation: Observation, last: Mapping[str, PodSample], cost: CostModel | None
    ) -> tuple[RepeatedPages, Observation]:
        """Return the record after this tick, and the observation without such pages.

        `last` are the newest pages that were taken in. A page without iterations is left out only
        if the cost of a batch is known.
        """
        if not (self.since_s or self.proved) and not any(
            sample.arrivals == before.arrivals
            and sample.waiting + sample.running > 0
            and _same(sample, before)
            for sample in observation.samples
            if (before := last.get(sample.pod)) is not None
        ):
            return _NONE, observation
        batches_s = math.inf if cost is None else BATCHES * cost.batch_s(cost.max_batch)
        sampled = {sample.pod for sample in observation.samples}
        since_s = {
            uid: at_s for uid, at_s in self.since_s.items() if uid in last and uid not in sampled
        }
        proved = self.proved
        if proved and observation.now_s - proved[-1][0] > PROVED_S:
            proved = ()
        pages = self._changed(observation.samples) if proved else {}
        if pages is None:
            proved, pages = (), {}
        idle_s = replace(self, proved=proved).written_s
        left, named = set(), list[LeftOut]()
        for sample in observation.samples:
            before = last.get(sample.pod)
            if before is None:
                continue
            began_s = self.since_s.get(sample.pod, before.time_s)
            least_s = ITERATION_S if _counts_iterations(sample) else batches_s
            same_s = sample.time_s - began_s
            if not _same(sample, before):
                repeated = sample.pod in self.since_s and least_s < same_s <= MOST_WRITTEN_S
                if repeated and _proves(sample, before):
                    proved = (*proved, (observation.now_s, same_s))[-PROOFS:]
                continue
            if not sample.waiting + sample.running:
                if proved:
                    since_s[sample.pod] = began_s
                if same_s <= idle_s:
                    left.add(sample.pod)
                continue
            since_s[sample.pod] = began_s
            if least_s < same_s <= REAL_S:
                left.add(sample.pod)
                if same_s >= least_s + NAMED_S:
                    why = f"has shown the same page for {same_s:.3g}s with requests in flight"
                    named.append(LeftOut(pod=sample.pod, why=why))
        if not (since_s or proved):
            return _NONE, observation
        found = RepeatedPages(since_s=since_s, proved=proved, pages=pages, named=tuple(named))
        if not left:
            return found, observation
        kept = tuple(sample for sample in observation.samples if sample.pod not in left)
        return found, replace(observation, samples=kept)

    def _changed(self, samples: Iterable[PodSample]) -> dict[str, tuple[PodSample, float]] | None:
        """Return each page and when it changed; None if one did so twice too soon."""
        pages, soon_s = dict(self.pages), SOONER * self._usual_s
        for sample in samples:
            page, changed_s = pages.get(sample.pod, (sample, -math.inf))
            if replace(sample, time_s=page.time_s) != page:
                if sample.time_s - changed_s < soon_s:
                    return None
                changed_s = sample.time_s
            pages[sample.pod] = sample, changed_s
        return pages


def _counts_iterations(sample: PodSample) -> bool:
    return sample.generation is not None and bool(sample.generation.iterations)


def _proves(sample: PodSample, before: PodSample) -> bool:
    """Return whether the page before stayed the same while it should have counted requests."""
    return (
        before.waiting + before.running > 0 and sample.arrivals - before.arrivals >= FEWEST_ARRIVALS
    )


def _same(sample: PodSample, before: PodSample) -> bool:
    return (
        sample.arrivals == before.arrivals
        and sample.time_s > before.time_s
        and replace(sample, time_s=before.time_s) == before
    )


_NONE = RepeatedPages()
