"""One evaluation: the decision, and everything that it was made from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from headroom.api import InferenceService
from headroom.controller.gather.pods.pods import ObservedPod
from headroom.scaling import Decision, Observation, Policy, State
from headroom.scaling.post_rules import PostRuleInputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Enough to decide again under another policy."""

    service: InferenceService
    policy: Policy
    state: State
    """State before the decision."""
    observation: Observation
    post_inputs: PostRuleInputs = field(default_factory=PostRuleInputs)
    pods: tuple[ObservedPod, ...]
    decision: Decision
    accelerators_per_replica: int | None = None
    """From the spec, or from the pod template of a targetRef; None if that template is not read."""


class DecisionListener(Protocol):
    """Shows decisions to people; nothing depends on it."""

    def on_decision(self, evaluation: Evaluation) -> None:
        """Process an evaluation, at once and without I/O."""
        ...

    def on_removed(self, namespace: str, name: str) -> None:
        """Discard the state of a deleted service."""
        ...
