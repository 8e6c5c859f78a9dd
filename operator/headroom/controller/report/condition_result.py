"""A condition as a tick found it, and all that a tick brought to light."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from headroom.api import InferenceService
from headroom.api.conditions import Condition, ConditionStatus, ConditionType
from headroom.api.reasons import StatusReason
from headroom.controller.act.act_tick import WriteResult
from headroom.controller.decide.gateway_slo import DIRECT, GatewaySLI
from headroom.controller.decide.obstacles import ConflictStatus
from headroom.controller.decide.token_slo import Measured
from headroom.controller.gather.gather_tick import Gathered
from headroom.controller.gather.route_status import NOT_ROUTED, RouteStatus
from headroom.controller.report.next_steps import with_next_step
from headroom.controller.sharing.ceilings import Ceiling
from headroom.scaling.values import Decision


class ConditionResult(NamedTuple):
    """A condition without a memory of when it became so. Plain, since most are found as before."""

    kind: ConditionType
    status: ConditionStatus
    reason: StatusReason
    message: str

    def condition(self, generation: int) -> Condition:
        """Give the condition as found for this generation of the spec."""
        return Condition(
            type=self.kind,
            status=self.status,
            reason=self.reason,
            message=self.message,
            observed_generation=generation,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TickResult:
    """Everything that one tick brought to light."""

    service: InferenceService
    gathered: Gathered
    decision: Decision
    written: WriteResult
    preemption: str = ""
    """Who yields accelerators to the service; empty where nobody does."""
    ceiling: Ceiling | None = None
    """What the operator's settings allow it; None means that they were not asked."""
    conflicts: ConflictStatus = field(default_factory=ConflictStatus)
    """Who else scales the same."""
    route: RouteStatus = NOT_ROUTED
    gateway: GatewaySLI = DIRECT
    """What its clients see, where gateways count it."""
    misses_per_cold_start: float | None = None
    """Where it starts from no replica; None where that is not known, or cannot be."""
    tokens: tuple[Measured, ...] = ()
    """What is promised of tokens, as measured."""


def condition_result(
    kind: ConditionType, status: ConditionStatus, reason: StatusReason, message: str
) -> ConditionResult:
    """Return it with its next step."""
    return ConditionResult(kind, status, reason, with_next_step(kind, status, reason, message))


def join(*parts: str) -> str:
    """Put words of several together; those that are empty are left out."""
    return "; ".join(part for part in parts if part)
