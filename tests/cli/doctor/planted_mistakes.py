"""Mistakes in a cluster or a service, with the finding, the cause and the remedy that name each."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headroom.api.reasons import StatusReason
from headroom.api.start_steps import GATEWAYS_SILENT
from headroom.controller.gather.metrics.scrape_failure import NOT_SCRAPED, OLD
from headroom.controller.permissions import Permission
from support.fakes_doctor import (
    CUSTOM,
    HEALTHY,
    NODE,
    NOW_S,
    OF_KEDA,
    OPERATOR,
    PAGE,
    PAUSED,
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

SERVED_ELSEWHERE = replace(
    PAGE, how=How.REFUSED, port=8002, elsewhere=8000, elsewhere_names=PAGE.names
)
DRAINED = "1 replica: 0/3 nodes are available: 1 node(s) were unschedulable"

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
        replace(
            HEALTHY,
            operators=(started("headroom-system", "--namespace=vision", "--namespace=gone"),),
            denied=tuple(
                (
                    "system:serviceaccount:headroom-system:default",
                    Permission(
                        verb=verb,
                        group="headroom.dev",
                        resource="inferenceservices",
                        namespace="gone",
                    ),
                )
                for verb in ("list", "watch")
            ),
        ),
        StatusReason.NAMESPACE_UNREAD,
        "may not read it",
        "kubectl create rolebinding headroom-operator-watch --namespace gone "
        "--role headroom-operator-watch --serviceaccount headroom-system:default",
        id="a namespace without a RoleBinding",
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
        "pod resnet50-1 should have ended 10 min ago, and node gpu-1 has not confirmed its end",
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
        StatusReason.METRICS_MISSING,
        "no answer in time",
        "else a NetworkPolicy or a firewall drops packets to this port, or spec.runtime.port is",
        id="a busy pod, or packets dropped",
    ),
    pytest.param(
        answering(how=How.CLOSED, detail="the connection was closed without an answer"),
        StatusReason.METRICS_MISSING,
        "port 8000, /metrics: the connection was closed without an answer",
        'excludeInboundPorts: "8000" of the pods',
        id="a service mesh that requires mutual TLS",
    ),
    pytest.param(
        answering(names=frozenset({"vllm:num_requests_waiting", "python_info"})),
        StatusReason.WRONG_PROFILE,
        "the profile is headroom, and the metrics",
        "set spec.runtime.profile to vllm",
        id="wrong profile",
    ),
    pytest.param(
        replace(
            serving(spec__runtime={"profile": "triton", "maxBatchSize": 8, "image": "a:1"}),
            answers={UID: SERVED_ELSEWHERE},
        ),
        StatusReason.WRONG_PROFILE,
        "port 8000 has the metrics of headroom",
        "set spec.runtime.profile to headroom, spec.runtime.port to 8000, and remove "
        "spec.runtime.maxBatchSize",
        id="wrong profile at another port",
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
        conditioned(
            saying(
                "CapacityAvailable",
                "False",
                "ReplicasUnschedulable",
                "1 replica: a-1 was preempted by a pod of higher priority; a-2: 1 Insufficient gpu",
            )
        ),
        StatusReason.REPLICAS_UNSCHEDULABLE,
        "a-1 was preempted by a pod of higher priority",
        "set spec.priorityClassName in runtime.podTemplate",
        id="a pod that was preempted",
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
        "spec.slo.latency.target: must be a duration from 1ms to 10m, with units",
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
            saying(
                "MetricsAvailable",
                "False",
                "MetricsMissing",
                "HTTP Status Code 401",
            ),
            spec__telemetry={"source": "Prometheus"},
        ),
        StatusReason.METRICS_MISSING,
        "HTTP Status Code 401",
        "name a proxy that adds them",
        id="a Prometheus that requires credentials",
    ),
    pytest.param(
        replace(
            serving(spec__runtime=CUSTOM),
            answers={UID: replace(PAGE, how=How.NOT_THERE, detail="it answers 404")},
        ),
        StatusReason.METRICS_MISSING,
        "it answers 404",
        "set spec.runtime.metrics.path",
        id="wrong path of custom metrics",
    ),
    pytest.param(
        conditioned(
            saying("MetricsAvailable", "False", "MetricsStale", GATEWAYS_SILENT),
            saying("SLOMet", "Unknown", "MetricsMissing", "see MetricsAvailable"),
        ),
        StatusReason.METRICS_STALE,
        GATEWAYS_SILENT,
        "app.kubernetes.io/name=headroom-gateway",
        id="silent gateways",
    ),
    pytest.param(
        conditioned(
            saying("MetricsAvailable", "False", "MetricsStale", f"p: {OLD % 'noon'}"),
            spec__telemetry={"source": "Prometheus"},
        ),
        StatusReason.METRICS_STALE,
        "the latest sample that Prometheus returns is from noon",
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
        "generation 3 is not observed; the status describes generation 2",
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
