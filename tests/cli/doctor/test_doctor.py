"""The doctor: one planted mistake per row, a healthy cluster, and the report."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import pytest

from cli.doctor.planted_mistakes import MISTAKES
from headroom.api.reasons import StatusReason
from headroom.cli.commands.doctor.checks.cluster_checks import difference
from headroom.cli.commands.doctor.examination import examined
from headroom.cli.commands.doctor.facts import Facts, Unread
from headroom.cli.commands.doctor.findings import Severity, as_json, as_text, is_well
from headroom.controller.permissions import Permission
from support.fakes_doctor import (
    HEALTHY,
    NODE,
    OPERATOR,
    SERVICE,
    TARGET_REF,
    UID,
    autoscaler,
    closed,
    conditioned,
    lease,
    leaving,
    saying,
    serving,
    started,
)

APART = {
    "one Lease": (started("a", "--lease-namespace=x"), started("b", "--lease-namespace=x")),
    "own namespaces": (started("a", "--namespace=shop"), started("b", "--namespace=ads")),
    "one is scaled to 0": (OPERATOR, started("b", replicas=0)),
}


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


@pytest.mark.parametrize(
    ("kind", "remedy"),
    [
        ("Deployment", "create it; spec.targetRef cannot"),
        ("Deploymnet", "create it, or correct the kind if kubectl api-resources lists no "),
    ],
)
def test_missing_target_of_an_odd_kind_may_be_a_typo(kind: str, remedy: str) -> None:
    changed = serving(spec__targetRef={**TARGET_REF, "kind": kind}, spec__runtime={})
    found = {one.finding: one for one in examined(replace(changed, targets={UID: None}))}
    assert found[StatusReason.TARGET_NOT_FOUND].remedy.startswith(remedy)


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
    assert shared[0].severity is Severity.PROBLEM


@pytest.mark.parametrize(("name", "second"), [("resnet50", "twin"), ("twin", "resnet50")])
def test_service_that_does_not_scale_the_target_is_the_one_that_the_operator_names(
    name: str, second: str
) -> None:
    """The doctor's list is by name, and precedence is by age."""
    one = copy.deepcopy(SERVICE) | {"spec": SERVICE["spec"] | {"targetRef": TARGET_REF}}
    other = copy.deepcopy(one)
    other["metadata"] |= {"name": "twin", "uid": "twin"}
    younger = one if second == "resnet50" else other
    younger["metadata"]["creationTimestamp"] = "2030-01-01T00:00:00Z"
    found = examined(replace(HEALTHY, services=(one, other), targets={UID: {}, "twin": {}}))
    (shared,) = [each for each in found if each.finding is StatusReason.TARGET_ALREADY_MANAGED]
    assert shared.subject == f"vision/{second}"
    assert shared.why.startswith(f"InferenceService vision/{name} scales")


@pytest.mark.parametrize("name", ["resnet50", "twin"])
def test_service_that_only_recommends_for_the_target_of_another_is_a_note(name: str) -> None:
    one = copy.deepcopy(SERVICE) | {
        "spec": copy.deepcopy(SERVICE["spec"]) | {"targetRef": TARGET_REF}
    }
    other = copy.deepcopy(one)
    other["metadata"] |= {"name": "twin", "uid": "twin"}
    recommends = one if name == "resnet50" else other
    recommends["spec"]["scaling"] = {**recommends["spec"].get("scaling", {}), "mode": "Recommend"}
    found = examined(replace(HEALTHY, services=(one, other), targets={UID: {}, "twin": {}}))
    (shared,) = [each for each in found if each.finding is StatusReason.TARGET_ALREADY_MANAGED]
    assert (shared.subject, shared.severity) == (f"vision/{name}", Severity.NOTE)
    assert "nothing to do" in shared.remedy


def test_unread_kinds_are_noted_without_further_findings() -> None:
    unread = tuple(
        Unread(what=what, why="forbidden", denied=True)
        for what in ("Node", "CustomResourceDefinition", "Deployment")
    )
    blind = replace(HEALTHY, crd=None, nodes=(), operators=(), unread=unread)
    found = examined(blind)
    assert {one.finding for one in found} == {StatusReason.NOT_CHECKED}
    assert all("as a user with the permission" in one.remedy for one in found)
    assert is_well(found)


def test_read_that_failed_does_not_ask_for_a_permission() -> None:
    slow = Unread(what="Lease", why="GET /x: no response within 10 s")
    (found,) = examined(replace(HEALTHY, unread=(slow,)))
    assert found.remedy.startswith("run the doctor again")


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


def test_causes_fit_a_terminal_and_remedies_stay_in_one_line() -> None:
    """The commands of a remedy are copied."""
    long = saying("Ready", "False", "WarmingUp", " ".join(["pod-with-a-name"] * 20))
    found = examined(conditioned(long))
    text = as_text(found, 1, "namespace vision", columns=80).splitlines()
    causes = [line for line in text if line.startswith(("    why:", 12 * " "))]
    assert len(causes) > 3
    assert max(map(len, causes)) <= 80
    assert len([line for line in text if line.startswith("    remedy: ")]) == 1
    assert as_text(found, 1, "namespace vision").count("\n") == 3


def test_account_without_its_role_is_one_finding() -> None:
    """A lost binding takes 25 permissions."""
    user = "system:serviceaccount:headroom-system:headroom-operator"
    verbs = ("get", "list", "watch", "patch", "update")
    lacks = tuple(
        (user, Permission(verb=verb, group="apps", resource="deployments")) for verb in verbs
    )
    (found,) = examined(replace(HEALTHY, denied=lacks))
    assert found.why == "it may not get deployments.apps -A, and lacks 4 more permissions"
    (found,) = examined(replace(HEALTHY, denied=lacks[:2]))
    assert found.why == "it may not get deployments.apps -A; list deployments.apps -A"


def test_finding_of_many_conditions_names_the_first_and_their_number() -> None:
    kinds = ("ScalingActive", "MetricsAvailable", "SLOMet")
    (found,) = examined(conditioned(*(saying(kind, "Unknown", "Pending") for kind in kinds)))
    assert found.why == "ScalingActive is Unknown, and 2 more conditions with it: as it said"


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
