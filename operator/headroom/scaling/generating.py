"""Connects generation with the decision: what is learned at a tick, and the model that serves.

A service with promises on tokens is sized by the same rules as any other; only the serving model
and the measured misses differ. Where the pages do not tell the cost of an iteration, the service is
sized by its batches, and the capacity factor of the token SLO acts, as without this module. Where
they will tell it soon, nothing is known until then: only queues add replicas.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from statistics import median_low

from headroom.scaling.forecast.forecast import Expected
from headroom.scaling.frozen import replace
from headroom.scaling.generation import first_token, surge
from headroom.scaling.generation.class_fleets import binding_fleet
from headroom.scaling.generation.class_judgement import ClassState
from headroom.scaling.generation.classes import SERVICE
from headroom.scaling.generation.fleet import GeneratingFleet
from headroom.scaling.generation.learned import GenerationState
from headroom.scaling.generation.learned_fleet import fleet_of
from headroom.scaling.generation.promises import (
    WINDOW_S,
    Measured,
    attainment_of,
    outcomes_of,
    strictest,
    worst_ratio,
)
from headroom.scaling.promise.error_budget import Outcomes
from headroom.scaling.promise.reserve import USUAL_S, Usual
from headroom.scaling.rule_results import RuleResults
from headroom.scaling.state import State
from headroom.scaling.tuning import HOUR_S
from headroom.scaling.values.decision import Reason, Recommendation, ReplicaCounts
from headroom.scaling.values.observation import Observation, PodState
from headroom.scaling.values.policy import Policy, Routing
from headroom.scaling.values.signals import Signal, Signals
from headroom.scaling.values.tokens import Binding, Target, TokenTargets
from headroom.scaling.windows.counter_series import MISSED
from headroom.scaling.windows.sliding_windows import Windows, rejected_at_gateways


@dataclass(frozen=True, slots=True, kw_only=True)
class Generating:
    """What one tick knows of a generating service."""

    policy: Policy
    signals: Signals
    """With the attainment of all promises."""
    judged: Signals
    """With a latency that is the target times the worst share of a promise."""
    outcomes: Outcomes
    """By the promises on tokens, also while the cost is not known; without the misses that no
    number of replicas prevents."""
    fleet: GeneratingFleet | None = None
    """None while the cost of an iteration is not known."""
    awaits_cost: bool = False
    """Whether it will be known soon. Until then nothing is known of what a replica carries."""
    measured: Mapping[Binding, Measured] = field(default_factory=dict)
    classes: ClassState = field(default_factory=ClassState)

    @property
    def measured_of_service(self) -> Mapping[Binding, Measured]:
        """The promises of the service, by the requests that they apply to."""
        found = self.classes.judgement
        return self.measured if found is None else found.of(SERVICE)

    @property
    def hour_requests(self) -> float:
        """Requests of an hour at the present rate: answers are few and expensive."""
        rate = self.signals.arrival_rps
        return HOUR_S * rate.value if rate.value else 0.0


def observe(
    policy: Policy, state: State, observation: Observation, signals: Signals, routing: Routing
) -> tuple[State, Generating | None]:
    """Take in the pages of this tick; None for a service that is sized by its batches alone.

    That is one whose pages show no generation. Without promises on tokens it is also one whose cost
    of an iteration is neither known nor soon to be, such as a server of embeddings.
    """
    if not _generates(observation, state):
        return state, None
    targets = policy.token_targets or _of_latency(policy)
    if policy.latency_percentile != strictest(targets):
        policy = replace(policy, latency_percentile=strictest(targets))
    now_s = observation.now_s
    ready_since_s = {
        pod.uid: pod.created_s if pod.ready_s is None else pod.ready_s for pod in observation.ready
    }
    elapsed_s = 0.0 if state.last_s is None else now_s - state.last_s
    samples = state.contradictions.used(observation.samples)
    learned = state.generation.observe(samples, ready_since_s, now_s, elapsed_s, policy.token_cost)
    awaits_cost = learned.awaits_cost(samples, now_s)
    if policy.token_targets is None:
        if learned.inputs is None and not awaits_cost:
            return replace(state, generation=learned), None
        policy = replace(policy, token_targets=targets)
    rate_rps, ready = signals.arrival_rps, len(ready_since_s)
    watched_s = state.windows.watched_s(now_s, WINDOW_S)
    missed = state.windows.missed(watched_s)
    own, fleet, classes, kept, token = None, None, state.classes, targets, None
    if classes.judgement is not None:
        rejected = rejected_at_gateways(state.windows, watched_s)
        classes = replace(classes, judgement=replace(classes.judgement, rejected=rejected))
    if learned.inputs is not None:
        inputs, target_s = learned.inputs, policy.latency_target_s
        own = fleet_of(inputs, targets, routing, target_s, ready)
        fleet, classes = binding_fleet(
            classes,
            own,
            lambda one: fleet_of(inputs, one.targets, routing, target_s, ready, one.name),
            max(1, observation.current),
        )
        if rate_rps.fresh and rate_rps.value and ready:
            load, in_flight = rate_rps.value / ready / fleet.capacity.most_rps, signals.in_flight
            learned = learned.seen(load, (in_flight.value or 0.0) / ready)
            token = own.capacity.replica.output_token_spread(rate_rps.value / ready, ready)
        if policy.capacity_factor != 1.0:
            policy = replace(policy, capacity_factor=1.0)
        kept = _without(targets, own.capacity.infeasible)
    measured = _with_latency(learned.window.measure(targets, missed, token), targets, signals)
    latest = learned.window.latest(kept, now_s, token)
    learned, outcomes = _judged(policy, state, learned, kept, latest, fleet, classes)
    shown, judged = _signals(policy, signals, measured, own, classes)
    return replace(state, generation=learned, classes=classes), Generating(
        policy=policy,
        signals=shown,
        judged=judged,
        fleet=fleet,
        awaits_cost=awaits_cost,
        measured=measured,
        outcomes=outcomes,
        classes=classes,
    )


def beyond_chance(
    policy: Policy, generating: Generating | None, expected: Expected | None
) -> Expected | None:
    """Return what to expect, with bursts of a generating service without what chance explains.

    Its requests are few and last long, so a clump of some seconds is soon spread, while a replica
    for it would be paid for through a start and a hold.
    """
    if generating is None or generating.fleet is None or expected is None or not expected.burst_rps:
        return expected
    window_s = min(policy.burst_windows_s, default=policy.tick_s)
    return replace(expected, burst_rps=surge.surely_rps(expected.burst_rps, window_s))


def usual(policy: Policy, state: State, generating: Generating | None) -> Usual | None:
    """Return what the reserve of a generating service follows from; None of any other.

    Nor where a start takes longer than the error budget of an hour: what is kept after a surge that
    spent all of it comes too late.
    """
    allowed = 1.0 - policy.latency_percentile
    long = state.cold_starts.assumed_s >= allowed * HOUR_S
    if generating is None or generating.fleet is None or long:
        return None
    rates = state.forecast.analogs.history
    return Usual.of(rates.mean_rps(USUAL_S), rates.mean_rps(HOUR_S), state.budget, allowed)


def _judged(
    policy: Policy,
    state: State,
    learned: GenerationState,
    kept: TokenTargets,
    latest: Mapping[Binding, Measured],
    fleet: GeneratingFleet | None,
    classes: ClassState,
) -> tuple[GenerationState, Outcomes]:
    """Return what ended since the last tick, without what is late by its own length."""
    judgement = classes.judgement
    if judgement is None:
        outcomes = _outcomes(policy, state, kept, latest)
    else:
        outcomes = judgement.outcomes(1.0 - policy.latency_percentile, classes.hopeless)
    if fleet is None:
        return learned, outcomes
    late_alone = partial(first_token.late_alone, fleet.capacity.replica.work)
    if judgement is not None:
        share = judgement.mean_of_first_token(late_alone)
    elif kept.first_token is not None:
        share = late_alone(kept.first_token.seconds)
    else:
        return learned, outcomes
    return learned.without_late_alone(outcomes, share)


def for_surge(
    policy: Policy,
    state: State,
    generating: Generating | None,
    expected: Expected | None,
    observation: Observation,
    counts: ReplicaCounts,
    ready: Collection[str],
    hidden: Recommendation | None,
) -> Recommendation | None:
    """N_surge: what carries the arrivals and works off the queue that forms until it is ready.

    It takes the place of the rule for hidden demand: what waiting clients hold back shows in what
    is in flight, and to assume more has doubled services for nothing.
    """
    if generating is None or generating.fleet is None:
        return hidden
    fleet, in_flight = generating.fleet, generating.signals.in_flight
    if expected is None or not in_flight.fresh or in_flight.value is None:
        return None
    start_s = state.cold_starts.assumed_s
    targets = fleet.capacity.replica.targets
    # what only a forecast expects has formed no queue: the other rules have replicas for it in time
    present_rps = min(expected.later.for_ceiling_rps, generating.signals.arrival_rps.value or 0.0)
    found = surge.Surge(
        arrival_rps=max(present_rps, expected.burst_rps or 0.0),
        in_flight=_in_flight(state.windows, ready),
        left_s=[
            max(0.0, start_s - (observation.now_s - pod.started_s))
            for pod in observation.pods
            if pod.state is PodState.WARMING
        ],
        start_s=start_s,
        most_rps=fleet.capacity.most_rps,
        saturated_rps=fleet.capacity.saturated_rps,
        fit=fleet.cost.concurrency,
        target_s=targets.first_token.seconds if targets.first_token else policy.latency_target_s,
        rejected=observation.rejected_at_gateway is not None and not state.classes.filled,
    )
    capacity_rps = fleet.capacity_rps(policy.latency_target_s, max(1, observation.current))
    replicas = found.replicas(capacity_rps, sees_load=policy.routing.sees_load)
    if not replicas:
        return None
    if found.behind:  # a queue that lasts says that replicas take less than they seem to
        replicas = max(replicas, counts.ready + counts.warming)
    return Recommendation(
        rule=Reason.QUEUE_DEPTH,
        replicas=replicas,
        detail=f"{found.arrival_rps:.3g}/s over {capacity_rps:.3g}/s per replica, while "
        f"{found.behind} replicas work off {found.queue:.0f} requests that will have waited",
    )


def _in_flight(windows: Windows, ready: Collection[str]) -> list[int]:
    """Return the requests at each ready replica: at a silent one those of its last page.

    At one that was never scraped as many as at the median of the others.
    """
    last = [windows.last[uid] for uid in ready if uid in windows.last]
    known = [one.waiting + one.running for one in last]
    return known + [median_low(known)] * (len(ready) - len(known)) if known else []


def correct(
    state: State,
    generating: Generating,
    counts: ReplicaCounts,
    results: RuleResults,
    now_s: float,
    *,
    surging: bool,
) -> State:
    """Compare measured with modelled tails while the ready replicas have sufficed for a window."""
    fleet, rate = generating.fleet, generating.signals.arrival_rps
    if fleet is None or surging or counts.ready < max(1, results.sufficient):
        return replace(state, sufficient_since_s=None)
    since_s = now_s if state.sufficient_since_s is None else state.sufficient_since_s
    since_s = max(since_s, state.ready_since_s)
    state = replace(state, sufficient_since_s=since_s)
    if now_s - since_s < WINDOW_S or not rate.fresh or not rate.value or state.last_s is None:
        return state
    measured = generating.measured
    if generating.classes.filled:  # iterations are full whatever the load: it teaches no tail
        measured = {}
    learned = state.generation.corrected(
        fleet.capacity.replica,
        measured,
        rate.value,
        counts.ready,
        now_s - state.last_s,
    )
    return replace(state, generation=learned)


def until_seen(generating: Generating | None, state: State, results: RuleResults) -> RuleResults:
    """Return what the rules need, with removals that only go as far as the cost is known."""
    if generating is None or generating.fleet is None:
        return results
    least = state.generation.least_replicas(generating.signals.in_flight.value or 0.0)
    if least <= results.needed:
        return results
    return replace(
        results,
        needed=least,
        kept_because=f"a replica has carried at most {state.generation.highest_in_flight:.2g} "
        "requests at once, and what it carries beyond twice as many is not known yet",
    )


def _without(targets: TokenTargets, infeasible: Collection[Binding]) -> TokenTargets:
    """Return the promises that an idle replica keeps: misses of others teach nothing."""
    if not infeasible:
        return targets
    first, token = Binding.TIME_TO_FIRST_TOKEN, Binding.TIME_PER_OUTPUT_TOKEN
    return TokenTargets(
        first_token=None if first in infeasible else targets.first_token,
        output_token=None if token in infeasible else targets.output_token,
        latency=None if Binding.LATENCY in infeasible else targets.latency,
    )


def _of_latency(policy: Policy) -> TokenTargets:
    """Return the promise of a service that promises only the whole answer."""
    target = Target(percentile=policy.latency_percentile, seconds=policy.latency_target_s)
    return TokenTargets(latency=target)


def _generates(observation: Observation, state: State) -> bool:
    if state.generation.inputs is not None:
        return True
    return any(sample.generation is not None for sample in observation.samples)


def _outcomes(
    policy: Policy, state: State, targets: TokenTargets, latest: Mapping[Binding, Measured]
) -> Outcomes:
    """Return what ended since the last tick, and what of it broke a promise."""
    added = state.windows.series.added
    missed = float(added[:, MISSED].sum()) if len(added) else 0.0
    outcomes = outcomes_of(latest, 1.0 - policy.latency_percentile)
    found = Outcomes(ended=outcomes.ended + missed, late=outcomes.late + missed)
    if targets.latency is None:
        return found
    whole = Outcomes.of(state.windows, targets.latency.seconds)
    ended = max(found.ended, whole.ended)
    return Outcomes(ended=ended, late=min(ended, max(found.late, whole.late)))


def _with_latency(
    measured: Mapping[Binding, Measured], targets: TokenTargets, signals: Signals
) -> dict[Binding, Measured]:
    if targets.latency is None:
        return dict(measured)
    attained = signals.attainment.value
    whole = Measured(
        target=targets.latency,
        value_s=signals.latency_s.value,
        late_share=None if attained is None else 1.0 - attained,
        requests=0.0,
    )
    return {**measured, Binding.LATENCY: whole}


def _signals(
    policy: Policy,
    signals: Signals,
    measured: Mapping[Binding, Measured],
    fleet: GeneratingFleet | None,
    classes: ClassState,
) -> tuple[Signals, Signals]:
    """Return what is shown, and what is judged: without promises that no replica keeps."""
    infeasible = fleet.capacity.infeasible if fleet is not None else frozenset[Binding]()
    attained = attainment_of(measured)
    worst = worst_ratio({name: one for name, one in measured.items() if name not in infeasible})
    if (found := classes.judgement) is not None:
        attained, worst = found.attainment, found.worst_ratio(classes.hopeless)
    known, shown = signals.arrival_rps, signals
    if known.value is None:
        return shown, shown

    def as_known(value: float) -> Signal:
        return Signal(freshness=known.freshness, value=value, age_s=known.age_s)

    if attained is not None:
        shown = replace(signals, attainment=as_known(attained))
    if worst is None:
        return shown, shown
    return shown, replace(shown, latency_s=as_known(worst * policy.latency_target_s))
