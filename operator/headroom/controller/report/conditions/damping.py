"""Conditions that change only after the change has lasted. Pure.

The decision judges demand and obstacles at every tick, and near a limit its verdict alternates. A
condition turns from True after 10 s (five ticks), because a user waits for the cause, and back to
True after 60 s (two windows of 30 s without the cause). From Unknown it changes at once.
Replicas are judged over longer windows: that condition waits only before it becomes Unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from headroom.api.reasons import StatusReason
from headroom.api.service_status.conditions import Conditions, ConditionStatus, ConditionType
from headroom.controller.report.conditions.condition_result import ConditionResult

DAMPED = frozenset(
    {
        ConditionType.DEMAND_VISIBLE,
        ConditionType.SCALING_EFFECTIVE,
        ConditionType.REPLICAS_HEALTHY,
    }
)
WORSE_AFTER_S = 10.0
BETTER_AFTER_S = 60.0

Verdict = tuple[ConditionStatus, StatusReason]


@dataclass(frozen=True, slots=True, kw_only=True)
class Damping:
    """The reported state of each damped condition, and since when a change of it is delayed."""

    reported: Mapping[ConditionType, ConditionResult] = field(default_factory=dict)
    waiting: Mapping[ConditionType, tuple[Verdict, float]] = field(default_factory=dict)

    @classmethod
    def of_stored(cls, conditions: Conditions) -> Damping:
        """Continue from the conditions in status."""
        results = [ConditionResult.of_stored(one) for one in conditions if one.type in DAMPED]
        return cls(reported={one.kind: one for one in results if one is not None})

    def damped(
        self, found: Iterable[ConditionResult], now_s: float
    ) -> tuple[list[ConditionResult], Damping]:
        """Return the conditions to report: the earlier one where a change has not lasted."""
        shown: list[ConditionResult] = []
        reported: dict[ConditionType, ConditionResult] = {}
        waiting: dict[ConditionType, tuple[Verdict, float]] = {}
        for new in found:
            one = new
            if new.kind in DAMPED:
                since_s = self._since_s(new, now_s)
                if since_s is not None:
                    waiting[new.kind] = ((new.status, new.reason), since_s)
                    one = self.reported[new.kind]
                reported[new.kind] = one
            shown.append(one)
        return shown, Damping(reported=reported, waiting=waiting)

    def _since_s(self, new: ConditionResult, now_s: float) -> float | None:
        """Return since when the change is delayed; None if there is none, or it is due."""
        old, verdict = self.reported.get(new.kind), (new.status, new.reason)
        if old is None or old.status is ConditionStatus.UNKNOWN:
            return None
        if new.kind is ConditionType.REPLICAS_HEALTHY and new.status is not ConditionStatus.UNKNOWN:
            return None
        if verdict == (old.status, old.reason):
            return None
        before, since_s = self.waiting.get(new.kind, (None, now_s))
        if verdict != before or now_s < since_s:  # or the clock went back
            since_s = now_s
        after_s = BETTER_AFTER_S if new.status is ConditionStatus.TRUE else WORSE_AFTER_S
        return since_s if now_s - since_s < after_s else None
