"""The reasons by user (conditions, doctor), as descriptions say; those that need no attention."""

from __future__ import annotations

from headroom.api.reasons import StatusReason
from headroom.cli.commands.reference.page import documented

OF_CONDITIONS = {
    StatusReason(value)
    for value, description in documented(StatusReason)
    if not description.startswith(("Doctor: ", "Event: ", "Event, doctor: "))
}
OF_DOCTOR = {
    StatusReason(value)
    for value, description in documented(StatusReason)
    if description.startswith(("Doctor: ", "Event, doctor: "))
}
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
    StatusReason.NO_PARTNER,
    StatusReason.PARTNER_SEEN,
}
