"""Turns a recorded trace into the times at which requests are sent: window, scale, seed.

Time is never stretched: a replica that takes seconds to get warm must meet the rises as they were.
The same trace, window, scale and seed give the same instants on every machine.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from load.traces import RateTrace, RequestTrace, Trace


class ReplayError(Exception):
    """A window or scale that the trace does not have; the message names rule and value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """Part of a trace to replay, and its factor."""

    start_s: float = 0.0
    duration_s: float
    scale: float = 1.0
    """Requests sent per request recorded."""
    seed: int = 1
    max_requests: int = 100_000


def arrivals(trace: Trace, replay: Replay) -> tuple[float, ...]:
    """Seconds from the window's start at which requests are due, sorted, all within the window.

    A request-level trace is thinned: each request stays with probability `scale`, at its own
    instant. A rate-only trace gives a Poisson process with the bin's rate times `scale`; these are
    the least bursty arrivals that fit the counts, and a change between bins is a step.

    Raises:
        ReplayError: the window lies outside the trace, the scale is out of range, or the arrivals
            are more than `max_requests`.
    """
    _check(trace, replay)
    match trace:
        case RequestTrace():
            due = _thinned(trace, replay)
        case RateTrace():
            due = _poisson(trace, replay)
    if len(due) > replay.max_requests:
        raise ReplayError(
            f"a replay must have at most {replay.max_requests} requests; scale {replay.scale:g} "
            f"gives {len(due)}: choose a smaller scale or a shorter window"
        )
    return due


def _check(trace: Trace, replay: Replay) -> None:
    if not (replay.start_s >= 0.0 and replay.duration_s > 0.0):
        raise ReplayError(
            "a window must start at 0 or later and last more than 0 seconds; got "
            f"start {replay.start_s:g}, duration {replay.duration_s:g}"
        )
    end_s = replay.start_s + replay.duration_s
    if end_s > trace.duration_s + 1e-9:
        raise ReplayError(
            f"the trace lasts {trace.duration_s:g} s; the window is {replay.start_s:g} to "
            f"{end_s:g} s"
        )
    if not 0.0 < replay.scale < math.inf:
        raise ReplayError(f"scale must be above 0; got {replay.scale:g}")
    if isinstance(trace, RequestTrace) and replay.scale > 1.0:
        raise ReplayError(
            "a request-level trace can be thinned, not multiplied (copies would be smoother than "
            f"the recording): scale must be at most 1; got {replay.scale:g}"
        )


def _thinned(trace: RequestTrace, replay: Replay) -> tuple[float, ...]:
    chance = random.Random(replay.seed)
    return tuple(
        arrival_s - replay.start_s
        for arrival_s in trace.arrivals_s
        if chance.random() < replay.scale
        and replay.start_s <= arrival_s < replay.start_s + replay.duration_s
    )


def _poisson(trace: RateTrace, replay: Replay) -> tuple[float, ...]:
    # Unit-rate gaps, spent at each bin's rate: where the window ends changes no arrival before.
    chance = random.Random(replay.seed)
    due: list[float] = []
    now_s, left = 0.0, chance.expovariate(1.0)
    while now_s < replay.duration_s and len(due) <= replay.max_requests:
        index = int((replay.start_s + now_s) / trace.bin_s + 1e-9)
        bin_end_s = min((index + 1) * trace.bin_s - replay.start_s, replay.duration_s)
        rate_rps = replay.scale * trace.requests[index] / trace.bin_s
        room = rate_rps * (bin_end_s - now_s)
        if left >= room:
            left -= room
            now_s = bin_end_s
            continue
        now_s += left / rate_rps
        left = chance.expovariate(1.0)
        if now_s < replay.duration_s:
            due.append(now_s)
    return tuple(due)
