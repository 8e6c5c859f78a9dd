"""The commands, as a user types them."""

from __future__ import annotations

import io
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console
from typer.testing import CliRunner, Result

from headroom.api.crd import custom_resource_definition
from headroom.cli.app import app
from headroom.cli.commands.explanation_text import explained
from headroom.cli.commands.get import table
from headroom.cli.main import SIMULATOR
from headroom.console.summary import summarize

SAMPLE = Path(__file__).parents[2] / "deploy" / "samples" / "demo.yaml"
OURS = "apiVersion: headroom.dev/v1alpha1\nkind: InferenceService\n"


def headroom(*arguments: str, given: str = "") -> Result:
    return CliRunner().invoke(app, arguments, input=given)


def test_render_of_sample_prints_its_children() -> None:
    result = headroom("render", str(SAMPLE))
    children = list(yaml.safe_load_all(result.stdout))
    assert result.exit_code == 0
    assert [child["kind"] for child in children] == [
        "ServiceAccount",
        "Service",
        "PodDisruptionBudget",
        "Deployment",
    ]
    assert "replicas" not in children[3]["spec"]


def test_render_of_standard_input_skips_other_documents() -> None:
    text = "kind: Namespace\n---\n" + SAMPLE.read_text()
    result = headroom("render", "-", given=text)
    assert result.exit_code == 0
    assert len(list(yaml.safe_load_all(result.stdout))) == 4


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "kind: Namespace\n---\nfoo: 1",
            "there must be a document of kind InferenceService; got Namespace",
        ),
        ("- a", "there must be a document of kind InferenceService; got none"),
        ("{", "not YAML"),
        (f"{OURS}metadata: {{name: a}}\nspec: {{}}", "spec.slo: is required; got nothing"),
        (f"{OURS}spec: {{}}", "metadata: must be an object; got nothing"),
        (
            f"{OURS}metadata: {{name: a}}\nspec: {{scaling: {{maxReplica: 9}}, slo: {{}}}}",
            "spec.scaling.maxReplica: unknown field; did you mean maxReplicas?",
        ),
        (
            f"{OURS}spec: {{routing: {{classes: [{{name: a, prio: 1}}]}}}}",
            "spec.routing.classes[0].prio: unknown field; did you mean priority?",
        ),
        (f"{OURS}spec: {{drain: {{xyz: 1}}}}", "spec.drain.xyz: unknown field; known are grace"),
        ("kind: InferenceService", "apiVersion must be headroom.dev/v1alpha1; got nothing"),
        (
            "kind: InferenceService\napiVersion: serving.kserve.io/v1beta1",
            "apiVersion must be headroom.dev/v1alpha1; got serving.kserve.io/v1beta1",
        ),
    ],
)
def test_render_of_invalid_file_says_what_is_wrong(text: str, complaint: str) -> None:
    result = headroom("render", "-", given=text)
    assert result.exit_code == 1
    assert complaint in result.stderr
    assert result.stdout == ""


def test_render_of_fields_that_others_describe_keeps_them() -> None:
    text = f"""{OURS}
metadata: {{name: a, labels: {{team: b}}, generateName: x}}
spec:
  runtime:
    image: a:1
    resources: {{limits: {{example.com/disk: 1}}}}
    podTemplate: {{spec: {{nodeSelector: {{a: b}}, anything: {{at: all}}}}}}
  slo: {{latency: {{target: 250ms}}}}
"""
    result = headroom("render", "-", given=text)
    assert result.exit_code == 0, result.stderr
    assert "anything" in result.stdout


def test_render_of_missing_file_says_so(tmp_path: Path) -> None:
    result = headroom("render", str(tmp_path / "absent.yaml"))
    assert result.exit_code == 1
    assert "No such file" in result.stderr


def test_render_of_target_ref_exits_with_1_and_says_nothing_is_created() -> None:
    text = (
        f"{OURS}metadata: {{name: a}}\nspec:\n"
        "  targetRef: {apiVersion: apps/v1, kind: Deployment, name: a}\n"
        "  slo: {latency: {target: 250ms}}\n"
    )
    result = headroom("render", "-", given=text)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "nothing is rendered for a" in result.stderr


