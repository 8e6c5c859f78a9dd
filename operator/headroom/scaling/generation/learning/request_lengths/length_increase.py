"""Increase of the lengths of requests in an interval: prompts, and steps of sequences."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from headroom.scaling.generation.counters.token_increase import Increase
from headroom.scaling.generation.counters.token_table import FIRST_SUM, Count, Grid
from headroom.scaling.mathematics.flags import all_set


def counts_once(increase: Increase) -> bool:
    """Return whether prompts count with their first token, so that no context computed again does.

    Among servers that preempt, vLLM does so. It times prompts, and does not say how many wait.
    """
    timed = increase.added[:, Count.TIMED_PROMPTS]
    return all_set(np.isnan(increase.waiting_tokens)) and all_set(np.isfinite(timed))


def arrivals(increase: Increase, grid: Grid) -> tuple[float, float, float, float]:
    """Return the arrivals, their computed and their cached prompt tokens, and generated tokens.

    Of the pods that report both: the arrivals at others would make the prompts seem shorter. So
    would arrivals that still wait where a server does not say how many tokens wait: there, those
    count whose prompts were computed. Worked: 9 arrive and 7 are computed in a second, as a queue
    grows: prompts of 2000 tokens would seem to have 1560, and 2570 while it is worked off.
    """
    reporting = increase.reporting(Count.COMPUTED).reporting(Count.CACHED)
    counts = reporting.total[:FIRST_SUM].tolist()
    computed, cached = counts[Count.COMPUTED], counts[Count.CACHED]
    generated = counts[Count.GENERATED]
    waiting = reporting.waiting_tokens
    if math.isnan(computed):
        return 0.0, 0.0, 0.0, 0.0
    arrived = max(0.0, counts[Count.ARRIVALS] - counts[Count.MISSED])
    if grid.first_token and reporting is increase and all_set(np.isnan(waiting)):
        _, _, firsts, _ = grid.slices()
        arrived = float(increase.total[firsts.stop - 1])
    return (
        arrived,
        max(0.0, computed + float(np.where(np.isnan(waiting), 0.0, waiting).sum())),
        0.0 if math.isnan(cached) else cached,
        0.0 if math.isnan(generated) else generated,
    )


def decoding_steps(counts: Sequence[float]) -> tuple[float, float]:
    """Return the steps of sequences, and the drafted tokens that these accepted.

    Steps without a draft accept none: servers stop to draft, and report no drafts once they have
    restarted without. Where steps are not reported, each gives one token and those it accepts; the
    first token of a request comes with its prompt.
    """
    drafts, accepted = counts[Count.DRAFTS], counts[Count.ACCEPTED]
    if math.isnan(drafts) or math.isnan(accepted):
        drafts = accepted = 0.0
    steps = counts[Count.STEPS]
    if math.isnan(steps):
        steps = counts[Count.GENERATED] - counts[Count.ARRIVALS] - accepted
    return (drafts if math.isnan(steps) else max(drafts, steps)), accepted
