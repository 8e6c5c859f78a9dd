"""Decides the number of replicas: (policy, state, observation) -> (decision, state), in steps.

    learn       windows, cost and cold starts take in the samples
    forecast    estimate the arrivals at the time when a new replica would be ready
    recommend   each rule says how many replicas it needs
    correct     compare measured with modelled latency where nothing else explains the difference
    remember    enter the desired replicas into the stabilization windows
    limit       upwards or downwards, then bounds
    explain     reason, message, counterfactuals

Same inputs, same outputs; the only time is `observation.now_s`. If it goes backwards, no time has
passed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from headroom.scaling import recommenders
from headroom.scaling.cost.cost_learning import claim_of
from headroom.scaling.cost.replica_speeds import ReplicaSpeeds
from headroom.scaling.explanation import binding, counterfactuals, gap_to_model, message
from headroom.scaling.forecast import bursts
from headroom.scaling.forecast.forecast import USUAL_START_S, Expected
from headroom.scaling.latency.mixed_fleet import MixedFleet
from headroom.scaling.latency.tail_latency import TailLatency
from headroom.scaling.limits import cold_start, limits
from headroom.scaling.limits.flaps import LONGEST_HOLD_S
from headroom.scaling.limits.limits import DesiredReplicas, LimitInput
from headroom.scaling.limits.stabilization import Coverage
from headroom.scaling.state import State
from headroom.scaling.tuning import Component
from headroom.scaling.values import (
    CostModel,
    Decision,
    Direction,
    Freshness,
    LimitApplied,
    Observation,
    PodState,
    Policy,
    Reason,
    Recommendation,
    ReplicaCounts,
    Routing,
    Signals,
)
from headroom.scaling.windows.signals import backlogs, read_signals, shared_queue


def decide(policy: Policy, state: State, observation: Observation) -> tuple[Decision, State]:
    """Return how many replicas the service should have now, and the state for the next tick."""
    now_s = observation.now_s if state.last_s is None else max(observation.now_s, state.last_s)
    if now_s != observation.now_s:
        observation = replace(observation, now_s=now_s)
    state, counts = _learn(
        policy, _restart_hold_on_manual_scale_up(state, observation), observation
    )
    signals = read_signals(
        policy, state.windows, observation, _standing_queue(policy, state, now_s)
    )
    cost = state.learner.fit(claim_of(state.windows.last.values()))
    if cost is not None and not policy.tuning.has(Component.VARIATION):
        cost = replace(cost, cv=0.0)
    routing_transition, correction = state.routing_transition.observe(
        policy.routing, state.correction, now_s, policy.tuning.correction_s
    )
    if routing_transition is not state.routing_transition:
        state = replace(state, routing_transition=routing_transition, correction=correction)
    routing, correction_factor = routing_transition.effective_routing(policy.routing, correction)
    ready = [pod.uid for pod in observation.pods if pod.state is PodState.READY]
    tail = tail_of(policy, cost, routing, state.learner.speeds, ready)

    target_s = corrected_target_s(policy, tail, correction_factor)
    state, expected = _forecast(policy, state, signals, now_s)
    backlogs = _backlogs(policy, state, tail, ready)
    results = _recommend(policy, expected, signals, tail, counts, target_s, backlogs)
    measured = tail
    if routing is not policy.routing:
        measured = tail_of(policy, cost, policy.routing, state.learner.speeds, ready)
    state = _correct(policy, state, signals, measured, counts, results, now_s)
    state = _remember(policy, state, signals, results, now_s)
    limit_input = LimitInput(
        policy=policy,
        state=state,
        observation=observation,
        signals=signals,
        counts=counts,
        desired=results.desired,
        known=results.known,
        now_s=now_s,
    )
    replicas, applied = _limit(limit_input)
    decision = _explain(limit_input, state, results, replicas, applied, tail, target_s)
    changed = not state.changes or state.changes[-1][1] != observation.current
    own = replicas if decision.alone == replicas else observation.current
    changes = (*state.changes, (now_s, observation.current)) if changed else state.changes
    return decision, replace(
        state,
        changes=changes[-_CHANGES_KEPT:],
        flaps=state.flaps.moved(now_s, observation.current, own, state.cold_starts.at_least_s),
        cost=cost,
        decided=replicas,
        last_s=now_s,
    )


_CHANGES_KEPT = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleResults:
    """What the rules recommend at this tick."""

    known: bool
    """Whether the cost model is known."""
    recommendations: tuple[Recommendation, ...]
    desired: DesiredReplicas
    needed: int
    """The fewest replicas that a removal may leave."""
    sufficient: int
    """Replicas that carry the present arrivals, without any forecast."""

    @property
    def strongest(self) -> Recommendation | None:
        """The rule that recommends the most replicas."""
        return max(self.recommendations, key=lambda rule: rule.replicas, default=None)


def _restart_hold_on_manual_scale_up(state: State, observation: Observation) -> State:
    """Restart the hold if another client has raised the replicas, for example a person.

    Otherwise the history before the change could undo it at once.
    """
    before = state.changes[-1][1] if state.changes else observation.current
    if observation.current > before and observation.current != state.decided:
        return replace(state, coverage=Coverage())
    return state


def _learn(policy: Policy, state: State, observation: Observation) -> tuple[State, ReplicaCounts]:
    """Take in the samples; samples of pods that are not ready yet never enter the cost."""
    windows = state.windows.absorb(observation)
    elapsed_s = 0.0 if state.last_s is None else observation.now_s - state.last_s
    learner = state.learner.observe(windows.executed(), elapsed_s, state.cost)
    learner = learner.only(windows.last.keys())
    starts = state.cold_starts.observe(
        observation.pods,
        observation.now_s,
        timeout_s=policy.warmup_timeout_s,
        first=state.last_s is None,
    )
    counts = cold_start.count(
        observation.pods, observation.now_s, starts.p90_s, policy.warmup_timeout_s
    )
    if observation.unlisted_ready:
        counts = replace(counts, ready=counts.ready + observation.unlisted_ready)
    waiting = shared_queue(windows, observation)
    shortest_s = min(policy.burst_windows_s, default=policy.tick_s)
    moved = counts.ready != state.ready
    state = replace(
        state,
        windows=windows,
        learner=learner,
        cold_starts=starts,
        waiting_low=state.waiting_low
        if waiting is None
        else state.waiting_low.add(observation.now_s, waiting, shortest_s),
        ready=counts.ready,
        ready_since_s=observation.now_s if moved else state.ready_since_s,
    )
    return state, counts


def tail_of(
    policy: Policy,
    cost: CostModel | None,
    routing: Routing,
    speeds: ReplicaSpeeds,
    ready: Sequence[str],
) -> TailLatency | None:
    """Return the latency model: of the mean replica if the routing sees load, else of all of them.

    Routing that sees load gives each replica what it can carry; any other gives a slow replica the
    same share as all others, and a fast one no more.
    """
    if cost is None:
        return None
    percentile, usual = policy.latency_percentile, cost
    slow, mean = speeds.slow(ready), 1.0
    if routing.sees_load:
        slow, mean = (), speeds.pooled(ready)
    elif slow:
        mean = speeds.mean(ready)
    if mean != 1.0:
        cost = replace(cost, fixed_s=mean * cost.fixed_s, per_item_s=mean * cost.per_item_s)
    if slow:
        return MixedFleet(cost=cost, percentile=percentile, routing=routing, usual=usual, slow=slow)
    return TailLatency(cost=cost, percentile=percentile, routing=routing)


def _standing_queue(policy: Policy, state: State, now_s: float) -> int | None:
    """Return the minimum queue over the shortest window; None until that window is covered."""
    window_s = min(policy.burst_windows_s, default=policy.tick_s)
    if state.windows.watched_s(now_s, window_s) < window_s:
        return None
    return state.waiting_low.value


def _backlogs(
    policy: Policy, state: State, tail: TailLatency | None, ready: Sequence[str]
) -> tuple[int, ...]:
    """Return the queues of backlogged replicas; none while no cost is known."""
    if tail is None:
        return ()
    return backlogs(
        state.windows,
        ready,
        full_rps=tail.cost.full_batch_rps,
        target_s=policy.latency_target_s,
        window_s=policy.stable_window_s,
    )


def corrected_target_s(policy: Policy, tail: TailLatency | None, correction_factor: float) -> float:
    """Return the target for the model: the SLO target over the learned correction.

    Never below the latency of an idle replica: no number of replicas could meet that.
    """
    if tail is None or not policy.tuning.has(Component.CORRECTION):
        return policy.latency_target_s
    lowest_s = min(policy.latency_target_s, _ABOVE_IDLE * tail.idle_s)
    return max(policy.latency_target_s / correction_factor, lowest_s)


_ABOVE_IDLE = 1.1


def _forecast(
    policy: Policy, state: State, signals: Signals, now_s: float
) -> tuple[State, Expected | None]:
    """Return the expected arrivals, None while no rate is known; learn from fresh rates."""
    rate = signals.arrival_rps
    if rate.value is None:
        return state, None
    burst_rps = bursts.burst_rate_rps(policy, state.windows, now_s)
    start_s = state.cold_starts.p90_s or max(USUAL_START_S, state.cold_starts.at_least_s)
    if rate.fresh:
        forecast = state.forecast.observe(policy, now_s, rate.value, burst_rps, start_s)
        state = replace(state, forecast=forecast)
    return state, state.forecast.expected(policy, now_s, rate.value, burst_rps, start_s)


def _recommend(
    policy: Policy,
    expected: Expected | None,
    signals: Signals,
    tail: TailLatency | None,
    counts: ReplicaCounts,
    target_s: float,
    backlogs: Sequence[int],
) -> RuleResults:
    """Evaluate every rule whose inputs are known."""
    tuning, rate_rps = policy.tuning, signals.arrival_rps.value
    rules: dict[Component, Recommendation | None] = {}
    removal = sufficient = 0
    if tail is not None and expected is not None and rate_rps is not None:
        rules = _by_arrivals(policy, expected, rate_rps, tail, target_s)
        sufficient = _sufficient(policy, rules[Component.BURST], rate_rps, tail, target_s)
        if tuning.has(Component.REMOVAL_MARGIN):
            removal = recommenders.for_removal(policy, tail, expected.most, target_s)
    by_arrivals = _most(rule for component, rule in rules.items() if tuning.has(component))
    if tail is not None and expected is not None:
        rules[Component.BACKLOG] = recommenders.for_backlog(
            policy, tail, expected.later.for_ceiling_rps, backlogs
        )
    if tail is None or tail.idle_s <= policy.latency_target_s:  # else more would not help
        rules[Component.QUEUE] = recommenders.for_queue(
            policy, tail, signals, counts=counts, target_s=target_s
        )
    every = [rule for component, rule in rules.items() if rule and tuning.has(component)]
    ceiling = rules.get(Component.CEILING)
    desired = _with_replacements(_most(every), counts)
    return RuleResults(
        known=tail is not None,
        recommendations=tuple(every),
        desired=DesiredReplicas(
            replicas=desired,
            by_arrivals=by_arrivals,
            by_ceiling=ceiling.replicas if ceiling else 0,
        ),
        needed=max(desired, removal),
        sufficient=sufficient,
    )


def _by_arrivals(
    policy: Policy, expected: Expected, rate_rps: float, tail: TailLatency, target_s: float
) -> dict[Component, Recommendation | None]:
    """Evaluate the rules that depend on arrivals."""
    later = expected.later
    return {
        Component.LATENCY: recommenders.for_latency(
            policy, tail, later.for_latency_rps, target_s, now_rps=rate_rps, periodic=later.periodic
        ),
        Component.CEILING: recommenders.for_utilization(
            policy, tail.cost, later.for_ceiling_rps, now_rps=rate_rps, periodic=later.periodic
        ),
        Component.BURST: recommenders.for_burst(policy, tail, expected.burst_rps, target_s),
    }


def _sufficient(
    policy: Policy,
    burst: Recommendation | None,
    rate_rps: float,
    tail: TailLatency,
    target_s: float,
) -> int:
    """Return the replicas for the present rate and its burst, without any forecast."""
    latency = recommenders.for_latency(policy, tail, rate_rps, target_s)
    ceiling = recommenders.for_utilization(policy, tail.cost, rate_rps)
    return _most([latency, ceiling, burst if policy.tuning.has(Component.BURST) else None])


def _most(rules: Iterable[Recommendation | None]) -> int:
    return max((rule.replicas for rule in rules if rule is not None), default=0)


def _correct(
    policy: Policy,
    state: State,
    signals: Signals,
    tail: TailLatency | None,
    counts: ReplicaCounts,
    results: RuleResults,
    now_s: float,
) -> State:
    """Compare the model with the measurement, where nothing else explains the difference.

    The ready replicas must have sufficed for the whole stable window; for several windows if all of
    them have a queue above its bound. If only some have one, it is the backlog of a surge.
    """
    if counts.ready < max(1, results.sufficient):
        return replace(state, sufficient_since_s=None)
    since_s = now_s if state.sufficient_since_s is None else state.sufficient_since_s
    since_s = max(since_s, state.ready_since_s)
    correction, measured, rate = state.correction, signals.latency_s, signals.arrival_rps
    if (
        tail is not None
        and measured.fresh
        and measured.value is not None
        and rate.value is not None
    ):
        bound = tail.cost.max_batch * counts.ready
        shared, waiting = signals.standing_queue.value or 0.0, signals.waiting.value or 0.0
        patience_s = policy.stable_window_s * (_QUEUED_WINDOWS if shared > bound else 1)
        backlogs = waiting > bound >= shared
        if now_s - since_s >= patience_s and not backlogs and state.last_s is not None:
            correction = correction.observe(
                measured.value,
                tail.latency_s(rate.value, counts.ready),
                requests=rate.value * policy.stable_window_s,
                elapsed_s=now_s - state.last_s,
                constant_s=policy.tuning.correction_s,
            )
    return replace(state, sufficient_since_s=since_s, correction=correction)


_QUEUED_WINDOWS = 4


def _with_replacements(needed: int, counts: ReplicaCounts) -> int:
    """Return how many replicas to request so that `needed` serve in spite of broken and late ones.

    Only while twice as many are ready: a fault of one node is worth a replacement, but a fault of
    the image or the model would be multiplied. Worked: 4 needed, 3 ready, 1 broken: 5.
    """
    lost = counts.broken + counts.late
    if needed <= counts.ready + counts.warming or 2 * lost > counts.ready:
        return needed
    return needed + lost


def _remember(
    policy: Policy, state: State, signals: Signals, results: RuleResults, now_s: float
) -> State:
    """Enter this tick into the stabilization windows; a tick without fresh metrics leaves a gap."""
    if signals.freshness is not Freshness.FRESH or not results.known:
        return state
    return replace(
        state,
        desired_low=state.desired_low.add(
            now_s, results.desired.replicas, policy.scale_up_stabilization_s
        ),
        needed_high=state.needed_high.add(
            now_s, results.needed, max(limits.hold_s(policy, state), LONGEST_HOLD_S)
        ),
        coverage=state.coverage.seen(now_s, max(policy.stale_after_s, 3 * policy.tick_s)),
    )


def _limit(limit_input: LimitInput) -> tuple[int, tuple[LimitApplied, ...]]:
    """Move towards the desired replicas as far as the limits allow; bounds last."""
    current = limit_input.observation.current
    if limit_input.desired.replicas > current:
        replicas, applied = limits.limit_increase(limit_input)
    elif current > max(limit_input.desired.replicas, limit_input.policy.min_replicas):
        replicas, applied = limits.limit_decrease(limit_input)
    else:
        replicas, applied = current, ()
    replicas, yielded = limits.apply_allocation(limit_input, replicas)
    bounded, cut = limits.apply_bounds(limit_input.policy, replicas)
    return bounded, (*applied, *yielded, *cut)


def _explain(
    limit_input: LimitInput,
    state: State,
    results: RuleResults,
    replicas: int,
    applied: tuple[LimitApplied, ...],
    tail: TailLatency | None,
    target_s: float,
) -> Decision:
    """Combine the number with everything needed to explain it."""
    current, counts = limit_input.observation.current, limit_input.counts
    direction = Direction.NONE
    if replicas != current:
        direction = Direction.UP if replicas > current else Direction.DOWN
    policy, rate_rps = limit_input.policy, limit_input.signals.arrival_rps.value
    cost: CostModel | None = tail.cost if tail else None
    known = tail is not None and rate_rps is not None
    reason = binding(policy, direction, results.strongest, applied, counts, current)
    if not known and reason is Reason.WITHIN_TARGET:
        reason = Reason.METRICS_MISSING
    gap = gap_to_model(policy, limit_input.signals, tail, counts.ready, state.correction.factor)
    notes = (gap,) if gap and direction is not Direction.UP else ()
    return Decision(
        time_s=limit_input.now_s,
        current=current,
        replicas=replicas,
        direction=direction,
        reason=reason,
        message=message(
            policy,
            direction,
            current,
            replicas,
            results.strongest,
            applied,
            counts,
            limits.hold_s(policy, state),
            notes,
        ),
        recommendations=results.recommendations,
        limits=applied,
        notes=notes,
        counterfactuals=counterfactuals(tail, rate_rps, replicas)
        if tail is not None and rate_rps is not None
        else (),
        signals=limit_input.signals,
        counts=counts,
        utilization=rate_rps / (counts.ready * cost.full_batch_rps)
        if cost is not None and rate_rps is not None and counts.ready
        else None,
        feasible=tail is None or tail.idle_s <= policy.latency_target_s,
        floor_latency_s=tail.idle_s if tail else None,
        floor_replicas=policy.min_replicas,
        floor_rps=policy.min_replicas * tail.capacity_rps(target_s, max(1, policy.min_replicas))
        if tail
        else None,
        cost=cost,
        correction=state.correction.factor,
        cold_start_s=state.cold_starts.p90_s,
    )
