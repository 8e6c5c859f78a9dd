"""The decision of one tick: decide() on the gathered values, then the post-rules. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from headroom.api import InferenceService
from headroom.controller.decide.class_slo import NO_CLASSES, ClassSLO
from headroom.controller.decide.gateway_slo import DIRECT, GatewaySLI, rejected_at_gateway
from headroom.controller.decide.measured_promise import completed
from headroom.controller.decide.scale_to_zero import IdleTracker, post_rule_inputs
from headroom.controller.decide.token_rates import NO_TOKENS, TokenRates
from headroom.controller.decide.token_slo import NO_TOKEN_SLO, TokenSLOController
from headroom.controller.gather.gateways.route_status import RouteStatus
from headroom.scaling import Decision, Observation, Policy, State, decide
from headroom.scaling.post_rules import (
    PostRuleInputs,
    ScaleToZeroInputs,
    apply_post_rules,
    hold_for_token_slo,
)
from headroom.scaling.values.policy import Routing
from headroom.scaling.values.signals import Signals
from headroom.telemetry.samples.pod_samples import PodSamples

MISSED_TICKS = 3.0
"""Longer gaps between two ticks interrupt what is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceState:
    """State of the decisions about one service from tick to tick."""

    state: State
    tokens: TokenSLOController = NO_TOKEN_SLO
    classes: ClassSLO = NO_CLASSES
    """Promises per class, where there are any."""
    gateway: GatewaySLI = DIRECT
    """Latency and rejections as clients see them, where gateways count them."""
    idle: IdleTracker = field(default_factory=IdleTracker)
    rates: TokenRates = NO_TOKENS
    """Tokens per second, where the servers generate."""
    failed_ticks: int = 0
    """Ticks in a row in which the decision raised an exception, up to now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionInputs:
    """Known facts of one tick about a service."""

    service: InferenceService
    policy: Policy
    """Within the operator's caps."""
    min_replicas: int
    """minReplicas, or what a schedule makes of it now: 0 where the last replica may go."""
    observation: Observation
    """Report of the replicas."""
    samples: PodSamples
    route: RouteStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionResult:
    """The decision, and its inputs."""

    decision: Decision
    policy: Policy
    """Policy that decide() got: with the capacity factor, if the token SLO needs one."""
    before: State
    observation: Observation
    """With what the gateways rejected."""
    post_inputs: PostRuleInputs
    tokens: TokenSLOController
    """Controller of the token SLO as it was when it acted."""
    after: ServiceState
    """For the next tick."""


def decide_tick(inputs: DecisionInputs, known: ServiceState) -> DecisionResult:
    """Decide, and apply the post-rules. Same values, same result.

    A caller that discards the result has learned nothing: only `after` is kept.
    """
    policy, route = inputs.policy, inputs.route
    now_s = inputs.observation.now_s
    totals = route.totals if route.gateways else None
    gateway = known.gateway.observe(policy, totals, now_s)
    observation = replace(inputs.observation, rejected_at_gateway=rejected_at_gateway(totals))
    classes = known.classes.observe(
        inputs.service.spec.class_promises,
        inputs.samples.readings,
        now_s,
        counted=bool(inputs.samples.profile.class_label),
    )
    tokens = _measured(known.tokens, inputs.service, inputs.samples, now_s)
    tokens = tokens.judged_by(classes.measured)
    before = known.state
    if classes.state != before.classes:
        before = replace(before, classes=classes.state)

    if gateway.bypassed:
        policy = replace(policy, routing=Routing.RANDOM)
    adjusted = tokens.adjust_policy(policy)
    first, state = decide(adjusted, before, observation)
    tokens = tokens.split_by(first)
    if inputs.service.spec.target_ref is not None:
        gateway = gateway.compared(first.signals)
    idle = known.idle.observe(state, first, route, now_s, MISSED_TICKS * policy.tick_s)
    post_inputs = PostRuleInputs(
        capacity_factor=tokens.capacity_factor,
        capacity_factor_is_largest=tokens.is_largest(policy),
        token_slo_objection=tokens.removal_objection(first, state.classes.hopeless),
        gateway_counts_known=gateway.fresh,
        client_signals=_client_signals(gateway, first, state),
        zero=_zero(inputs, idle),
    )
    decision, state = apply_post_rules(adjusted, before, (first, state), post_inputs)
    return DecisionResult(
        decision=completed(decision, tokens.measured),
        policy=adjusted,
        before=before,
        observation=observation,
        post_inputs=post_inputs,
        tokens=tokens,
        after=ServiceState(
            state=state,
            classes=classes,
            tokens=tokens.update(policy, hold_for_token_slo(policy, post_inputs, first)),
            gateway=gateway,
            idle=idle,
            rates=known.rates.observe(observation.samples, now_s),
        ),
    )


def _client_signals(gateway: GatewaySLI, first: Decision, state: State) -> Signals | None:
    """Return the clients' signals, where gateways count them; they do not count per class."""
    if not gateway.watched:
        return None
    if state.classes.judgement is None:
        return gateway.signals
    return replace(gateway.signals, attainment=first.signals.attainment)


def _zero(inputs: DecisionInputs, idle: IdleTracker) -> ScaleToZeroInputs | None:
    """Return the input of the post-rule of scale to zero, if the last replica may go."""
    return post_rule_inputs(
        idle,
        inputs.route,
        now_s=inputs.observation.now_s,
        rolling=inputs.observation.rolling,
        min_replicas=inputs.min_replicas,
        idle_timeout_s=inputs.service.spec.scaling.scale_to_zero.idle_timeout.seconds,
    )


def _measured(
    before: TokenSLOController, service: InferenceService, samples: PodSamples, now_s: float
) -> TokenSLOController:
    """Observe the pods' token-latency histograms, where the service has a token SLO."""
    slo = service.spec.slo
    if slo.time_to_first_token is None and slo.time_per_output_token is None:
        return NO_TOKEN_SLO
    readings = samples.readings
    pages = {
        "timeToFirstToken": {pod: one.first_token for pod, one in readings.items()},
        "timePerOutputToken": {pod: one.output_token for pod, one in readings.items()},
    }
    return before.observe(slo, pages, now_s)
