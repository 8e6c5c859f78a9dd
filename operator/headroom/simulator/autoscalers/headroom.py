"""Headroom itself: the production decision, fed as production feeds it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from headroom.scaling import Observation, Policy, State, decide
from headroom.simulator.autoscaler import View, Wish


@dataclass
class Headroom:
    """`decide()` at its production tick, with direct scrapes of the pods."""

    policy: Policy
    name: str = "headroom"
    scrape_s: float = math.inf
    state: State = field(default_factory=State.initial)

    @property
    def period_s(self) -> float:
        """The production tick."""
        return self.policy.tick_s

    def evaluate(self, view: View) -> Wish:
        """Return what `decide` decides."""
        observation = Observation(
            now_s=view.now_s, current=view.replicas, pods=view.pods, samples=view.samples
        )
        decision, self.state = decide(self.policy, self.state, observation)
        return Wish(
            replicas=decision.replicas, reason=decision.reason.value, message=decision.message
        )

    def restart(self) -> None:
        """Begin anew from the checkpoint, as the operator does."""
        self.state = State.from_checkpoint(self.state.to_checkpoint())
