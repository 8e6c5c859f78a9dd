"""Every check, in the order in which its findings are read: the cause before what follows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from headroom.cli.commands.doctor import cluster_checks, service_checks, telemetry_checks
from headroom.cli.commands.doctor.facts import Facts
from headroom.cli.commands.doctor.findings import Diagnosis, Severity

Check = Callable[[Facts], Iterator[Diagnosis]]

CHECKS: tuple[Check, ...] = (
    cluster_checks.kubernetes_is_new_enough,
    cluster_checks.the_definition_is_current,
    cluster_checks.the_operator_runs,
    cluster_checks.the_operator_may_do_what_it_does,
    cluster_checks.the_clocks_agree,
    service_checks.the_spec_is_valid,
    service_checks.the_target_is_there,
    service_checks.nobody_else_scales_it,
    service_checks.it_is_not_paused,
    service_checks.it_is_evaluated,
    service_checks.there_are_accelerators,
    service_checks.replicas_can_start,
    telemetry_checks.prometheus_answers,
    telemetry_checks.pods_are_measured,
    service_checks.the_promise_can_be_kept,
    cluster_checks.what_was_not_read,
)


def examined(facts: Facts) -> list[Diagnosis]:
    """Give every finding, the worst first, else in the order of the checks."""
    found = [one for check in CHECKS for one in check(facts)]
    order = list(Severity)
    return sorted(found, key=lambda one: order.index(one.severity))
