"""The result of a tick, and a condition computed from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from headroom.api import InferenceService
from headroom.api.reasons import StatusReason
from headroom.api.service_status.conditions import Condition, ConditionStatus, ConditionType
from headroom.controller.act.write_result import WriteResult
from headroom.controller.decide.gateway_slo import DIRECT, GatewaySLI
from headroom.controller.decide.measured_promise import Measured
from headroom.controller.decide.recovery import DecisionFailure
from headroom.controller.decide.scaling_conflicts import ConflictStatus
from headroom.controller.gather.gateways.route_status import NOT_ROUTED, RouteStatus
from headroom.controller.gather.gather_tick import Gathered
from headroom.controller.report.conditions.next_steps import with_next_step
from headroom.controller.sharing.caps import Ceiling
from headroom.scaling.generation.promises.class_judgement import ClassState
from headroom.scaling.values.decision import Decision
from headroom.scaling.values.signals import Freshness
from headroom.scaling.values.token_decision import GenerationMeasurement


class ConditionResult(NamedTuple):
    """A condition without its transition time. A plain tuple, because most do not change."""

    kind: ConditionType
    status: ConditionStatus
    reason: StatusReason
    message: str

    @classmethod
    def of_stored(cls, stored: Condition) -> ConditionResult | None:
        """Return a stored condition; None for a type or reason of another version."""
        try:
            kind, reason = ConditionType(stored.type), StatusReason(stored.reason)
        except ValueError:
            return None
        return cls(kind, stored.status, reason, stored.message)

    def condition(self, generation: int) -> Condition:
        """Return the condition for this generation of the spec."""
        return Condition(
            type=self.kind,
            status=self.status,
            reason=self.reason,
            message=self.message,
            observed_generation=generation,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TickResult:
    """Everything that one tick found out and did."""

    service: InferenceService
    gathered: Gathered
    decision: Decision
    written: WriteResult
    requested: int | None = None
    """Replicas that are to be requested: the decision, or spec.replicas within bounds and rates;
    None where that is not known."""
    rollout: str = ""
    """Text: the cause of a rollout's wait, or of its being in place; empty where all is usual."""
    preemption: str = ""
    """Services that give accelerators to this one; empty if none does."""
    accelerators: str = ""
    """Text: the spec claims other accelerators than the pod template requests; empty if it does
    not."""
    ceiling: Ceiling | None = None
    """Replicas that the operator's settings allow; None if they were not checked."""
    conflicts: ConflictStatus = field(default_factory=ConflictStatus)
    """Writes of others to the replicas."""
    route: RouteStatus = NOT_ROUTED
    gateway: GatewaySLI = DIRECT
    """Latency as clients see it, where gateways count it."""
    misses_per_cold_start: float | None = None
    """Requests that miss the SLO at each start from zero; None if not known or not possible."""
    tokens: tuple[Measured, ...] = ()
    """Token SLOs and their measurements, of all classes."""
    classes: ClassState = field(default_factory=ClassState)
    """Promises per class, as the decision left them."""
    generated: GenerationMeasurement | None = None
    """None: the servers generate no tokens."""
    failure: DecisionFailure | None = None
    """An exception inside the decision; None if there was none."""

    @property
    def is_at_zero(self) -> bool:
        """Whether scaleToZero removed the last replica."""
        return (
            self.written.replicas == 0
            and self.decision.replicas == 0
            and self.service.spec.scaling.min_replicas == 0
        )

    @property
    def is_waking(self) -> bool:
        """Whether the first replica after scale to zero is about to be written."""
        return (
            self.written.replicas == 0
            and self.decision.replicas > 0
            and self.service.spec.scaling.min_replicas == 0
            and self.service.spec.scaling.mode == "Auto"
            and self.written.refused is None
        )

    @property
    def is_collecting(self) -> bool:
        """Whether replicas answer and rates are not known yet: nothing is wrong, it passes.

        Gauges are stale if a scrape is late while the history is short, though every sample is
        recent.
        """
        signals = self.decision.signals
        answer = signals.waiting.fresh or signals.coverage == 1.0
        return answer and signals.arrival_rps.freshness is Freshness.MISSING

    @property
    def more_cannot_help(self) -> bool:
        """Whether even an idle replica exceeds the target."""
        return not self.decision.feasible


TRUE, FALSE, UNKNOWN = ConditionStatus.TRUE, ConditionStatus.FALSE, ConditionStatus.UNKNOWN
Judgement = tuple[ConditionStatus, StatusReason, str]
"""Status, reason and message of one condition."""

COLLECTING = "not enough metrics history yet to compute a request rate"


def condition_result(
    kind: ConditionType,
    status: ConditionStatus,
    reason: StatusReason,
    message: str,
    steps: Mapping[StatusReason, str] = MappingProxyType({}),
) -> ConditionResult:
    """Return the condition with its next step; `steps` are those that differ from the usual."""
    said = with_next_step(kind, status, reason, message, steps)
    return ConditionResult(kind, status, reason, said)


def join(*parts: str) -> str:
    """Join messages, without the empty ones."""
    return "; ".join(part for part in parts if part)
