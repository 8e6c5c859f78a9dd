"""The commands, as a user types them."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from headroom.api.schema.crd import custom_resource_definition
from headroom.cli.app import app

SAMPLE = Path(__file__).parents[2] / "deploy" / "samples" / "demo.yaml"
OURS = "apiVersion: headroom.dev/v1alpha1\nkind: InferenceService\n"


def headroom(*arguments: str, given: str = "") -> Result:
    return CliRunner().invoke(app, arguments, input=given)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("run --port 70000", "must be less than or equal to 65535; got '70000'"),
        ("run --port abc", "must be a whole number; got 'abc'"),
        ("get --output yaml", "must be one of 'text', 'wide', 'json'; got 'yaml'"),
        ("plan rate 3 --max-batch 1.5", "must be a whole number; got '1.5'"),
        ("plan queue --rate 100 --utilization much", "must be a number; got 'much'"),
    ],
)
def test_option_of_another_type_says_the_rule_and_the_value(line: str, says: str) -> None:
    result = headroom(*line.split())
    assert result.exit_code == 2
    assert says in " ".join(result.stderr.replace("│", "").split())
    assert "should" not in result.stderr


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


def repeating(line: str) -> str:
    """Return lines that each repeat the one before nine times: 9^8 values in all."""
    lines = [
        line.format(next=number + 1, aliases=", ".join([f"*a{number}"] * 9)) for number in range(8)
    ]
    return "\n".join(["a0: &a0 {x: 1}", *lines])


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "kind: Namespace\n---\nfoo: 1",
            "there must be a document of kind InferenceService; got Namespace",
        ),
        ("- a", "there must be a document of kind InferenceService; got none"),
        ("a: 1\n{", "must be YAML; got an error in line 2, column 1: expected <block end>"),
        ("[" * 5000, "must be YAML; got a text that is nested too deeply"),
        ("a: &a [*a]", "must be YAML; got more than 100000 values with its aliases written out"),
        (repeating("a{next}: &a{next} [{aliases}]"), "its aliases written out"),
        (repeating("a{next}: &a{next} {{<<: [{aliases}]}}"), "its aliases written out"),
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
