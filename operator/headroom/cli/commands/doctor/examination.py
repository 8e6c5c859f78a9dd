"""Runs every check, causes before consequences."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from headroom.cli.commands.doctor.checks import (
    certificate_checks,
    cluster_checks,
    eviction_checks,
    node_checks,
    operator_checks,
    prometheus_checks,
    routing_checks,
    service_checks,
    telemetry_checks,
    token_checks,
)
from headroom.cli.commands.doctor.checks.condition_checks import conditions_need_attention
from headroom.cli.commands.doctor.facts import Facts
from headroom.cli.commands.doctor.findings import Diagnosis, Severity

Check = Callable[[Facts], Iterator[Diagnosis]]

CHECKS: tuple[Check, ...] = (
    cluster_checks.kubernetes_is_supported,
    cluster_checks.crd_is_current,
    cluster_checks.operator_runs,
    operator_checks.operators_share_no_services,
    operator_checks.namespaces_are_read,
    cluster_checks.operator_has_permissions,
    cluster_checks.clocks_agree,
    certificate_checks.certificates_are_valid,
    service_checks.spec_is_valid,
    service_checks.target_exists,
    service_checks.no_other_autoscaler,
    service_checks.nothing_is_paused,
    service_checks.service_is_evaluated,
    node_checks.nodes_take_pods,
    node_checks.accelerators_exist,
    service_checks.accelerators_are_as_claimed,
    eviction_checks.pods_have_one_budget,
    eviction_checks.pods_end_in_time,
    routing_checks.gateway_port_is_declared,
    routing_checks.policy_means_what_it_says,
    prometheus_checks.prometheus_answers,
    telemetry_checks.pods_expose_metrics,
    token_checks.promises_are_feasible,
    token_checks.tokens_are_identified,
    token_checks.pools_of_a_pair_have_one_priority,
)


def examined(facts: Facts) -> list[Diagnosis]:
    """Return every finding, the worst first, else in the order of the checks."""
    found = [one for check in CHECKS for one in check(facts)]
    found += conditions_need_attention(facts, tuple(found))
    found += cluster_checks.unread_parts(facts)
    order = list(Severity)
    return sorted(found, key=lambda one: order.index(one.severity))
