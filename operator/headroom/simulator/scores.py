"""Computes scores from the plant's ground truth and the timeline of a run."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from headroom.simulator.compiled import kernel, unfinished
from headroom.simulator.compiled.clients import client_unfinished
from headroom.simulator.compiled.clients.client_layout import Amount
from headroom.simulator.compiled.plant_layout import FINE_LOG, FINE_START_S, Ints, Quantity, Tally
from headroom.simulator.fleet import Fleet
from headroom.simulator.outcome import Move, Score, Timeline

FLAP_SLACK_S = 60.0


def fine_quantile(counts: Ints, unanswered: int, ratio: float) -> float:
    """Return a percentile in seconds; inf if it is an unanswered request, nan without requests.

    The bucket's geometric middle, which is within 1 % of the true value.
    """
    cumulated = np.cumsum(counts)
    total = int(cumulated[-1]) + unanswered
    if total == 0:
        return math.nan
    index = int(np.searchsorted(cumulated, ratio * total))
    if index == len(counts):
        return math.inf
    return FINE_START_S * math.exp((index + 0.5) * FINE_LOG)


def count_flaps(moves: Sequence[Move], cold_start_s: float) -> int:
    """Count the scale-ups that follow a scale-down within a cold start and a minute."""
    flaps, lowered_s = 0, -math.inf
    for move in moves:
        if move.after < move.before:
            lowered_s = move.time_s
        elif move.time_s - lowered_s <= cold_start_s + FLAP_SLACK_S:
            flaps += 1
    return flaps


def score(
    fleet: Fleet, moves: Sequence[Move], timeline: Timeline, end_s: float, gpu: tuple[float, float]
) -> Score:
    """Return the figures of a run that ended at end_s; requests still in the system are misses.

    `gpu` are the GPU-seconds that the replicas held, and those of them while they started.
    """
    tables, spec = fleet.plant.tables, fleet.spec
    kernel.settle(tables, end_s)
    if fleet.plant.clients is None:
        unfinished.miss_the_rest(tables)
    else:
        client_unfinished.miss_the_rest(tables, fleet.plant.clients)
    tally = tables.tally
    requests, within = int(tally[Tally.REQUESTS]), int(tally[Tally.WITHIN])
    answered = within + int(tally[Tally.LATE])
    had = tables.minute_requests > 0
    share = tables.minute_missed[had] / tables.minute_requests[had]
    violated = share > 1 - spec.policy.latency_percentile + 1e-9
    held_s, starting_s = gpu
    return Score(
        requests=requests,
        within=within,
        refused=int(tally[Tally.REFUSED]),
        expired=int(tally[Tally.EXPIRED] + tally[Tally.CANCELLED]),
        failed=int(tally[Tally.FAILED]),
        p95_s=fine_quantile(tables.latency, requests - answered, 0.95),
        p99_s=fine_quantile(tables.latency, requests - answered, 0.99),
        violation_minutes=int(violated.sum()),
        minutes=int(had.sum()),
        gpu_hours=held_s / 3600,
        starting_gpu_hours=starting_s / 3600,
        operations=len(moves),
        flaps=count_flaps(moves, spec.cold_start.median_s),
        recover_s=60.0 * _longest_run(violated),
        mean_ready=float(np.mean(timeline.ready)) if len(timeline.ready) else 0.0,
        peak_ready=int(np.max(timeline.ready, initial=0)),
        peak_waiting=int(np.max(timeline.waiting, initial=0)),
        peak_unsent=int(np.max(timeline.unsent, initial=0)),
        tries=fleet.plant.sent,
        little_error=_little_error(fleet, end_s),
    )


def _longest_run(flags: np.ndarray) -> int:
    longest = run = 0
    for flag in flags:
        run = run + 1 if flag else 0
        longest = max(longest, run)
    return longest


def _little_error(fleet: Fleet, now_s: float) -> float:
    """Compare L T, integrated over time, with the sum of all times: at the plant, at clients."""
    integral_s = float(fleet.plant.tables.quantities[Quantity.IN_SYSTEM_S])
    summed_s = float(fleet.plant.tables.quantities[Quantity.SOJOURN_S])
    summed_s += unfinished.ages_s(fleet.plant.tables, now_s)
    error = abs(integral_s - summed_s) / integral_s if integral_s > 0 else 0.0
    clients = fleet.plant.clients
    if clients is None:
        return error
    summed_s = client_unfinished.ages_s(clients, now_s) + float(clients.amounts[Amount.LATENCY_S])
    integral_s = float(clients.amounts[Amount.WANTED_S])
    return max(error, abs(integral_s - summed_s) / integral_s if integral_s > 0 else 0.0)
