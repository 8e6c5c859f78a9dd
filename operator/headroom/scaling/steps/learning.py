"""Takes the samples of a tick into the state: windows, cost, cold starts, connections."""

from __future__ import annotations

import numpy as np

from headroom.scaling.demand.connections import EVERY_S, Connections
from headroom.scaling.frozen import replace
from headroom.scaling.limits import cold_start
from headroom.scaling.limits.stabilization import Coverage
from headroom.scaling.state.state import State
from headroom.scaling.values.decision import ReplicaCounts
from headroom.scaling.values.observation import Observation
from headroom.scaling.values.policy import Policy, Routing
from headroom.scaling.windows.by_replica import arrivals_of, executed_batches, sampled_throughout
from headroom.scaling.windows.plausibility.contradictions import Contradictions
from headroom.scaling.windows.plausibility.implausible_work import crowded, overlong
from headroom.scaling.windows.signals import shared_queue
from headroom.scaling.windows.sliding_windows import Windows


def restart_hold_on_manual_scale_up(state: State, observation: Observation) -> State:
    """Restart the hold if another client has raised the replicas, for example a person.

    Otherwise the history before the change could undo it at once.
    """
    before = state.changes[-1][1] if state.changes else observation.current
    if observation.current > before and observation.current != state.decided:
        return replace(state, coverage=Coverage())
    return state


def leave_out_repeated(state: State, observation: Observation) -> tuple[State, Observation]:
    """Return the observation without pages that stay the same while requests are in flight."""
    last = state.windows.last
    repeated, observation = state.repeated_pages.without(observation, last, state.cost)
    if repeated is state.repeated_pages:
        return state, observation
    return replace(state, repeated_pages=repeated), observation


def as_old_as_written(policy: Policy, state: State) -> Policy:
    """Return the policy under which pages that a server rewrites only now and then are fresh."""
    written_s = state.repeated_pages.written_s
    return policy if written_s <= policy.stale_after_s else replace(policy, stale_after_s=written_s)


def learn(policy: Policy, state: State, observation: Observation) -> tuple[State, ReplicaCounts]:
    """Take in the samples; samples of pods that are not ready yet never enter the cost."""
    inputs = state.generation.inputs
    contradictions, windows = state.contradictions.absorb(
        policy,
        observation,
        state.windows,
        state.cost if inputs is None else inputs.rates.as_batch,
        None if state.connections.last_s is None else state.connections.number,
        state.connections.proven,
    )
    elapsed_s = 0.0 if state.last_s is None else observation.now_s - state.last_s
    doubted = state.replacer.doubted | crowded(windows)
    executed = executed_batches(windows)
    found = contradictions.found.keys()
    if found:
        executed = [one for one in executed if one.replica not in found]
    learner = state.learner.observe(executed, elapsed_s, state.cost, doubted, overlong(windows))
    learner = learner.only(windows.last.keys() - found if found else windows.last.keys())
    starts = state.cold_starts.observe(
        observation.pods,
        observation.now_s,
        timeout_s=policy.warmup_timeout_s,
        first=state.last_s is None,
    )
    counts = cold_start.count(
        observation.pods, observation.now_s, starts.p90_s, policy.warmup_timeout_s, windows.last
    )
    if observation.unlisted_ready:
        counts = replace(counts, ready=counts.ready + observation.unlisted_ready)
    waiting = shared_queue(windows, observation)
    shortest_s = policy.shortest_window_s
    moved = counts.ready != state.ready or windows.gap_s[1] == observation.now_s
    connections = state.connections
    settled = not moved and observation.now_s - state.ready_since_s >= 2 * EVERY_S
    if policy.routing is Routing.STICKY:
        connections = connections.watching(observation.ready_uids)
        if settled and connections.due(observation.now_s):
            connections = _observed(policy, connections, windows, contradictions, observation)
    state = replace(
        state,
        windows=windows,
        learner=learner,
        cold_starts=starts,
        waiting_low=state.waiting_low
        if waiting is None
        else state.waiting_low.add(observation.now_s, waiting, shortest_s),
        connections=connections,
        contradictions=contradictions,
        ready=counts.ready,
        ready_since_s=observation.now_s if moved else state.ready_since_s,
    )
    return state, counts


def _observed(
    policy: Policy,
    connections: Connections,
    windows: Windows,
    contradictions: Contradictions,
    observation: Observation,
) -> Connections:
    """Return the connections after a window of the replicas whose share is known."""
    sampled = sampled_throughout(windows, EVERY_S, observation.now_s, policy.stale_after_s)
    known = [
        uid
        for uid in observation.ready_uids
        if uid in sampled and not contradictions.has_no_known_share(uid)
    ]
    shares = np.array([connections.expected.get(uid, 0.0) for uid in known])
    arrived = arrivals_of(windows, known, EVERY_S)
    # without evictions new replicas stay idle, and must look like an uneven load
    return connections.observe(observation.now_s, arrived, shares, spread=policy.rebalances)