def test_version_prints_the_installed_version() -> None:
    assert headroom("--version").stdout == f"headroom {version('headroom')}\n"


@pytest.mark.parametrize("command", ["run", "activator"])
def test_unknown_log_level_exits_with_2(command: str) -> None:
    assert headroom(command, "--log-level", "loud").exit_code == 2


def test_crd_prints_definition() -> None:
    assert yaml.safe_load(headroom("crd").stdout) == custom_resource_definition()


@pytest.mark.parametrize("tick", ["1ms", "2 s", "1h"])
def test_run_with_invalid_tick_exits_with_2(tick: str) -> None:
    result = headroom("run", "--tick", tick)
    assert result.exit_code == 2
    assert "--tick" in result.stderr


def test_run_with_foreign_recording_file_leaves_it_unchanged(tmp_path: Path) -> None:
    other = tmp_path / "requests.csv"
    other.write_text("arrival_s\n1\n")
    command = [sys.executable, "-m", "headroom", "run", "--record", str(other)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"error: {other}: begins with b'arrival_s")
    assert other.read_text() == "arrival_s\n1\n"


SERVICE: dict[str, Any] = {
    "metadata": {"name": "resnet", "namespace": "vision"},
    "spec": {"slo": {"latency": {"percentile": 95, "target": "250ms"}, "utilizationCeiling": 0.8}},
}
STATUS: dict[str, Any] = {
    "replicas": 3,
    "readyReplicas": 2,
    "warmingReplicas": 1,
    "decision": {
        "replicas": 3,
        "current": 2,
        "direction": "Up",
        "reason": "UtilizationCeiling",
        "message": "2 -> 3 replicas",
        "time": "2026-11-20T12:00:00Z",
        "counterfactuals": [
            {"replicas": 2, "latency": "unbounded", "utilization": 1.02},
            {"replicas": 3, "latency": "180ms", "utilization": 0.68},
        ],
        "recommendations": [{"rule": "LatencyModel", "replicas": 3, "detail": "90/s at 35/s"}],
    },
    "signals": {
        "arrivalsPerSecond": 90.0,
        "waiting": 4.0,
        "latency": "310ms",
        "utilization": 1.02,
        "freshness": "Fresh",
    },
    "conditions": [
        {"type": "Ready", "status": "True", "reason": "Serving", "message": "fine"},
        {"type": "ScalingLimited", "status": "False", "reason": "WithinBounds", "message": "fine"},
        {"type": "SLOMet", "status": "False", "reason": "AboveTarget", "message": "p95 is 310ms"},
    ],
}


def words(service: dict[str, Any]) -> str:
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(explained(service))
    return console.export_text()


def test_explain_names_one_replica_in_the_singular() -> None:
    text = words(SERVICE | {"status": STATUS | {"replicas": 1, "warmingReplicas": 0}})
    assert "vision/resnet: 1 replica (2 ready)" in text


def test_explain_shows_decision_and_counterfactuals() -> None:
    text = words(SERVICE | {"status": STATUS})
    assert "vision/resnet: 3 replicas (2 ready, 1 warming)" in text
    assert "UtilizationCeiling: 2 -> 3 replicas" in text
    assert "p95 310ms (target 250ms), utilization 102% (ceiling 80%)" in text
    assert "unbounded" in text
    assert "3 *" in text
    assert "90/s at 35/s" in text
    assert "SLOMet=False" in text
    assert "ScalingLimited" not in text
    assert "fine" not in text


HIDDEN = {
    "known": "AtLeast",
    "rate": ">=160/s",
    "requestsPerSecond": 160.0,
    "atMostPerSecond": 533.3,
    "message": "64 requests in flight at 2 saturated replicas",
}
LATE = {"errorBudgetRemaining": 0.4, "lateShare": 0.031, "margin": 1.4}


def test_explain_shows_hidden_demand_and_the_margin() -> None:
    text = words(SERVICE | {"status": STATUS | {"demand": HIDDEN, "slo": LATE}})
    assert (
        "Demand is at least 160/s (64 requests in flight at 2 saturated replicas); up to 533/s\n"
        "Margin 1.4x: 3.1% of the last hour's requests were late\n"
    ) in text


