"""Every metric is used, by the labels that it has; every reason to act on has an alert."""

from __future__ import annotations

import json
import re

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from chart import expressions
from chart.paths import ALERTS, DASHBOARD, RUNBOOK
from headroom.ops.operator_metrics import OperatorMetrics
from headroom.scaling.generation.promises.class_judgement import (
    ClassJudgement,
    ClassMeasurement,
    ClassState,
)
from headroom.scaling.generation.promises.classes import ClassPromise
from headroom.scaling.generation.promises.token_promises import Measured
from headroom.scaling.values.token_decision import (
    GenerationDecision,
    GenerationMeasurement,
    Identification,
)
from headroom.scaling.values.tokens import Binding, Target, TokenTargets
from support.fakes_decision import ONE_REPLICA_KEPT
from support.reasons_by_use import OF_CONDITIONS, OF_DOCTOR
from support.service_world import service

BOARD = json.loads(DASHBOARD.read_text())
RULES = yaml.safe_load(ALERTS.read_text())
ALERTED = expressions.of_alerts(RULES)
SHOWN = expressions.of_dashboard(BOARD)
OF_TARGET = {"namespace", "pod", "le"}
"""Labels that Prometheus adds: the operator's pod, and a histogram's bounds."""
SUFFIX = re.compile(r"_(bucket|count|sum)$")

GOOD_OR_PASSING = {
    *("Pending", "Serving", "ScaledToZero", "WarmingUp", "NamespaceTerminating", "Deleting"),
    *("Auto", "RecommendOnly", "ExternallyScaled", "MetricsFresh", "CollectingMetrics"),
    *("Scaled", "ReplicasOverwritten", "WorkloadPaused", "RollingOut", "NothingToScale"),
    *("WithinBounds", "RateLimited", "YieldedToPriority", "WithinTarget", "NoTraffic"),
    *("ClassNotMeasured", "LatencyNotMeasured", "Feasible", "CostUnknown", "DemandCounted"),
    *(
        "BatchSizeExceeded",
        "HiddenDemand",
        "RetriesCounted",
        "NoObstacle",
        "AllReplicasScheduled",
        "ReplicasAlike",
    ),
    *("DirectToPods", "ViaGateway", "NoPartner", "PartnerSeen"),
}
"""States that are good, chosen by the user, or temporary."""
SEEN_BY = {
    "NoReadyReplicas": "HeadroomNoReplicaReady",
    "ReplicasBroken": "HeadroomReplicasBroken",
    "ReplicasUnschedulable": "HeadroomReplicasUnschedulable",
    "CapacityShortage": "HeadroomReplicasUnschedulable",
    "MetricsStale": "HeadroomMetricsMissing",
    "MetricsMissing": "HeadroomMetricsMissing",
    "PartnerNotSeen": "HeadroomMetricsMissing",
    "MaxReplicas": "HeadroomErrorBudgetBurnsFast",
    "AboveTarget": "HeadroomLatencyAboveTarget",
    "SLOInfeasible": "HeadroomScalingIneffective",
    "ConnectionsPinned": "HeadroomScalingIneffective",
    "DownstreamLimit": "HeadroomScalingIneffective",
}
"""Reasons whose cause an alert sees in other metrics."""
FINDINGS = {
    "OperatorMissing": "HeadroomOperatorAbsent",
    "OperatorDown": "HeadroomOperatorAbsent",
    "OperatorsOverlap": "HeadroomOperatorsOverlap",
    "NamespaceUnread": "HeadroomNamespaceUnread",
    "PermissionMissing": "HeadroomForbidden",
    "CertificateMissing": "HeadroomCertificateExpires",
    "CertificateExpired": "HeadroomCertificateExpires",
    "NotEvaluated": "HeadroomDecisionsLate",
    "NodesUnavailable": "HeadroomReplicasUnschedulable",
    "NoAccelerators": "HeadroomReplicasUnschedulable",
    "InsufficientAccelerators": "HeadroomReplicasUnschedulable",
    "WrongPort": "HeadroomMetricsMissing",
    "WrongProfile": "HeadroomMetricsMissing",
    "PrometheusUnreachable": "HeadroomMetricsMissing",
    "BudgetsOverlap": "HeadroomEvictionsFail",
    "PodOverdue": "HeadroomPodOverdue",
}
"""The alert that sees what the doctor finds, or its consequence."""
DOCTOR_ALONE = {
    *("KubernetesTooOld", "CRDMissing", "CRDOutdated", "ClockSkew"),  # seen at an installation
    *("AcceleratorsDiffer", "PolicyUndone", "PrioritiesDiffer", "NotChecked"),
}


