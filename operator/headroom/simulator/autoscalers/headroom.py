"""Headroom: the production decision with the inputs that it has in production."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from headroom.scaling import Observation, Policy, State, decide
from headroom.scaling.post_rules import apply_post_rules
from headroom.scaling.values.decision import Decision
from headroom.scaling.values.tuning import Component, Tuning
from headroom.simulator.autoscaler import ScaleRequest, View
from headroom.simulator.autoscalers.peer import Peer

COMPONENTS: tuple[str, ...] = tuple(component.value for component in Component)
"""Components that `without` accepts."""
_TUNING = Tuning()
_USUAL = Policy(latency_target_s=1.0)


@dataclass(kw_only=True)
class Headroom(Peer):
    """`decide()` at its production tick, with direct scrapes of the pods.

    The knobs are the constants of its tuning; production uses the defaults.
    """

    kind = "headroom"
    may_be_zero = frozenset({"hold_s"})

    period_s: float = _USUAL.tick_s
    scrape_s: float = math.inf
    hold_s: float = _USUAL.scale_down_stabilization_s
    stable_window_s: float = _USUAL.stable_window_s
    arrival_margin: float = _TUNING.arrival_margin
    burst_deviations: float = _TUNING.burst_deviations
    removal_latency_ratio: float = _TUNING.removal_latency_ratio
    expected_share: float = _TUNING.expected_share
    kept_share: float = _TUNING.kept_share
    drain_s: float = _TUNING.drain_s
    correction_s: float = _TUNING.correction_s
    without: str = ""
    """Disabled components, separated by `+`; an unknown one is an error."""
    state: State = field(default_factory=State.initial, init=False)
    decided: Policy = field(init=False)
    decision: Decision | None = field(default=None, init=False)
    """The latest one."""

    def __post_init__(self) -> None:
        """Raise ValueError for a knob out of its range or an unknown component."""
        Peer.__post_init__(self)
        left_out = frozenset(Component(word) for word in self.without.split("+") if word)
        self.decided = replace(
            self.policy,
            tick_s=self.period_s,
            stable_window_s=self.stable_window_s,
            scale_down_stabilization_s=self.hold_s
            if self.hold_s != _USUAL.scale_down_stabilization_s
            else self.policy.scale_down_stabilization_s,
            tuning=Tuning(
                arrival_margin=self.arrival_margin,
                burst_deviations=self.burst_deviations,
                removal_latency_ratio=self.removal_latency_ratio,
                expected_share=self.expected_share,
                kept_share=self.kept_share,
                drain_s=self.drain_s,
                correction_s=self.correction_s,
                without=left_out,
            ),
        )

    def evaluate(self, view: View) -> ScaleRequest:
        """Return the decision of `decide`."""
        observation = Observation(
            now_s=view.now_s,
            current=view.replicas,
            pods=view.pods,
            samples=view.samples,
            rejected_at_gateway=view.rejected,
        )
        decided = decide(self.decided, self.state, observation)
        decision, self.state = apply_post_rules(self.decided, self.state, decided)
        self.decision = decision
        replacement = decision.replacement
        return ScaleRequest(
            replicas=decision.replicas,
            reason=decision.reason.value,
            message=decision.message,
            replace=replacement.pod if replacement is not None and replacement.deletes else None,
        )

    def restart(self) -> None:
        """Restart from the checkpoint, as the operator does."""
        self.state = State.from_checkpoint(self.state.to_checkpoint())
