"""The model of a tick: cost of a replica, capacity of the fleet, and tail latency to judge by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headroom.scaling.cost.claims import Claim, claim_of
from headroom.scaling.frozen import replace
from headroom.scaling.latency.tail_latency import TailLatency
from headroom.scaling.serving_model import ReplicaCost, ServingModel
from headroom.scaling.state.state import State
from headroom.scaling.steps import generating
from headroom.scaling.steps.generating import Generating
from headroom.scaling.steps.latency_model import corrected_target_s, tail_of
from headroom.scaling.values.observation import CostModel, Observation
from headroom.scaling.values.policy import Policy
from headroom.scaling.values.signals import Signals
from headroom.scaling.values.tuning import Component


@dataclass(frozen=True, slots=True, kw_only=True)
class TickModel:
    """Model of the replicas at one tick; a service that generates adapts policy and signals."""

    policy: Policy
    signals: Signals
    judged: Signals
    """With the latency of the worst promise, for a service that generates."""
    claim: Claim | None
    """Cost that the servers report of themselves."""
    cost: CostModel | None
    """The learned cost of a batch."""
    batches: TailLatency | None
    """The latency of batches under the policy's routing; None if unknown."""
    serving: ServingModel | None
    """Capacity of the replicas, by batches or by generation; None if unknown."""
    saturated_cost: ReplicaCost | None
    """Cost of a replica that is saturated."""
    target_s: float
    """The target that `serving` is inverted for."""
    generation: Generating | None

    @property
    def reachable(self) -> bool:
        """Whether an idle replica meets the target, as far as is known."""
        return self.serving is None or self.serving.idle_s <= self.policy.latency_target_s


def observe(
    policy: Policy, state: State, observation: Observation, signals: Signals, ready: Sequence[str]
) -> tuple[State, TickModel]:
    """Return the model that the `ready` replicas are sized with, and the state after this tick."""
    claim = claim_of(state.windows.last.values())
    cost = state.learner.fit(claim)
    if cost is not None and not policy.tuning.has(Component.VARIATION):
        cost = replace(cost, cv=0.0)
    routing_transition, correction = state.routing_transition.observe(
        policy.routing, state.correction, observation.now_s, policy.tuning.correction_s
    )
    if routing_transition is not state.routing_transition:
        state = replace(state, routing_transition=routing_transition, correction=correction)
    routing, factor = routing_transition.effective_routing(policy.routing, correction)
    speeds, connections = state.learner.speeds, state.connections.number
    batches = tail_of(policy, cost, routing, speeds, ready, connections)
    target_s = corrected_target_s(policy, batches, factor)
    serving: ServingModel | None = batches
    saturated: ReplicaCost | None = cost
    judged = signals
    state, generation = generating.observe(policy, state, observation, signals, routing)
    if generation is not None:
        policy, signals, judged = generation.policy, generation.signals, generation.judged
    if generation is not None and generation.fleet is not None:
        serving, saturated = generation.fleet, generation.fleet.saturation
        target_s = policy.latency_target_s
    elif generation is not None and generation.awaits_cost:
        batches = serving = saturated = None
    if routing is not policy.routing and batches is not None:
        batches = tail_of(policy, cost, policy.routing, speeds, ready, connections)
    return state, TickModel(
        policy=policy,
        signals=signals,
        judged=judged,
        claim=claim,
        cost=cost,
        batches=batches,
        serving=serving,
        saturated_cost=saturated,
        target_s=target_s,
        generation=generation,
    )
