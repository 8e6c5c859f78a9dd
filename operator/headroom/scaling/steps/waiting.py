"""Waiting requests: the standing queue, the queues of single replicas, their drain time."""

from __future__ import annotations

from collections.abc import Sequence

from headroom.scaling.frozen import replace
from headroom.scaling.generation.fleet.generating_fleet import GeneratingFleet
from headroom.scaling.serving_model import ServingModel
from headroom.scaling.state.state import State
from headroom.scaling.values.policy import Policy
from headroom.scaling.windows.signals import backlogs, old_queues


def standing_queue(policy: Policy, state: State, now_s: float) -> int | None:
    """Return the minimum queue over the shortest window; None until that window is covered."""
    window_s = policy.shortest_window_s
    if state.windows.watched_s(now_s, window_s) < window_s:
        return None
    return state.waiting_low.value


def with_drain_time(policy: Policy, state: State) -> Policy:
    """Return the policy with a drain time of a cold start, at most that of its tuning.

    So a shortage ends within two cold starts: the first brings the replicas, in the second they
    work off what has waited.
    """
    start_s = max(LEAST_DRAIN_S * policy.pace, state.cold_starts.at_least_s)
    if start_s >= policy.tuning.drain_s:
        return policy
    return replace(policy, tuning=replace(policy.tuning, drain_s=start_s))


LEAST_DRAIN_S = 10.0


def backlogs_of(
    policy: Policy, state: State, tail: ServingModel | None, ready: Sequence[str]
) -> tuple[int, ...]:
    """Return the queues of replicas that carry fewer requests because of them; none without a cost.

    Where routing sees load, those that outlast the start of another replica.
    """
    if tail is None:
        return ()
    full_rps, window_s = tail.cost.full_batch_rps, 2 * policy.shortest_window_s
    windows, target_s = state.windows, policy.latency_target_s
    if not policy.routing.sees_load:
        return backlogs(windows, ready, full_rps=full_rps, target_s=target_s, window_s=window_s)
    if isinstance(tail, GeneratingFleet):
        return ()
    least_s = max(target_s, state.cold_starts.assumed_s)
    return old_queues(windows, ready, full_rps=full_rps, least_s=least_s, window_s=window_s)
