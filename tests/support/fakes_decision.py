"""A decision for tests of metrics, which only need some decision."""

from __future__ import annotations

from headroom.scaling.values.decision import Decision
from headroom.scaling.values.decision_reason import Direction, Reason
from headroom.scaling.values.signals import Signals

ONE_REPLICA_KEPT = Decision(
    time_s=0.0,
    current=1,
    replicas=1,
    direction=Direction.NONE,
    reason=Reason.WITHIN_TARGET,
    message="1 replica",
    signals=Signals(),
)
