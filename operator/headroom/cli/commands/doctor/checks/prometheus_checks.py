"""Checks of the metrics from a Prometheus, by the operator's message about it."""

from __future__ import annotations

from collections.abc import Iterator

from headroom.api.reasons import StatusReason, reason_of
from headroom.api.service_status.conditions import ConditionType
from headroom.api.start_steps import without_doctor
from headroom.cli.commands.doctor.facts import Facts, Manifest, service_status, subject
from headroom.cli.commands.doctor.findings import Diagnosis, problem

_PASSING = frozenset(
    {StatusReason.NO_READY_REPLICAS, StatusReason.COLLECTING_METRICS, StatusReason.PENDING}
)
_REFUSES = (
    "Headroom sends no credentials to a Prometheus: name a proxy that adds them in the chart's "
    "prometheus.sources"
)
_ANSWERS = {
    "HTTP Status Code 401": _REFUSES,
    "HTTP Status Code 403": _REFUSES,
    "CERTIFICATE_VERIFY_FAILED": "Headroom trusts public certificate authorities only: name the "
    "address inside the cluster, or a proxy, in the chart's prometheus.sources",
    "has no recent sample": "in Prometheus, see Status > Target health for these pods: each must "
    "be up, with the labels namespace and pod; or set spec.telemetry.staleAfter above the scrape "
    "interval",
    "latest sample that Prometheus returns": "restart or bypass the cache or proxy that answers "
    "for Prometheus, or synchronize the clock of its node",
    "settings name no Prometheus": "correct spec.telemetry.prometheus, or add the source to the "
    "chart's prometheus.sources (headroom run --prometheus NAME=URL)",
}
"""Remedy by words of the condition, where the address and the network are not the cause."""
_UNREACHABLE = (
    "check that Prometheus runs, its address in the chart's prometheus.sources, and that a "
    "NetworkPolicy lets the operator reach it"
)
_PODS = "until then spec.telemetry.source: Pods reads the pods themselves"


def prometheus_answers(facts: Facts) -> Iterator[Diagnosis]:
    """Find services whose Prometheus gives the operator no samples."""
    for one in facts.services:
        if not reads_prometheus(one):
            continue
        for found in service_status(one).conditions:
            if found.type != ConditionType.METRICS_AVAILABLE or found.status == "True":
                continue
            if found.reason not in _PASSING:
                message = without_doctor(found.message)
                reason, remedy = _of_prometheus(message, reason_of(found.reason))
                why = f"metrics from its Prometheus are missing: {message}"
                yield problem(reason, subject(one), why, remedy)


def _of_prometheus(message: str, reason: StatusReason | None) -> tuple[StatusReason, str]:
    """Return the finding and the remedy for the operator's message about a Prometheus.

    One that answers is not unreachable: then the finding is the condition's own reason.
    """
    for words, remedy in _ANSWERS.items():
        if words in message:
            return reason or StatusReason.METRICS_MISSING, f"{remedy}; {_PODS}"
    return StatusReason.PROMETHEUS_UNREACHABLE, f"{_UNREACHABLE}; {_PODS}"


def reads_prometheus(one: Manifest) -> bool:
    """Return whether a service's metrics come from a Prometheus."""
    return str((one["spec"].get("telemetry") or {}).get("source", "Pods")) == "Prometheus"
