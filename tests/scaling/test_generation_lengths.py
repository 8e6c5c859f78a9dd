"""The lengths of requests, from counters of what is computed and of what has ended."""

from __future__ import annotations

import math

import numpy as np
import pytest

from headroom.scaling.generation.lengths import RECOMPUTED_S, Lengths
from headroom.scaling.generation.token_counters import FIRST_BUCKET, Count, Grid, Increase

GRID = Grid(prompt=(2048.0, math.inf), output=(256.0, math.inf))


def counted(
    arrivals: float, computed: float, *, preempted: float = 0.0, waiting: float = 0.0
) -> Increase:
    """What one pod adds: requests of 1000 and 100 tokens that arrive and end."""
    added = np.full((1, FIRST_BUCKET + GRID.buckets), np.nan)
    added[0, Count.ARRIVALS], added[0, Count.MISSED] = arrivals, 0.0
    added[0, Count.COMPUTED], added[0, Count.PREEMPTIONS] = computed, preempted
    added[0, Count.PROMPT_TOTAL], added[0, Count.OUTPUT_TOTAL] = 1000 * arrivals, 100 * arrivals
    added[0, FIRST_BUCKET:] = arrivals
    return Increase(
        pods=("pod",),
        elapsed_s=np.array([2.0]),
        added=added,
        context_tokens=np.array([math.nan]),
        waiting_tokens=waiting,
    )


def prompt_of(lengths: Lengths) -> float:
    shape = lengths.shape
    assert shape is not None
    return shape.prompt_tokens


def observed(lengths: Lengths, increase: Increase, ticks: int) -> Lengths:
    for _ in range(ticks):
        lengths = lengths.observe(increase, GRID, 2.0)
    return lengths


def test_lengths_of_a_service_that_preempts_leave_out_what_is_computed_again() -> None:
    """Four contexts are computed again per arrival, which is no longer prompt."""
    usual = observed(Lengths(), counted(10, 10_000), 60)
    preempting = observed(usual, counted(10, 50_000, preempted=8), 60)
    assert prompt_of(preempting) == pytest.approx(1000, rel=0.01)
    settling = observed(preempting, counted(10, 50_000), int(RECOMPUTED_S / 2.0) - 1)
    assert prompt_of(settling) == pytest.approx(1000, rel=0.01)


def test_lengths_of_prompts_that_grow_follow_within_a_minute() -> None:
    usual = observed(Lengths(), counted(10, 10_000), 60)
    assert prompt_of(observed(usual, counted(10, 50_000), 30)) > 2500


def test_lengths_of_a_busy_service_show_a_new_mix_within_ticks() -> None:
    usual = observed(Lengths(), counted(100, 100_000), 60)
    assert prompt_of(observed(usual, counted(100, 300_000), 6)) > 2000
    few = observed(Lengths(), counted(5, 5_000), 60)
    assert prompt_of(observed(few, counted(5, 15_000), 3)) < 1400


def test_lengths_of_prompts_that_only_wait_count_at_once() -> None:
    usual = observed(Lengths(), counted(10, 10_000), 60)
    queued = observed(usual, counted(10, 0.0, waiting=50_000), 30)
    assert prompt_of(queued) > 2500
