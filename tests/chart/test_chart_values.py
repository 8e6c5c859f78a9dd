"""The chart's values: each is described, validated and listed; unknown ones are rejected."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from chart import shared, values_comments, values_table
from chart.paths import BASE, CHART, ROOT

SCHEMA = json.loads((CHART / "values.schema.json").read_text())
DEFAULTS = yaml.safe_load((CHART / "values.yaml").read_text())
PASSED_ON = {
    "global",
    "env[].valueFrom",
    "affinity.nodeAffinity",
    "affinity.podAffinity",
    "affinity.podAntiAffinity",
    "networkPolicy.from[].ipBlock",
    "networkPolicy.from[].namespaceSelector",
    "networkPolicy.from[].podSelector",
}
"""Parts of Kubernetes objects, which the API server checks."""


def parts(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Return every part of the schema with its path."""
    yield path, schema
    for name, part in schema.get("properties", {}).items():
        yield from parts(part, f"{path}.{name}".lstrip("."))
    if "items" in schema:
        yield from parts(schema["items"], f"{path}[]")


def test_schema_rejects_unknown_values() -> None:
    kinds = {path: part for path, part in parts(SCHEMA) if part.get("type") == "object"}
    opened = {path for path, part in kinds.items() if "additionalProperties" not in part}
    assert opened == PASSED_ON
    maps = [
        part["additionalProperties"] for part in kinds.values() if "additionalProperties" in part
    ]
    assert all(each is False or each["type"] == "string" for each in maps)


def test_every_value_has_description_and_type() -> None:
    for path, part in parts(SCHEMA):
        assert "type" in part, path
        if path and path != "watch.namespaces[]":
            assert part["description"].endswith("."), path


def test_schema_and_defaults_have_the_same_values() -> None:
    def same(schema: dict[str, Any], defaults: dict[str, Any], path: str) -> None:
        assert set(defaults) <= set(schema["properties"]), path
        for name, default in defaults.items():
            if isinstance(default, dict) and schema["properties"][name].get("properties"):
                same(schema["properties"][name], default, f"{path}.{name}")

    same(SCHEMA, DEFAULTS, "")
    assert set(SCHEMA["properties"]) - set(DEFAULTS) == {"global"}


@pytest.mark.parametrize("path", shared.contents(), ids=lambda path: path.name)
def test_generated_chart_files_are_up_to_date(path: Path) -> None:
    assert path.read_text() == shared.contents()[path], "run `make chart`"


def test_each_value_has_its_description_as_comment() -> None:
    schema = {
        "properties": {
            "image": {
                "description": "Image of the pod.",
                "properties": {"tag": {"description": "Tag."}},
            },
            "labels": {"description": "Labels."},
            "limits": {"description": "Limits.", "properties": {"cpu": {"description": "CPU."}}},
        }
    }
    text = "# Head.\n\nimage:\n  # Old.\n  tag: x\n\nlabels: {a: b}\nlimits: {cpu: 1}\n"
    written = values_comments.commented(text, schema)
    assert written == (
        "# Head.\n\n# Image of the pod.\nimage:\n  # Tag.\n  tag: x\n\n"
        "# Labels.\nlabels: {a: b}\nlimits: {cpu: 1}\n"
    )
    assert values_comments.commented(written, schema) == written


def test_values_table_renders_rows() -> None:
    schema = {
        "properties": {
            "image": {
                "description": "Of the pod.",
                "properties": {"tag": {"description": "Its version."}},
            },
            "labels": {"description": "Of all."},
            "global": {"description": "Unused."},
        }
    }
    rows = values_table.values(schema, {"image": {"tag": "1"}, "labels": {}})
    assert values_table.table(rows) == (
        "| Value | Default | Meaning |\n|---|---|---|\n"
        '| `image.tag` | `"1"` | Its version. |\n| `labels` | `{}` | Of all. |\n'
    )


def test_page_without_markers_raises() -> None:
    with pytest.raises(ValueError, match="needs the marks"):
        values_table.put_in("a page", "")


def test_chart_package_and_manifests_have_one_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    manifests = list(yaml.safe_load_all((BASE / "operator.yaml").read_text()))
    deployment = next(each for each in manifests if each["kind"] == "Deployment")
    image = deployment["spec"]["template"]["spec"]["containers"][0]["image"]
    versions = {chart["version"], chart["appVersion"], project["version"], image.split(":")[1]}
    assert len(versions) == 1


@pytest.mark.parametrize(("argument", "code"), [("--help", 0), ("extra", 2)])
def test_command_writes_nothing_unless_it_is_asked_to(argument: str, code: int) -> None:
    written = {path: path.stat().st_mtime_ns for path in shared.contents()}
    command = [sys.executable, "-m", "chart", argument]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT / "e2e")
    assert done.returncode == code
    assert "Usage: python -m chart" in done.stdout + done.stderr
    assert {path: path.stat().st_mtime_ns for path in written} == written
