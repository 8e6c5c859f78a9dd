"""The reasons of conditions that need no attention."""

from __future__ import annotations

from headroom.api.reasons import StatusReason

HEALTHY_REASONS = {
    StatusReason.SERVING,
    StatusReason.AUTO,
    StatusReason.METRICS_FRESH,
    StatusReason.SCALED,
    StatusReason.REPLICAS_OVERWRITTEN,
    StatusReason.WORKLOAD_PAUSED,
    StatusReason.ROLLING_OUT,
    StatusReason.NOTHING_TO_SCALE,
    StatusReason.WITHIN_BOUNDS,
    StatusReason.WITHIN_TARGET,
    StatusReason.FEASIBLE,
    StatusReason.DEMAND_COUNTED,
    StatusReason.NO_OBSTACLE,
    StatusReason.ALL_REPLICAS_SCHEDULED,
    StatusReason.REPLICAS_ALIKE,
    StatusReason.DIRECT_TO_PODS,
    StatusReason.VIA_GATEWAY,
}
