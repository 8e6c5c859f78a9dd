"""Inputs of the rules of a tick."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headroom.scaling.forecast.forecast import Expected
from headroom.scaling.promise.margin import NO_MARGIN, Margin
from headroom.scaling.promise.reserve import NO_RESERVE, Reserve, Usual
from headroom.scaling.serving_model import ServingModel
from headroom.scaling.values.decision import Recommendation, ReplicaCounts
from headroom.scaling.values.policy import Policy
from headroom.scaling.values.signals import Signals


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleInputs:
    """Everything that the rules depend on."""

    policy: Policy
    expected: Expected | None
    """The arrivals to plan for; None if unknown."""
    without_risk: Expected | None = None
    """The arrivals to plan for without a learned risk level; None if they are the same."""
    signals: Signals
    tail: ServingModel | None
    """Capacity of the replicas; None if unknown."""
    counts: ReplicaCounts
    target_s: float
    """The target that `tail` is inverted for."""
    backlogs: Sequence[int] = ()
    """The queues of replicas that hold more than they serve within the target."""
    hidden: Recommendation | None = None
    """Replicas that hidden demand or a surge asks for."""
    margin: Margin = NO_MARGIN
    reserve: Reserve = NO_RESERVE
    usual: Usual | None = None
    """The usual rate; None unless the service generates."""
    start_s: float = 0.0
    """A replica usually starts within it."""
    understated: float = 1.0
    """This many times the counted requests may arrive: a removal must leave enough for them."""
    full_batches_only: bool = False
    """Whether no smaller batch was ever seen: what the rate needs is known for full ones only."""
    settled: bool = True
    """Whether the ready replicas have served for a window."""
    parallel_requests: int | None = None
    """A replica executes this many at once, as its server says; None if unknown."""

    @property
    def reachable(self) -> bool:
        """Whether an idle replica meets the target, as far as is known."""
        return self.tail is None or self.tail.idle_s <= self.policy.latency_target_s
