"""The doctor: one planted mistake per row, a healthy cluster, and the report."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import pytest

from fakes_doctor import (
    CUSTOM,
    HEALTHY,
    NODE,
    NOW_S,
    OF_KEDA,
    OPERATOR,
    PAUSED,
    SERVICE,
    TARGET_REF,
    UID,
    How,
    answering,
    autoscaler,
    budget,
    closed,
    conditioned,
    labelled,
    lease,
    leaving,
    saying,
    serving,
    stale_crd,
    started,
)
from headroom.api.reasons import StatusReason
from headroom.cli.commands.doctor.cluster_checks import difference
from headroom.cli.commands.doctor.examination import examined
from headroom.cli.commands.doctor.facts import Facts, Unread
from headroom.cli.commands.doctor.findings import Severity, as_json, as_text, is_well
from headroom.controller.gather.scrape_failure import NOT_SCRAPED, OLD
from headroom.controller.permissions import Permission

DRAINED = "1 replica: 0/3 nodes are available: 1 node(s) were unschedulable"
APART = {
    "one Lease": (started("a", "--lease-namespace=x"), started("b", "--lease-namespace=x")),
    "own namespaces": (started("a", "--namespace=shop"), started("b", "--namespace=ads")),
    "one is scaled to 0": (OPERATOR, started("b", replicas=0)),
}
MISTAKES = [
    pytest.param(
        replace(
            HEALTHY,
            denied=(
                (
                    "system:serviceaccount:headroom-system:headroom-operator",
                    Permission(verb="patch", group="apps", resource="deployments/scale"),
                ),
            ),
        ),
        StatusReason.PERMISSION_MISSING,
        "it may not patch deployments.apps --subresource=scale -A",
        "rbac.yaml",
        id="missing RBAC",
    ),
    pytest.param(
        replace(HEALTHY, operators=(OPERATOR, started("team-a"))),
        StatusReason.OPERATORS_OVERLAP,
        "evaluates the same services, in all namespaces: both decide",
        "watch.namespaces",
        id="a second release for all namespaces",
    ),
    pytest.param(
        replace(
            HEALTHY,
            operators=(
                started("a", "--namespace=shop", "--namespace=ads"),
                started("b", "--namespace", "ads"),
            ),
        ),
        StatusReason.OPERATORS_OVERLAP,
        "evaluates the same services, in ads: both decide",
        "watch.namespaces",
        id="two releases that share a namespace",
    ),
    pytest.param(
        replace(
            HEALTHY,
            targets={UID: labelled({"app": "resnet50", "team": "vision"})},
            budgets=(
                budget("resnet50", {"app": "resnet50"}),
                budget("theirs", {"team": "vision"}),
                budget("others", {"team": "speech"}),
                budget("elsewhere", {"team": "vision"}, "elsewhere"),
            ),
        ),
        StatusReason.BUDGETS_OVERLAP,
        "PodDisruptionBudgets resnet50, theirs select its pods",
        "kubectl delete poddisruptionbudget theirs --namespace vision",
        id="two PodDisruptionBudgets",
    ),
    pytest.param(
        replace(HEALTHY, pods={UID: (leaving("2026-11-20T11:50:00Z"),)}),
        StatusReason.POD_OVERDUE,
        "pod resnet50-1 should have ended 10 min ago, and node gpu-1 has not said that it is gone",
        "kubectl describe node gpu-1",
        id="a pod on a lost node",
    ),
    pytest.param(
        replace(HEALTHY, pods={UID: (leaving("2026-11-20T11:50:00Z", "example.com/hold"),)}),
        StatusReason.POD_OVERDUE,
        "its finalizers hold it: example.com/hold",
        "kubectl edit pod resnet50-1 --namespace vision",
        id="a pod with a finalizer",
    ),
    pytest.param(
        replace(HEALTHY, certificates={"headroom-system/headroom-gateway-tls": None}),
        StatusReason.CERTIFICATE_MISSING,
        "has no certificate with its key",
        "kubectl describe secret headroom-gateway-tls --namespace headroom-system",
        id="no certificate for the gateways",
    ),
    pytest.param(
        replace(HEALTHY, certificates={"headroom-system/headroom-operator-tls": NOW_S - 5400.0}),
        StatusReason.CERTIFICATE_EXPIRED,
        "expired 1.5 h ago",
        "read the log of the leading operator",
        id="an expired certificate",
    ),
    pytest.param(
        answering(how=How.REFUSED, detail="connection refused", declared=(8080,)),
        StatusReason.WRONG_PORT,
        "port 8000, /metrics: connection refused; its containers declare 8080",
        "spec.runtime.port",
        id="wrong port",
    ),
    pytest.param(
        answering(how=How.SILENT, detail="no answer in time", declared=(8000,)),
        StatusReason.WRONG_PORT,
        "no answer in time",
        "spec.runtime.port",
        id="wrong port, packets dropped",
    ),
    pytest.param(
        answering(names=frozenset({"vllm:num_requests_waiting", "python_info"})),
        StatusReason.WRONG_PROFILE,
        "the profile is headroom, and the metrics",
        "set spec.runtime.profile to vllm",
        id="wrong profile",
    ),
    pytest.param(
        answering(how=How.NOT_THERE, detail="it answers 404", names=frozenset()),
        StatusReason.METRICS_MISSING,
        "the server has no metrics",
        "enable the server's metrics",
        id="no metrics, no page",
    ),
    pytest.param(
        answering(names=frozenset({"python_info"})),
        StatusReason.METRICS_MISSING,
        "has no metric of profile headroom",
        "enable the server's metrics",
        id="no metrics on the page",
    ),
    pytest.param(
        answering(how=How.OTHER, detail="it answers 500"),
        StatusReason.METRICS_MISSING,
        "returns no metrics: it answers 500",
        "kubectl logs resnet50-abc-1",
        id="a server that fails",
    ),
    pytest.param(
        replace(HEALTHY, autoscalers=(autoscaler(),)),
        StatusReason.AUTOSCALER_CONFLICT,
        "HorizontalPodAutoscaler vision/cpu scales the same Deployment",
        "kubectl delete hpa/cpu --namespace vision",
        id="HPA conflict",
    ),
    pytest.param(
        replace(HEALTHY, autoscalers=(autoscaler(ownerReferences=OF_KEDA),)),
        StatusReason.AUTOSCALER_CONFLICT,
        "scales the same Deployment",
        "kubectl delete scaledobject/mine",
        id="KEDA conflict",
    ),
    pytest.param(
        replace(HEALTHY, nodes=()),
        StatusReason.NO_ACCELERATORS,
        "a replica needs 1 nvidia.com/gpu, and the largest node has 0",
        "device plugin",
        id="no GPUs",
    ),
    pytest.param(
        serving(spec__accelerator={"resource": "nvidia.com/gpu", "count": 16}),
        StatusReason.NO_ACCELERATORS,
        "a replica needs 16 nvidia.com/gpu, and the largest node has 8",
        "spec.accelerator",
        id="a replica larger than any node",
    ),
    pytest.param(
        conditioned(saying("SLOFeasible", "False", "SLOInfeasible", "idle takes 210ms")),
        StatusReason.SLO_INFEASIBLE,
        "idle takes 210ms",
        "raise spec.slo.latency.target",
        id="bad SLO, below what an idle replica takes",
    ),
    pytest.param(
        serving(spec__slo={"latency": {"target": "soon"}}),
        StatusReason.INVALID_SPEC,
        "spec.slo.latency.target: must be numbers with units",
        "kubectl edit inferenceservices.headroom.dev/resnet50",
        id="bad SLO, stored before a rule",
    ),
    pytest.param(
        conditioned(saying("Ready", "False", "InvalidSpec", "no such container")),
        StatusReason.INVALID_SPEC,
        "no such container",
        "kubectl edit",
        id="a pod template that the API server refuses",
    ),
    pytest.param(
        replace(HEALTHY, crd=stale_crd()),
        StatusReason.CRD_OUTDATED,
        "first at /properties/spec/properties/slo",
        "headroom crd | kubectl apply",
        id="stale CRD",
    ),
    pytest.param(
        replace(HEALTHY, crd=None),
        StatusReason.CRD_MISSING,
        "is not installed",
        "headroom crd | kubectl apply",
        id="no CRD",
    ),
    pytest.param(
        conditioned(
            saying("MetricsAvailable", "False", "MetricsMissing", "prometheus: no route"),
            spec__telemetry={"source": "Prometheus"},
        ),
        StatusReason.PROMETHEUS_UNREACHABLE,
        "prometheus: no route",
        "its address in the chart's prometheus.sources",
        id="unreachable Prometheus",
    ),
    pytest.param(
        conditioned(
            saying("MetricsAvailable", "False", "MetricsStale", f"p: {OLD % 'noon'}"),
            spec__telemetry={"source": "Prometheus"},
        ),
        StatusReason.METRICS_STALE,
        "the latest sample that Prometheus answers is of noon",
        "the cache or proxy that answers for Prometheus",
        id="stale answers of a Prometheus",
    ),
    pytest.param(
        conditioned(
            saying("MetricsAvailable", "False", "MetricsMissing", f"p: {NOT_SCRAPED}"),
            spec__telemetry={"source": "Prometheus"},
        ),
        StatusReason.METRICS_MISSING,
        "no recent sample",
        "Target health",
        id="pods that a Prometheus does not scrape",
    ),
    pytest.param(
        replace(HEALTHY, leases=(lease("2026-11-20T12:00:42.5Z"),)),
        StatusReason.CLOCK_SKEW,
        "its clock is 42 s ahead of the API server's",
        "synchronize its clock",
        id="clock skew of a node",
    ),
    pytest.param(
        serving(status__decision={"time": "2026-11-20T12:00:30Z", "replicas": 1, "current": 1}),
        StatusReason.CLOCK_SKEW,
        "the operator's clock is 30 s ahead of",
        "synchronize its clock",
        id="clock skew of the operator",
    ),
    pytest.param(
        serving(status__decision={"time": "2026-11-20T11:59:00Z", "replicas": 1, "current": 1}),
        StatusReason.CLOCK_SKEW,
        "the operator's clock is 60 s behind",
        "synchronize its clock",
        id="clock skew of the operator, behind",
    ),
    pytest.param(
        replace(HEALTHY, targets={UID: PAUSED}),
        StatusReason.WORKLOAD_PAUSED,
        "the rollout of deployment/resnet50 is paused",
        "kubectl rollout resume deployment/resnet50",
        id="paused rollout",
    ),
    pytest.param(
        serving(spec__scaling={"mode": "Recommend"}),
        StatusReason.RECOMMEND_ONLY,
        "scaling.mode is Recommend",
        "spec.scaling.mode to Auto",
        id="paused by its mode",
    ),
    pytest.param(
        replace(HEALTHY, operators=(OPERATOR | {"spec": {"replicas": 0}},)),
        StatusReason.OPERATOR_DOWN,
        "the operator is scaled to 0",
        "kubectl scale deployment/headroom-operator",
        id="paused operator",
    ),
    pytest.param(
        replace(HEALTHY, operators=()),
        StatusReason.OPERATOR_MISSING,
        "no Deployment",
        "install the operator",
        id="no operator",
    ),
    pytest.param(
        replace(HEALTHY, operators=(OPERATOR | {"status": {}},)),
        StatusReason.OPERATOR_DOWN,
        "not available",
        "kubectl logs deployment/headroom-operator",
        id="an operator that crashes",
    ),
    pytest.param(
        replace(HEALTHY, version=(1, 29)),
        StatusReason.KUBERNETES_TOO_OLD,
        "Kubernetes is 1.29",
        "upgrade",
        id="old Kubernetes",
    ),
    pytest.param(
        serving(status__observedGeneration=2, status__decision={}, status__conditions=[]),
        StatusReason.NOT_EVALUATED,
        "generation 3 is not observed; the status is of 2",
        "watches this namespace",
        id="a namespace that is not watched",
    ),
    pytest.param(
        replace(HEALTHY, now_s=NOW_S + 3600),
        StatusReason.NOT_EVALUATED,
        "the last decision is 60 min old",
        "read its log",
        id="an operator that decides no more",
    ),
    pytest.param(
        conditioned(saying("CapacityAvailable", "False", "ReplicasBroken", "warm-up timeout")),
        StatusReason.REPLICAS_BROKEN,
        "warm-up timeout",
        "--selector headroom.dev/inference-service=resnet50",
        id="broken replicas",
    ),
    pytest.param(
        conditioned(saying("CapacityAvailable", "False", "ReplicasBroken", "ErrImagePull: typo")),
        StatusReason.REPLICAS_BROKEN,
        "ErrImagePull",
        "correct the image (name, tag, digest)",
        id="an image with a wrong tag",
    ),
    pytest.param(
        replace(
            conditioned(saying("CapacityAvailable", "False", "ReplicasUnschedulable", DRAINED)),
            nodes=(NODE, closed("gpu-2", spec={"unschedulable": True}), closed("gpu-3", lost=True)),
        ),
        StatusReason.NODES_UNAVAILABLE,
        "nodes with 16 nvidia.com/gpu take no pods: gpu-2 (cordoned), gpu-3 (not ready)",
        "kubectl uncordon",
        id="nodes that are drained and lost",
    ),
    pytest.param(
        conditioned(saying("AbleToScale", "False", "ScaleFailed", "delete the Deployment")),
        StatusReason.SCALE_FAILED,
        "delete the Deployment",
        "follow the message",
        id="a refused write",
    ),
    pytest.param(
        conditioned(saying("SLOMet", "False", "AboveTarget", "p95 is 310ms")),
        StatusReason.ABOVE_TARGET,
        "SLOMet is False: p95 is 310ms",
        "headroom explain resnet50 --namespace vision",
        id="a missed SLO",
    ),
    pytest.param(
        conditioned(
            saying("MetricsAvailable", "False", "MetricsMissing", "see kubectl headroom doctor"),
            spec__runtime=CUSTOM,
        ),
        StatusReason.METRICS_MISSING,
        "has no metric busy_bucket, queued",
        "spec.runtime.metrics",
        id="a custom metric that does not exist",
    ),
]


@pytest.mark.parametrize(("facts", "finding", "why", "remedy"), MISTAKES)
def test_doctor_finds_planted_mistake_with_remedy(
    facts: Facts, finding: StatusReason, why: str, remedy: str
) -> None:
    found = [one for one in examined(facts) if one.severity is not Severity.NOTE]
    assert [one.finding for one in found] == [finding], "nothing else is blamed"
    assert why in found[0].why
    assert remedy in found[0].remedy
    assert not is_well(found)


def test_healthy_cluster_gives_no_finding() -> None:
    assert examined(HEALTHY) == []


HARMLESS: list[Any] = [
    pytest.param(replace(HEALTHY, leases=(lease("2026-11-20T12:00:03Z"),)), id="clocks 3 s apart"),
    pytest.param(replace(HEALTHY, autoscalers=(autoscaler(name="other"),)), id="an HPA of another"),
    pytest.param(
        replace(HEALTHY, autoscalers=(autoscaler(kind="StatefulSet"),)), id="an HPA of another kind"
    ),
    pytest.param(
        replace(serving(spec__accelerator={"count": 0}), nodes=()), id="a service without GPUs"
    ),
    pytest.param(
        conditioned(
            saying("MetricsAvailable", "False", "NoReadyReplicas"),
            spec__telemetry={"source": "Prometheus"},
        ),
        id="Prometheus has nothing to say yet",
    ),
    pytest.param(
        serving(
            metadata__creationTimestamp="2026-11-20T11:59:30Z",
            status__observedGeneration=0,
            status__decision={},
        ),
        id="a service of half a minute",
    ),
]


@pytest.mark.parametrize("facts", HARMLESS)
def test_harmless_state_gives_no_problem(facts: Facts) -> None:
    assert is_well(examined(facts))


def test_missing_target_is_named_with_possible_remedies() -> None:
    changed = serving(spec__targetRef=TARGET_REF, spec__runtime={})
    found = [
        one
        for one in examined(replace(changed, targets={UID: None}))
        if one.finding is StatusReason.TARGET_NOT_FOUND
    ]
    assert [one.why for one in found] == [
        "spec.targetRef names StatefulSet vision/my-vllm, which does not exist"
    ]
    assert "spec.targetRef cannot be changed" in found[0].remedy
    assert found[0].remedy.endswith("kubectl get statefulset --namespace vision")


def test_two_services_of_one_target_are_found() -> None:
    one = copy.deepcopy(SERVICE) | {"spec": SERVICE["spec"] | {"targetRef": TARGET_REF}}
    other = copy.deepcopy(one)
    other["metadata"] |= {"name": "twin", "uid": "twin"}
    found = examined(replace(HEALTHY, services=(one, other), targets={UID: {}, "twin": {}}))
    shared = [each for each in found if each.finding is StatusReason.TARGET_ALREADY_MANAGED]
    assert [(each.subject, "InferenceService vision/resnet50" in each.why) for each in shared] == [
        ("vision/twin", True)
    ]


def test_unread_kinds_are_noted_without_further_findings() -> None:
    unread = tuple(
        Unread(what=what, why="forbidden")
        for what in ("Node", "CustomResourceDefinition", "Deployment")
    )
    blind = replace(HEALTHY, crd=None, nodes=(), operators=(), unread=unread)
    found = examined(blind)
    assert {one.finding for one in found} == {StatusReason.NOT_CHECKED}
    assert is_well(found)


@pytest.mark.parametrize("devices", ["1k", "2e3", "1Ki"])
def test_devices_that_a_node_counts_in_thousands_are_read(devices: str) -> None:
    """The API server writes 1000 as 1k, which is the number of a plugin that shares devices."""
    node = {"metadata": {"name": "gpu-1"}, "status": {"allocatable": {"nvidia.com/gpu": devices}}}
    assert examined(replace(HEALTHY, nodes=(node,))) == examined(HEALTHY)


def test_drained_node_is_not_blamed_for_a_missing_claim() -> None:
    claim = 'persistentvolumeclaim "models" not found'
    waiting = conditioned(saying("Ready", "False", "ReplicasUnschedulable", claim))
    drained = closed("gpu-2", spec={"unschedulable": True})
    (found,) = examined(replace(waiting, nodes=(NODE, drained)))
    assert found.finding == StatusReason.REPLICAS_UNSCHEDULABLE
    assert found.remedy == "create or repair the PersistentVolumeClaim"


def test_consequences_of_broken_replicas_are_no_findings() -> None:
    reason = StatusReason.NO_READY_REPLICAS
    facts = conditioned(
        saying("Ready", "False", "ReplicasBroken", "ErrImagePull"),
        saying("MetricsAvailable", "False", reason),
        saying("SLOMet", "Unknown", reason),
    )
    assert [one.finding for one in examined(facts)] == [StatusReason.REPLICAS_BROKEN]


def test_hpa_next_to_a_service_that_recommends_is_a_note() -> None:
    facts = replace(serving(spec__scaling={"mode": "Recommend"}), autoscalers=(autoscaler(),))
    (found,) = [one for one in examined(facts) if one.severity is Severity.NOTE]
    assert found.finding is StatusReason.AUTOSCALER_CONFLICT
    assert "before you set spec.scaling.mode to Auto" in found.remedy


def test_min_replicas_beyond_the_cluster_are_a_note() -> None:
    facts = serving(spec__scaling={"minReplicas": 9})
    (found,) = [one for one in examined(facts) if one.severity is Severity.NOTE]
    assert found.finding is StatusReason.INSUFFICIENT_ACCELERATORS
    assert found.why == "minReplicas of all services need 9, and the nodes have 8"


@pytest.mark.parametrize(
    ("one", "other", "path"),
    [
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2.0}]}, None),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, "/a/1/b"),
        ({"a": [1]}, {"a": [1, 2]}, "/a"),
        ({}, {"a": None}, "/a"),
    ],
)
def test_difference_of_schemas_is_the_first_path(
    one: object, other: object, path: str | None
) -> None:
    assert difference(one, other) == path


def test_findings_as_text_have_cause_and_remedy() -> None:
    found = examined(replace(HEALTHY, nodes=()))
    text = as_text(found, 1, "namespace vision").splitlines()
    assert text[0] == "✕ NoAccelerators vision/resnet50"
    assert text[1].startswith("    why:    a replica needs 1 nvidia.com/gpu")
    assert text[2].startswith("    remedy: add nodes")
    assert text[-1] == "1 service examined in namespace vision, 1 problem"
    assert as_text([], 2, "all namespaces").endswith("in all namespaces, nothing to do")


def test_findings_as_json_have_all_fields() -> None:
    said = json.loads(as_json(examined(replace(HEALTHY, nodes=())), 1))
    assert (said["well"], said["servicesExamined"]) == (False, 1)
    assert said["findings"][0]["finding"] == "NoAccelerators"
    assert set(said["findings"][0]) == {"finding", "severity", "subject", "why", "remedy"}


@pytest.mark.parametrize("operators", APART.values(), ids=list(APART))
def test_operators_that_do_not_decide_for_the_same_services_do_not_overlap(operators: Any) -> None:
    found = {one.finding for one in examined(replace(HEALTHY, operators=operators))}
    assert StatusReason.OPERATORS_OVERLAP not in found


def test_pod_within_its_grace_period_is_not_overdue() -> None:
    facts = replace(HEALTHY, pods={UID: (leaving("2026-11-20T12:00:00Z"),)})
    assert StatusReason.POD_OVERDUE not in {one.finding for one in examined(facts)}
