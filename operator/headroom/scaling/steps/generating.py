"""Connects generation with the decision: the learned state of a tick, and the serving model.

A service with promises on tokens is sized by the same rules as any other; only the serving model
and the measured misses differ. Where the pages do not tell the cost of an iteration, the service is
sized by its batches, and the capacity factor of the token SLO acts, as without this module. Where
the cost will be known soon, only queues add replicas until then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headroom.scaling.frozen import replace
from headroom.scaling.generation.fleet.class_fleets import binding_fleet
from headroom.scaling.generation.fleet.generating_fleet import GeneratingFleet
from headroom.scaling.generation.fleet.learned_fleet import fleet_of
from headroom.scaling.generation.learning.learned import GenerationState
from headroom.scaling.generation.learning.model_inputs import Inputs
from headroom.scaling.generation.promises.class_judgement import ClassState
from headroom.scaling.generation.promises.classes import SERVICE
from headroom.scaling.generation.promises.token_promises import (
    NO_SPREADS,
    WINDOW_S,
    Measured,
    Spreads,
    strictest,
)
from headroom.scaling.generation.replica_model.replica import IDLE_RPS
from headroom.scaling.promise.error_budget import Outcomes
from headroom.scaling.state.state import State
from headroom.scaling.steps.generation_judgement import (
    judge_outcomes,
    judged_signals,
    with_latency,
    without_infeasible,
)
from headroom.scaling.values.observation import Observation
from headroom.scaling.values.policy import Policy, Routing
from headroom.scaling.values.signals import Signals
from headroom.scaling.values.tokens import Binding, Target, TokenTargets
from headroom.scaling.values.tuning import HOUR_S
from headroom.scaling.windows.by_replica import rejected_at_gateways


@dataclass(frozen=True, slots=True, kw_only=True)
class Generating:
    """Known facts of one tick about a generating service."""

    policy: Policy
    signals: Signals
    """With the attainment of all promises."""
    judged: Signals
    """With a latency that is the target times the worst share of a promise."""
    outcomes: Outcomes
    """Outcomes by the promises on tokens, also while the cost is not known; without the misses that
    no number of replicas prevents."""
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
    learned, awaits_cost = _learned(policy, state, observation, routing)
    if policy.token_targets is None:
        if learned.inputs is None and not awaits_cost:
            return replace(state, generation=learned), None
        policy = replace(policy, token_targets=targets)
    watched_s = state.windows.watched_s(observation.now_s, WINDOW_S)
    missed = state.windows.missed(watched_s)
    if targets.latency is None:
        missed = max(0.0, missed - learned.window.given_up())
    classes, kept = state.classes, targets
    if classes.judgement is not None:
        rejected = rejected_at_gateways(state.windows, watched_s)
        classes = replace(classes, judgement=replace(classes.judgement, rejected=rejected))
    own, fleet, classes = _fleets(policy, learned.inputs, targets, routing, classes, observation)
    expected = NO_SPREADS
    if own is not None and fleet is not None:
        learned, expected = _loaded(learned, own, fleet, signals, len(observation.ready))
        if policy.capacity_factor != 1.0:
            policy = replace(policy, capacity_factor=1.0)
        kept = without_infeasible(targets, own.capacity.infeasible)
    measured = with_latency(learned.window.measure(targets, missed, expected), targets, signals)
    latest = learned.window.latest(kept, observation.now_s, expected)
    begun = learned.window.given_up(observation.now_s) if targets.latency is None else 0.0
    learned, outcomes = judge_outcomes(policy, state, learned, kept, latest, begun, fleet, classes)
    shown, judged = judged_signals(policy, signals, measured, own, classes)
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


def _learned(
    policy: Policy, state: State, observation: Observation, routing: Routing
) -> tuple[GenerationState, bool]:
    """Return the learned state after this tick, and whether a cost will be known soon."""
    now_s, samples = observation.now_s, state.contradictions.used(observation.samples)
    learned = state.generation.observe(
        samples,
        {
            pod.uid: pod.created_s if pod.ready_s is None else pod.ready_s
            for pod in observation.ready
        },
        now_s,
        0.0 if state.last_s is None else now_s - state.last_s,
        policy.token_cost,
        sees_load=routing.sees_load,
    )
    return learned, learned.awaits_cost(samples, now_s)


def _fleets(
    policy: Policy,
    inputs: Inputs | None,
    targets: TokenTargets,
    routing: Routing,
    classes: ClassState,
    observation: Observation,
) -> tuple[GeneratingFleet | None, GeneratingFleet | None, ClassState]:
    """Return the models of the service's own promises and of the class that binds; the classes."""
    if inputs is None:
        return None, None, classes
    ready, target_s = len(observation.ready), policy.latency_target_s
    own = fleet_of(inputs, targets, routing, target_s, ready)
    fleet, classes = binding_fleet(
        classes,
        own,
        lambda one: fleet_of(inputs, one.targets, routing, target_s, ready, one.name),
        max(1, observation.current),
    )
    return own, fleet, classes


def _loaded(
    learned: GenerationState,
    own: GeneratingFleet,
    fleet: GeneratingFleet,
    signals: Signals,
    ready: int,
) -> tuple[GenerationState, Spreads]:
    """Note the load of a replica; return also the times of tokens to expect under it."""
    rate_rps = signals.arrival_rps
    if not (rate_rps.fresh and rate_rps.value is not None and ready):
        return learned, NO_SPREADS
    if rate_rps.value:
        load, in_flight = rate_rps.value / ready / fleet.capacity.most_rps, signals.in_flight
        seen = learned.seen_load.observe(load, (in_flight.value or 0.0) / ready)
        if seen is not learned.seen_load:
            learned = replace(learned, seen_load=seen)
    return learned, own.capacity.replica.spreads(max(IDLE_RPS, rate_rps.value / ready), ready)


def _of_latency(policy: Policy) -> TokenTargets:
    """Return the promise of a service that promises only the whole answer."""
    target = Target(percentile=policy.latency_percentile, seconds=policy.latency_target_s)
    return TokenTargets(latency=target)


def _generates(observation: Observation, state: State) -> bool:
    if state.generation.inputs is not None:
        return True
    return any(sample.generation is not None for sample in observation.samples)
