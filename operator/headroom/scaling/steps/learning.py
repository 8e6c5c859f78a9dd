"""Updates the state with a tick: samples, forecast and stabilization windows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headroom.scaling.demand.connections import EVERY_S, Connections
from headroom.scaling.forecast import bursts
from headroom.scaling.forecast.forecast import Expected
from headroom.scaling.frozen import replace
from headroom.scaling.generation.fleet.generating_fleet import GeneratingFleet
from headroom.scaling.limits import cold_start
from headroom.scaling.limits.flaps import LONGEST_HOLD_S
from headroom.scaling.limits.scale_down import hold_s
from headroom.scaling.limits.stabilization import Coverage
from headroom.scaling.rules.rule_results import RuleResults
from headroom.scaling.serving_model import ServingModel
from headroom.scaling.state.state import State
from headroom.scaling.values.decision import ReplicaCounts
from headroom.scaling.values.observation import Observation, Pod
from headroom.scaling.values.policy import Policy, Routing
from headroom.scaling.values.signals import Freshness, Signals
from headroom.scaling.windows.by_replica import arrivals_of, executed_batches, sampled_throughout
from headroom.scaling.windows.contradictions import Contradictions
from headroom.scaling.windows.leaps import crowded, overlong
from headroom.scaling.windows.signals import backlogs, old_queues, shared_queue
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


def forecast_arrivals(
    policy: Policy,
    state: State,
    signals: Signals,
    now_s: float,
    at_most_rps: float | None = None,
    ready: Sequence[Pod] = (),
) -> tuple[State, Expected | None]:
    """Return the expected arrivals, None while no rate is known; learn from fresh rates.

    A burst counts up to `at_most_rps`: what exceeds it are further tries.
    """
    rate = signals.arrival_rps
    if rate.value is None:
        return state, None
    if rate.fresh:
        burst_rps = bursts.burst_rate_rps(policy, state.windows, now_s, rate.age_s or 0.0)
    else:
        burst_rps = bursts.burst_rate_rps(policy, state.windows, now_s, ready=ready)
    if burst_rps is not None and at_most_rps is not None:
        burst_rps = min(burst_rps, at_most_rps)
    start_s = state.cold_starts.assumed_s
    if rate.fresh:
        forecast = state.forecast.observe(policy, now_s, rate.value, burst_rps, start_s)
        state = replace(state, forecast=forecast)
    return state, state.forecast.expected(policy, now_s, rate.value, burst_rps, start_s)


def remember(
    policy: Policy, state: State, signals: Signals, results: RuleResults, now_s: float
) -> State:
    """Enter this tick into the stabilization windows; a tick without fresh metrics leaves a gap."""
    if signals.freshness is not Freshness.FRESH or not results.known:
        return state
    longest_s = max(hold_s(policy, state), LONGEST_HOLD_S)
    return replace(
        state,
        desired_low=state.desired_low.add(
            now_s, results.desired.replicas, policy.scale_up_stabilization_s
        ),
        needed_high=state.needed_high.add(now_s, results.needed, longest_s),
        arrivals_high=state.arrivals_high.add(now_s, results.needed_by_arrivals, longest_s),
        coverage=state.coverage.seen(now_s, max(policy.stale_after_s, 3 * policy.tick_s)),
    )
