"""Headroom: the production decision with the pages that it reads in production."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from headroom.scaling import Observation, Policy, State, decide
from headroom.scaling.post_rules import apply_post_rules
from headroom.scaling.values.partner import PairDecision, Partner
from headroom.scaling.values.policy import Routing
from headroom.simulator.autoscaler import ScaleRequest, View
from headroom.simulator.generation.autoscalers.peer import TokenPeer
from headroom.simulator.generation.plant import TokenRouting

_ROUTINGS = {
    TokenRouting.RANDOM: Routing.RANDOM,
    TokenRouting.LEAST_IN_FLIGHT: Routing.LEAST_IN_FLIGHT,
    TokenRouting.LEAST_TOKENS: Routing.LEAST_IN_FLIGHT,
    TokenRouting.PREFIX_AFFINITY: Routing.LEAST_IN_FLIGHT,
}


@dataclass(kw_only=True)
class TokenHeadroom(TokenPeer):
    """`decide()` at its production tick."""

    kind: ClassVar[str] = "headroom"

    period_s: float = 2.0
    bounded: float = 1.0
    """Whether Headroom's gateway is in front, which rejects overload."""
    partner: Partner | None = None
    """The other pool, where this one is a pool of a pair."""
    pair: PairDecision | None = field(default=None, init=False, repr=False)
    """Report of the last decision to the other pool."""
    state: State = field(default_factory=State.initial, init=False, repr=False)
    decided: Policy = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Set the policy."""
        routing = _ROUTINGS[self.truth.service.routing]
        self.decided = replace(self.policy, tick_s=self.period_s, routing=routing)

    def evaluate(self, view: View) -> ScaleRequest:
        """Return the decision of `decide`."""
        observation = Observation(
            now_s=view.now_s,
            current=view.replicas,
            pods=view.pods,
            samples=view.samples,
            rejected_at_gateway=view.rejected if self.bounded else None,
            partner=self.partner,
        )
        decided = decide(self.decided, self.state, observation)
        decision, self.state = apply_post_rules(self.decided, self.state, decided)
        self.pair, generation = decision.pair, decision.generation
        return ScaleRequest(
            replicas=decision.replicas,
            reason=decision.reason.value,
            message=decision.message,
            most_in_flight=generation.most_in_flight if self.bounded and generation else None,
        )
