"""The metrics of one service: name, help text and label of each, in the order of the page."""

from __future__ import annotations

from collections.abc import Mapping

from headroom.ops.service_gauges import Family

SLO_WINDOWS = "headroom_service_slo_windows_total"
REPLICAS = "headroom_service_replicas"
OVERDUE = "headroom_service_pods_overdue"
DEMAND_KNOWN = "headroom_service_demand_known"
UNHEALTHY_CONDITION = "headroom_service_unhealthy_condition"
OBSTACLE = "headroom_service_obstacle"
ARRIVALS = "headroom_service_arrivals_per_second"
DEMAND = "headroom_service_demand_per_second"
DEMAND_AT_MOST = "headroom_service_demand_at_most_per_second"
MARGIN = "headroom_service_margin_ratio"
LATE_REQUESTS = "headroom_service_late_requests_ratio"
WAITING = "headroom_service_requests_waiting"
LATENCY = "headroom_service_latency_seconds"
LATENCY_TARGET = "headroom_service_latency_target_seconds"
UTILIZATION = "headroom_service_utilization_ratio"
OBJECTIVE = "headroom_service_slo_objective_ratio"
CEILING = "headroom_service_utilization_ceiling_ratio"
DECIDED_AT = "headroom_service_last_decision_timestamp_seconds"
GATEWAY_ARRIVALS = "headroom_service_gateway_arrivals_per_second"
GATEWAY_MISSES = "headroom_service_gateway_misses_per_second"
OBJECTIVE_LATENCY = "headroom_service_token_latency_seconds"
OBJECTIVE_TARGET = "headroom_service_token_latency_target_seconds"
TOKENS = "headroom_service_tokens_per_second"
KV_USED = "headroom_service_kv_used_ratio"
GENERATING_CAPACITY = "headroom_service_generating_capacity_per_second"
BINDING = "headroom_service_generation_binding"
CLASS_ATTAINMENT = "headroom_service_class_attainment_ratio"
CLASS_USED = "headroom_service_class_target_used_ratio"
CAPACITY_FACTOR = "headroom_service_token_slo_capacity_factor"

FAMILIES: Mapping[str, Family] = {
    SLO_WINDOWS: Family(
        text="One-minute windows with traffic, by whether they met the latency target.",
        label="met",
        kind="counter",
    ),
    REPLICAS: Family(text="Number of replicas by state.", label="state"),
    OVERDUE: Family(text="Pods that should have ended: their node or a finalizer holds them."),
    DEMAND_KNOWN: Family(
        text="1 for how the arrival rate relates to the demand (Exact, AtLeast, IncludesRetries).",
        label="known",
    ),
    OBSTACLE: Family(
        text="1 for what keeps latency above its target and more replicas cannot change.",
        label="obstacle",
    ),
    UNHEALTHY_CONDITION: Family(
        text="1 for each unhealthy condition, by its reason.", label="reason"
    ),
    ARRIVALS: Family(text="Arrival rate in requests per second."),
    DEMAND: Family(
        text="Requests per second that the rules use; a bound of "
        "what clients want to send, unless demand is known to be exact."
    ),
    DEMAND_AT_MOST: Family(text="Upper bound of hidden demand."),
    MARGIN: Family(text="Learned factor on the replicas that carry the arrivals."),
    LATE_REQUESTS: Family(text="Share of the last hour's requests that were late."),
    WAITING: Family(text="Requests queued, without those in a batch."),
    LATENCY: Family(text="Latency at the percentile; +Inf where too many requests missed."),
    LATENCY_TARGET: Family(text="Target of the latency at the percentile."),
    UTILIZATION: Family(text="Arrival rate divided by full-batch throughput."),
    OBJECTIVE: Family(text="Share of windows that must meet the target."),
    CEILING: Family(text="Maximum utilization after any decision."),
    DECIDED_AT: Family(text="Unix time of the last scaling decision."),
    GATEWAY_ARRIVALS: Family(text="Arrival rate at the gateways in requests per second."),
    GATEWAY_MISSES: Family(
        text="Requests that the gateways reject or that fail, expire or are given up per second."
    ),
    OBJECTIVE_LATENCY: Family(text="Latency at the percentile of a token SLO.", label="slo"),
    OBJECTIVE_TARGET: Family(text="Target of a token SLO.", label="slo"),
    TOKENS: Family(
        text="Tokens generated, and prompt tokens computed, by all replicas in the last minute.",
        label="kind",
    ),
    KV_USED: Family(text="Share of the KV memory in use, of the replica with the largest."),
    GENERATING_CAPACITY: Family(
        text="Requests per second that a generating replica carries within all bounds."
    ),
    BINDING: Family(text="1 for what bounds the rate of a generating replica.", label="bound"),
    CLASS_ATTAINMENT: Family(
        text="Share of the last minute's requests of a class that kept all its promises.",
        label="class",
    ),
    CLASS_USED: Family(
        text="Largest measured percentile of a class over its target.", label="class"
    ),
    CAPACITY_FACTOR: Family(
        text="Factor by which capacity is increased to meet token SLOs; 1 without need."
    ),
}