def specimen() -> OperatorMetrics:
    """Show every metric with all of its labels."""
    shown, of = OperatorMetrics(), service(spec__slo={"timeToFirstToken": {"target": "500ms"}})
    target = Target(percentile=0.95, seconds=0.5)
    promise = ClassPromise(name="chat", targets=TokenTargets(first_token=target))
    late = Measured(target=target, value_s=0.6, late_share=0.08, requests=90.0)
    measured = ClassMeasurement(promise=promise, window={Binding.TIME_TO_FIRST_TOKEN: late})
    shown.decided(of, ONE_REPLICA_KEPT)
    shown.overdue(of, 0)
    shown.gateway_rates(of, {"arrived": 1.0, "missed": 0.0})
    shown.tokens_measured(of, {"timeToFirstToken": 0.25}, 1.0)
    generated = GenerationMeasurement(generated_tokens_per_s=1.0, kv_used_share=0.5)
    shown.generated(
        of,
        GenerationDecision(
            identification=Identification(known=True), binding=Binding.TIME_TO_FIRST_TOKEN
        ),
        generated,
    )
    shown.classes_measured(of, ClassState(judgement=ClassJudgement(classes=(measured,))))
    shown.judged(of, kept=True)
    shown.show_unhealthy(of.namespace, of.name, {"WarmingUp"})
    shown.decision_failed(of, "ValueError")
    shown.ticked(seconds=0.1, lag_s=0.0, outcome="ok")
    shown.called(verb="get", code="200", seconds=0.1)
    shown.certificates({"tls": 0.0})
    shown.unread([("shop", "huge")])
    return shown


def labels() -> dict[str, set[str]]:
    """Return the labels of each series, by its name."""
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(specimen().page().decode()):
        of_service = family.name.startswith("headroom_service_")
        known = {"namespace", "inferenceservice"} if of_service else set()
        name = f"{family.name}_total" if family.type == "counter" else family.name
        found.setdefault(name, known)
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return {name: of for name, of in found.items() if not name.endswith("_created")}


@pytest.mark.parametrize("where", [*ALERTED, *SHOWN])
def test_expressions_select_and_group_by_labels_that_exist(where: str) -> None:
    expression, known = {**ALERTED, **SHOWN}[where], labels()
    for name, label in expressions.selected_in(expression):
        assert label in known[name], f"{name} has no label {label}"
    read = expressions.metrics_in(expression)
    grouped = expressions.grouped_in(expression) if read else set()
    assert grouped <= OF_TARGET.union(*(known[name] for name in read))


def test_every_metric_is_read_by_an_alert_or_the_dashboard() -> None:
    read = set[str]().union(*map(expressions.metrics_in, [*ALERTED.values(), *SHOWN.values()]))
    families = {SUFFIX.sub("", name) for name in labels()}
    assert families - {SUFFIX.sub("", name) for name in read} == set()


def test_every_reason_to_act_on_has_an_alert() -> None:
    blocked = set(re.findall(r"\w+", " ".join(re.findall(r'reason=~?"([^"]+)"', str(ALERTED)))))
    of_conditions = {one.value for one in OF_CONDITIONS}
    assert blocked | GOOD_OR_PASSING | set(SEEN_BY) == of_conditions
    assert not blocked & (GOOD_OR_PASSING | set(SEEN_BY))
    assert set(SEEN_BY.values()) <= set(ALERTED)


def test_every_finding_has_an_alert_whose_section_of_the_runbook_is_there() -> None:
    assert set(FINDINGS) | DOCTOR_ALONE == {one.value for one in OF_DOCTOR}
    assert set(FINDINGS.values()) <= set(ALERTED)
    text = RUNBOOK.read_text()
    for finding in ("OperatorsOverlap", "BudgetsOverlap", "PodOverdue"):
        section = text.split(f"\n## {FINDINGS[finding]}\n")[1].split("\n## ")[0]
        assert f"`{finding}`" in section
