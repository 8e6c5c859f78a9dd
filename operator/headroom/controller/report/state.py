"""State of the report step for one service between ticks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from headroom.api.reasons import StatusReason
from headroom.api.service_status import conditions
from headroom.api.service_status.conditions import (
    Condition,
    Conditions,
    ConditionStatus,
    ConditionType,
)
from headroom.controller.act.write_result import WriteResult
from headroom.controller.report.conditions.damping import Damping
from headroom.controller.report.error_budget import ErrorBudget
from headroom.controller.report.status_throttle import StatusKey


@dataclass(slots=True, kw_only=True)
class ReportState:
    """Written by the report step only."""

    uid: str
    namespace: str
    name: str
    generation: int
    """Generation of the object as it was first read."""
    status: dict[str, Any]
    """Status as last written, or as read at the start."""
    known_s: float
    """Time when this process first saw the service."""
    budget: ErrorBudget = field(default_factory=ErrorBudget)
    damping: Damping | None = None
    """None before the first decision of this process."""
    key: StatusKey | None = None
    """Key of the status last written by this process; None before the first write."""
    written: WriteResult | None = None
    """Writes of a tick, as last reported by this process."""
    written_s: float | None = None
    """Time when this process last wrote the status."""
    preemption: str = ""
    """Services that give accelerators to this one, as last reported."""
    accelerators: str = ""
    """Accelerators that the spec claims and the pod template does not request, as reported."""
    events_s: dict[str, float] = field(default_factory=dict)
    """Time when an event of each reason was last posted."""

    @property
    def conditions(self) -> Conditions:
        """The conditions in status, or Unknown ones before the first write."""
        return conditions.read(self.status) or conditions.pending(self.generation, self.known_s)

    def was_valid(self, generation: int) -> bool:
        """Return whether status says that the API server accepted this generation of the spec."""
        one = self._ready(generation)
        if one is None or one.status is ConditionStatus.UNKNOWN:
            return False
        return one.reason != StatusReason.INVALID_SPEC

    def was_ready(self, generation: int) -> bool:
        """Return whether status says that this generation of the spec was in order."""
        one = self._ready(generation)
        return one is not None and one.status is ConditionStatus.TRUE

    def _ready(self, generation: int) -> Condition | None:
        """Return Ready of this generation: before a write it is still that of the one before."""
        found = (one for one in self.conditions if one.type == ConditionType.READY)
        return next((one for one in found if one.observed_generation == generation), None)