def test_explain_of_counted_demand_adds_no_line() -> None:
    counted = {"known": "Exact", "rate": "90/s", "requestsPerSecond": 90.0}
    assert words(SERVICE | {"status": STATUS | {"demand": counted}}) == words(
        SERVICE | {"status": STATUS}
    )


TOKENS: dict[str, Any] = {
    "timeToFirstToken": {"percentile": 95, "target": "2s"},
    "timePerOutputToken": {"percentile": 95, "target": "20ms"},
}
GENERATING = {"sizedBy": "Model", "binding": "TimePerOutputToken", "capacityPerReplica": 17.8}
EXPECTED = [
    {"replicas": 1, "latency": "unbounded", "utilization": 1.3},
    {"replicas": 2, "latency": "11s", "utilization": 0.65},
    {"replicas": 3, "latency": "8.8s", "utilization": 0.43},
]


def test_explain_of_promises_on_tokens_shows_the_share_of_one_and_no_time_of_none() -> None:
    """11 s are half of the 22 s that stand for both promises: no request takes them."""
    decision = STATUS["decision"] | {"counterfactuals": EXPECTED}
    status = STATUS | {"decision": decision, "generation": GENERATING}
    service = SERVICE | {"spec": {"slo": TOKENS}}
    text = words(service | {"status": status})
    assert "of the tightest promise" in text
    assert [share in text for share in ("unbounded", "50%", "40%", "11s")] == [True] * 3 + [False]
    by_measurement = {"sizedBy": "Measurement"}
    assert "11s" in words(service | {"status": status | {"generation": by_measurement}})


def test_get_wide_shows_both_promises_on_tokens() -> None:
    measured = STATUS["signals"] | {"timeToFirstToken": "300ms"}
    service = SERVICE | {"spec": {"slo": TOKENS}, "status": STATUS | {"signals": measured}}
    text = table([summarize(service)], wide=True, namespaced=False)
    assert "300ms (p95, target 2s)" in text
    assert "unknown (p95, target 20ms)" in text


def test_explain_without_decision_says_so_and_what_to_run() -> None:
    shown = words(SERVICE)
    assert "No decision yet" in shown
    assert f"headroom doctor -n {SERVICE['metadata']['namespace']}" in shown


def test_explain_with_unknown_metrics_says_so() -> None:
    quiet = STATUS | {"signals": {"freshness": "Missing"}, "conditions": []}
    text = words(SERVICE | {"status": quiet})
    assert "unknown arrivals/s, unknown waiting, p95 unknown" in text


def without(libraries: list[str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line of an installation that lacks libraries."""
    lacking = f"import sys; sys.modules |= dict.fromkeys({libraries!r})"
    program = f"{lacking}; from headroom.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("library", "arguments", "extra"),
    [
        pytest.param("numba", ["simulate", "step"], "simulator", id="simulator"),
        pytest.param("uvloop", ["run"], "operator", id="operator"),
        pytest.param("typer", ["plan", "--help"], "operator", id="any command"),
    ],
)
def test_command_without_its_libraries_says_what_to_install(
    library: str, arguments: list[str], extra: str
) -> None:
    result = without([library], *arguments)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr == (
        f"error: this command needs {library}, which is not installed: "
        f"pip install 'headroom[{extra}]'\n"
    )


def test_plan_runs_without_simulator_and_operator_libraries() -> None:
    sums = ["plan", "rate", "10", "--batch-overhead", "6ms", "--per-item-time", "4ms"]
    result = without(["numba", "aiohttp", "kopf", "kubernetes"], *sums)
    assert result.returncode == 0
    assert result.stdout.startswith("1 replica for 10 req/s")


def test_simulator_extra_has_the_listed_libraries() -> None:
    path = Path(__file__).parents[2] / "pyproject.toml"
    extras = tomllib.loads(path.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    names = {name: {each.split(">")[0] for each in extras[name]} for name in extras}
    assert names["simulator"] - names["operator"] <= SIMULATOR
