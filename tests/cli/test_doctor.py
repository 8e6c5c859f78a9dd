"""The doctor: one planted mistake a row, every condition and reason, and a healthy cluster."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import pytest

from headroom.api.conditions import ConditionType
from headroom.api.crd import custom_resource_definition
from headroom.api.reasons import OF_DOCTOR, OF_EVENTS, StatusReason
from headroom.cli.commands.doctor.cluster_checks import difference
from headroom.cli.commands.doctor.condition_checks import (
    NO_FINDING,
    REMEDIES,
    conditions_need_attention,
)
from headroom.cli.commands.doctor.examination import examined
from headroom.cli.commands.doctor.facts import Answered, Facts, Unread
from headroom.cli.commands.doctor.findings import Severity, as_json, as_text, is_well
from headroom.cli.commands.doctor.pod_probe import judged, metric_names, scraped
from headroom.cli.commands.doctor.telemetry_checks import profile_of
from headroom.controller.permissions import Permission
from headroom.errors import Forbidden
from service_world import body

How = Answered.How
GOOD = {
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
    StatusReason.ALL_REPLICAS_SCHEDULED,
    StatusReason.DIRECT_TO_PODS,
    StatusReason.VIA_GATEWAY,
}
"""Reasons of conditions that are as they should be."""
NOW = "2026-11-20T12:00:00Z"
NOW_S = 1_795_176_000.0
UID = body()["metadata"]["uid"]
SERVICE: dict[str, Any] = body(
    spec__accelerator={"resource": "nvidia.com/gpu", "count": 1},
    metadata__creationTimestamp="2026-11-20T11:00:00Z",
    metadata__managedFields=[{"manager": "headroom", "subresource": "status", "time": NOW}],
    status__observedGeneration=3,
    status__selector="headroom.dev/inference-service=resnet50",
    status__decision={"time": NOW, "replicas": 1, "current": 1},
    status__conditions=[],
)
OPERATOR: dict[str, Any] = {
    "metadata": {"name": "headroom-operator", "namespace": "headroom-system"},
    "spec": {"replicas": 1},
    "status": {"availableReplicas": 1},
}
NODE: dict[str, Any] = {
    "metadata": {"name": "gpu-1"},
    "status": {"allocatable": {"nvidia.com/gpu": "8"}},
}
DEPLOYMENT: dict[str, Any] = {"kind": "Deployment", "metadata": {"name": "resnet50"}, "spec": {}}
PAGE = Answered(
    how=How.PAGE,
    pod="resnet50-abc-1",
    port=8000,
    path="/metrics",
    names=frozenset({"headroom_requests_received_total"}),
)
HEALTHY = Facts(
    version=(1, 34),
    now_s=NOW_S,
    crd=custom_resource_definition(),
    operators=(OPERATOR,),
    services=(SERVICE,),
    targets={UID: DEPLOYMENT},
    nodes=(NODE,),
    answers={UID: PAGE},
)


def serving(**changes: Any) -> Facts:
    """The healthy cluster with a service that differs."""
    one = copy.deepcopy(SERVICE)
    for path, value in changes.items():
        *parents, last = path.split("__")
        inner = one
        for key in parents:
            inner = inner.setdefault(key, {})
        inner[last] = value
    return replace(HEALTHY, services=(one,))


def saying(kind: str, status: str, reason: str, message: str = "as it said") -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def conditioned(*conditions: dict[str, str], **changes: Any) -> Facts:
    return serving(status__conditions=list(conditions), **changes)


def autoscaler(kind: str = "Deployment", name: str = "resnet50", **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "cpu", "namespace": "vision", **metadata},
        "spec": {"scaleTargetRef": {"kind": kind, "name": name}},
    }


def lease(renewed: str) -> dict[str, Any]:
    metadata = {"name": "gpu-1", "managedFields": [{"manager": "kubelet", "time": NOW}]}
    return {"metadata": metadata, "spec": {"renewTime": renewed}}


def answering(**changes: Any) -> Facts:
    return replace(HEALTHY, answers={UID: replace(PAGE, **changes)})


def stale_crd() -> dict[str, Any]:
    crd = custom_resource_definition()
    properties = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    del properties["spec"]["properties"]["slo"]
    return crd


CUSTOM = {
    "profile": "custom",
    "image": "registry.example/mine:1",
    "maxBatchSize": 8,
    "metrics": {
        "inFlight": {"name": "queued"},
        "arrived": {"name": "seen_total", "absentIsZero": True},
        "latency": {"name": "busy"},
        "runningTime": {"name": "busy_sum", "absentIsZero": True},
    },
}
OF_KEDA = [{"kind": "ScaledObject", "name": "mine", "controller": True}]
TARGET_REF = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "my-vllm"}
PAUSED = DEPLOYMENT | {"spec": {"paused": True}}

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
        "the address of the source",
        id="unreachable Prometheus",
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
        conditioned(saying("CapacityAvailable", "False", "ReplicasBroken", "ErrImagePull")),
        StatusReason.REPLICAS_BROKEN,
        "ErrImagePull",
        "--selector headroom.dev/inference-service=resnet50",
        id="broken replicas",
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


@pytest.mark.parametrize("kind", ConditionType)
@pytest.mark.parametrize("status", ["True", "False", "Unknown"])
def test_every_condition_that_needs_attention_gives_a_finding(
    kind: ConditionType, status: str
) -> None:
    good = "False" if kind is ConditionType.SCALING_LIMITED else "True"
    for reason in set(StatusReason) - OF_EVENTS - OF_DOCTOR - NO_FINDING:
        facts = conditioned(saying(kind, status, reason))
        found = list(conditions_need_attention(facts, ()))
        if status == good:
            assert found == [], reason
        else:
            assert [one.finding for one in found] == [reason]
            assert found[0].why == f"{kind} is {status}: as it said"


def test_every_reason_that_needs_attention_has_a_remedy() -> None:
    of_conditions = set(StatusReason) - OF_EVENTS - OF_DOCTOR - NO_FINDING
    assert of_conditions - set(REMEDIES) == GOOD


def test_reason_of_another_version_gives_a_finding() -> None:
    (found,) = examined(conditioned(saying("Ready", "False", "FromTheFuture")))
    assert (found.finding, found.severity) == ("FromTheFuture", Severity.PROBLEM)


def test_limit_is_warning_only_while_slo_is_missed() -> None:
    limited = saying("ScalingLimited", "True", "AtMaxReplicas")
    (found,) = examined(conditioned(limited, saying("SLOMet", "True", "WithinTarget")))
    assert found.severity is Severity.NOTE
    both = examined(conditioned(limited, saying("SLOMet", "False", "AboveTarget")))
    assert [(one.finding, one.severity) for one in both] == [
        ("AboveTarget", Severity.PROBLEM),
        ("AtMaxReplicas", Severity.WARNING),
    ]


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


def test_min_replicas_beyond_the_cluster_are_a_note() -> None:
    facts = serving(spec__scaling={"minReplicas": 9})
    (found,) = [one for one in examined(facts) if one.severity is Severity.NOTE]
    assert found.finding is StatusReason.INSUFFICIENT_ACCELERATORS
    assert found.why == "minReplicas of all services need 9, and the nodes have 8"


def refused(message: str, reason: str = "ServiceUnavailable") -> bytes:
    return json.dumps({"kind": "Status", "reason": reason, "message": message}).encode()


@pytest.mark.parametrize(
    ("status", "answer", "how"),
    [
        (200, b"headroom_requests_waiting 0\n", How.PAGE),
        (503, refused("error trying to reach service: dial tcp: connection refused"), How.REFUSED),
        (503, refused("error trying to reach service: dial tcp: i/o timeout"), How.SILENT),
        (504, b"", How.SILENT),
        (404, b"404 page not found", How.NOT_THERE),
        (500, b"oh", How.OTHER),
    ],
)
def test_answer_through_api_server_is_classified(
    status: int, answer: bytes, how: Answered.How
) -> None:
    assert judged(status, answer)[0] is how


def test_denied_pods_proxy_raises_forbidden() -> None:
    words = 'User "a" cannot get resource "pods/proxy" in API group ""'
    with pytest.raises(Forbidden, match="pods/proxy"):
        judged(403, refused(words, reason="Forbidden"))


def test_profile_of_page_follows_metric_names() -> None:
    page = b'# HELP x y\nvllm:num_requests_waiting{model="a"} 0\n\npython_info 1\n'
    assert metric_names(page) == {"vllm:num_requests_waiting", "python_info"}
    assert profile_of(metric_names(page)) == "vllm"
    assert profile_of(frozenset({"python_info"})) is None


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
    text = as_text(found, 1).splitlines()
    assert text[0] == "✕ NoAccelerators vision/resnet50"
    assert text[1].startswith("    why:    a replica needs 1 nvidia.com/gpu")
    assert text[2].startswith("    remedy: add nodes")
    assert text[-1] == "1 service examined, 1 problem"
    assert as_text([], 2) == "2 services examined, nothing to do"


def test_findings_as_json_have_all_fields() -> None:
    said = json.loads(as_json(examined(replace(HEALTHY, nodes=())), 1))
    assert (said["well"], said["servicesExamined"]) == (False, 1)
    assert said["findings"][0]["finding"] == "NoAccelerators"
    assert set(said["findings"][0]) == {"finding", "severity", "subject", "why", "remedy"}


@pytest.mark.parametrize(
    ("runtime", "expected"),
    [
        ({}, (8000, "/metrics")),
        ({"profile": "triton", "maxBatchSize": 8}, (8002, "/metrics")),
        ({"profile": "triton", "maxBatchSize": 8, "metricsPort": 9002}, (9002, "/metrics")),
        ({"profile": "vllm", "maxBatchSize": 8, "port": 8080}, (8080, "/metrics")),
        ({"profile": "no such"}, (8000, "/metrics")),
    ],
)
def test_doctor_scrapes_where_the_operator_does(
    runtime: dict[str, Any], expected: tuple[int, str]
) -> None:
    assert scraped({"spec": {"runtime": runtime}}) == expected
