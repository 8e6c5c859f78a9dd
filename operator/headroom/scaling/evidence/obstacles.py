"""Observes obstacles: causes of latency above its target that more replicas do not change."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from headroom.scaling.demand.throughput import Throughput
from headroom.scaling.demand.unused_replicas import unused
from headroom.scaling.evidence.shared_limits import with_shared_limit
from headroom.scaling.frozen import replace
from headroom.scaling.generation.fleet.generating_fleet import GeneratingCost
from headroom.scaling.mathematics.arrays import Vector
from headroom.scaling.mathematics.chance import IDLE_SHARE
from headroom.scaling.serving_model import ReplicaCost
from headroom.scaling.state.state import State
from headroom.scaling.values.policy import Policy
from headroom.scaling.values.signals import Signals
from headroom.scaling.windows.by_replica import arrivals_of, executed_s_of
from headroom.scaling.windows.together import APART_S


def with_obstacles(
    policy: Policy,
    state: State,
    signals: Signals,
    load: Throughput,
    cost: ReplicaCost,
    ready: Sequence[str],
    now_s: float,
) -> State:
    """Return the state with this tick's evidence of an obstacle."""
    over = signals.latency_s.value is not None and (
        signals.latency_s.value > policy.latency_target_s
    )
    age_s = signals.in_flight.age_s or 0.0
    seen_s = now_s - age_s if age_s > APART_S else now_s  # of a replica the last scrapes tell
    settled_s = (seen_s - state.ready_since_s) / policy.pace
    shared = state.shared_limit
    if signals.latency_s.value is not None and not isinstance(cost, GeneratingCost):
        shared = shared.observe(now_s, load, now_s - state.ready_since_s, over_target=over)
    arrived_s = max(load.window_s, min(policy.pace * settled_s, policy.stable_window_s))
    arrived = busy = _NONE
    if over:
        arrived = arrivals_of(state.windows, ready, arrived_s)
        _, busy = _taken(state, ready, arrived_s)
    if isinstance(cost, GeneratingCost):
        # Answers take long: those of added replicas end only after a mean answer (Little), and
        # replicas that are evened out get no request until they have as few in flight as the new.
        settled_s -= load.in_flight / max(load.arrival_rps, 1.0 / load.window_s)
        if policy.routing.sees_load:
            arrived = busy = np.full(load.ready, load.arrived / load.ready)
    elif over and policy.routing.sees_load:
        busy = np.where(_worked(state, ready, arrived_s), np.inf, busy)
    obstacles = state.obstacles.observe(
        now_s, load, arrived, busy, arrived_s=arrived_s, settled_s=settled_s, over_target=over
    )
    if isinstance(cost, GeneratingCost) and over and settled_s >= UNUSED_S:
        taken, busy = _taken(state, ready, UNUSED_S)
        obstacles = obstacles.with_unused(now_s, unused(taken, busy), len(taken))
    if shared.most is not None:
        obstacles = obstacles.with_shared_limit(now_s, shared.detail)
    if obstacles is state.obstacles and shared is state.shared_limit:
        return state
    return with_shared_limit(replace(state, obstacles=obstacles), shared)


UNUSED_S = 60.0
"""For so long a replica must have got hardly anything to count as unused."""


def _taken(state: State, ready: Sequence[str], window_s: float) -> tuple[Vector, Vector]:
    """Return each replica's arrivals plus requests in flight, and its work including older queues.

    One with a queue is in use, and so was one that has answered a queue of before the window.
    """
    windows, columns = state.windows, state.windows.columns_of(ready)
    inside = np.array([float(one.waiting + one.running) for one in windows.latest(ready)])
    arrived, ended = windows.arrived(window_s)[columns], windows.ended(window_s)[columns]
    return arrived + inside, np.maximum(arrived, ended) + inside


def _worked(state: State, ready: Sequence[str], window_s: float) -> NDArray[np.bool_]:
    """Return which replicas have a request, or executed for more than `IDLE_SHARE` of the window.

    Routing that sees load gives no request to a replica that executes a long one while others have
    none in flight. Worked: at execution times of cv 3 and mean 0.25 s, one in some thousands takes
    10 s.
    """
    inside = np.array([one.waiting + one.running > 0 for one in state.windows.latest(ready)])
    executed_s = executed_s_of(state.windows, ready, window_s)
    worked: NDArray[np.bool_] = inside | (executed_s > IDLE_SHARE * window_s)
    return worked


_NONE: Vector = np.zeros(0)
