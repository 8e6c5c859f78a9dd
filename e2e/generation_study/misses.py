"""Causes of single requests' misses: the first that applies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from generation_study.causes import waiting
from generation_study.own_workloads import Workload
from headroom.simulator.generation.autoscalers.bounds import BIN_S, work_shares
from headroom.simulator.generation.outcome import Floats
from headroom.simulator.generation.run import LOOK_S

DESIRED, READY, INSIDE, ALIVE = 1, 2, 4, 5
"""Columns of the looks."""
TOO_HIGH = 1.1
"""Learned over true capacity above which late requests are its fault."""
MIX_CHANGED = 1.25
"""Work per request in a minute over that of the ten minutes before."""
SEATED = 0.95
"""Share of the seats in use from which on they are taken."""
_MIX_S, _BEFORE_S = 60.0, 600.0
Mask = NDArray[np.bool_]


class Cause(StrEnum):
    """Cause of a request's miss; the first that applies counts."""

    MEMORY = "memory: it was preempted"
    START = "start: too little is ready, and replicas start"
    SEATS = "seats: those of the ready replicas are taken"
    MIX = "mix: requests need more work than before"
    CAPACITY = "capacity: learned as too high"
    NOT_ASKED = "sizing: too little is ready, and no replica starts"
    OTHER = "other: the replicas suffice on average"


@dataclass(frozen=True, kw_only=True)
class Known:
    """Facts of a run that decide on causes."""

    looks: Floats
    """[looks, 6]: see `TokenOutcome.timeline`."""
    share: float
    """Share of a replica that the clairvoyant uses."""
    preempted: Mask
    learned_s: Floats
    learned: Floats
    """Learned over true capacity at these times."""


def causes(workload: Workload, late: Mask, known: Known) -> Counter[Cause]:
    """Return the late requests by cause."""
    service = workload.service
    bounded = workload.requests.bounded(service.engine.context_tokens)
    output = service.targets.output_token
    assert output is not None
    shares = work_shares(service.engine, bounded, output.seconds)
    bins = (bounded.arrival_s // BIN_S).astype(np.int64)
    work = np.bincount(bins, weights=shares).astype(np.float64)
    rows = (np.arange(len(work)) * BIN_S / LOOK_S).astype(int)
    looks = known.looks[np.minimum(rows, len(known.looks) - 1)]
    short = waiting(work / BIN_S / known.share, looks[:, READY]) > 0.0
    starts = looks[:, DESIRED] > looks[:, READY]
    seats = service.engine.sequences * np.maximum(1, looks[:, READY])
    changed = mix_changed(np.bincount(bins).astype(np.float64), work)
    masks = (
        (Cause.MEMORY, known.preempted),
        (Cause.START, (short & starts)[bins]),
        (Cause.SEATS, (looks[:, INSIDE] >= SEATED * seats)[bins]),
        (Cause.MIX, changed[bins]),
        (Cause.CAPACITY, np.interp(bounded.arrival_s, known.learned_s, known.learned) > TOO_HIGH),
        (Cause.NOT_ASKED, short[bins]),
        (Cause.OTHER, np.ones_like(late)),
    )
    return first_that_applies(late, masks)


def first_that_applies(late: Mask, masks: Sequence[tuple[Cause, Mask]]) -> Counter[Cause]:
    """Return the late requests by the first cause whose mask has them."""
    found: Counter[Cause] = Counter()
    left = late.copy()
    for cause, mask in masks:
        found[cause] = int((left & mask).sum())
        left &= ~mask
    return found


def mix_changed(counts: Floats, work: Floats) -> Mask:
    """Return the bins in whose minute a request needs much more work than in those before."""
    recent, before = round(_MIX_S / BIN_S), round(_BEFORE_S / BIN_S)
    sums = np.concatenate(([[0.0, 0.0]], np.cumsum(np.stack((counts, work), axis=1), axis=0)))
    ends = np.arange(1, len(counts) + 1)
    middles, begins = np.maximum(0, ends - recent), np.maximum(0, ends - recent - before)
    late, early = sums[ends] - sums[middles], sums[middles] - sums[begins]
    mean = np.maximum(early[:, 1], 1e-12) / np.maximum(early[:, 0], 1.0)
    found: Mask = late[:, 1] > MIX_CHANGED * mean * np.maximum(late[:, 0], 1.0)
    return found & (early[:, 0] > 0.0)
