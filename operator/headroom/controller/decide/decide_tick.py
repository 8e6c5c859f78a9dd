"""What a tick decides: the law, between what tokens, gateways and zero make of it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from headroom.api import InferenceService
from headroom.controller.decide.gateway_slo import ELSEWHERE, AtTheGateway, rejected_at_gateway
from headroom.controller.decide.scale_to_zero import Quiet, settled
from headroom.controller.decide.token_slo import NOTHING_PROMISED, TokenPromises
from headroom.controller.gather.route_status import Standing
from headroom.scaling import Decision, Observation, Policy, State, decide
from headroom.telemetry.pod_samples import PodSamples

MISSED_TICKS = 3.0
"""A gap of more between two ticks is a gap in what is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learnt:
    """What the decisions on one service remember from tick to tick."""

    state: State
    tokens: TokenPromises = NOTHING_PROMISED
    seen: AtTheGateway = ELSEWHERE
    """What its clients see, where gateways count it."""
    quiet: Quiet = field(default_factory=Quiet)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What one tick knows of a service."""

    service: InferenceService
    policy: Policy
    """Within what the operator's settings allow."""
    least: int
    """minReplicas, or what a schedule makes of them now: 0 where the last one may go."""
    observation: Observation
    """As the replicas show it."""
    samples: PodSamples
    standing: Standing


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What is decided, and what it was decided from."""

    decision: Decision
    policy: Policy
    """What the law was asked: with room for tokens, where any is needed."""
    before: State
    observation: Observation
    """With what no replica has seen."""
    tokens: TokenPromises
    """As they were when they acted."""
    learnt: Learnt
    """For the next tick."""


def answer(question: Question, learnt: Learnt) -> Answer:
    """Decide: gateways and tokens first say what is asked of the law, then what speaks against it.

    Whether the last replica goes is settled after that. Same values, same answer; what is not kept
    of the answer was never learnt.
    """
    policy, standing, before = question.policy, question.standing, learnt.state
    now_s = question.observation.now_s
    tally = standing.tally if standing.gateways else None
    seen = learnt.seen.observe(policy, tally, now_s)
    observation = replace(question.observation, rejected_at_gateway=rejected_at_gateway(tally))
    tokens = _measured(learnt.tokens, question.service, question.samples, now_s)

    asked = tokens.acting(policy)
    decision, state = decide(asked, before, observation)
    decision, state = tokens.held(policy, before, state, decision)
    taught = tokens.learnt(policy, decision)
    decision, state = seen.held(policy, before, state, decision)
    longest_gap_s = MISSED_TICKS * policy.tick_s
    quiet = learnt.quiet.observe(state, decision, standing, now_s, longest_gap_s)
    idle_s = question.service.spec.scaling.scale_to_zero.idle_timeout.seconds
    decision = settled(decision, observation, quiet, standing, least=question.least, idle_s=idle_s)
    return Answer(
        decision=seen.judged(decision),
        policy=asked,
        before=before,
        observation=observation,
        tokens=tokens,
        learnt=Learnt(state=state, tokens=taught, seen=seen, quiet=quiet),
    )


def _measured(
    before: TokenPromises, service: InferenceService, samples: PodSamples, now_s: float
) -> TokenPromises:
    """Take in what the pods' histograms say of the promises on tokens, where any is made."""
    slo = service.spec.slo
    if slo.time_to_first_token is None and slo.time_per_output_token is None:
        return NOTHING_PROMISED
    readings = samples.readings
    pages = {
        "timeToFirstToken": {pod: one.first_token for pod, one in readings.items()},
        "timePerOutputToken": {pod: one.output_token for pod, one in readings.items()},
    }
    return before.observe(slo, pages, now_s)
