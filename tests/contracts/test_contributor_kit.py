"""Verbs, paths, hooks and workflows that contributors and CI rely on agree with the tree."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from release.images import IMAGES

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
MAKEFILE = (ROOT / "Makefile").read_text()
VERBS = set(re.findall(r"^([a-z0-9-]+):.*##", MAKEFILE, re.MULTILINE))
CONTRIBUTING = (GITHUB / "CONTRIBUTING.md").read_text()


def loaded(path: Path) -> dict[Any, Any]:
    return dict(yaml.safe_load(path.read_text()))


def test_contributing_names_existing_verbs() -> None:
    named = set(re.findall(r"\bmake ((?:[a-z0-9]+-?)+)", CONTRIBUTING)) - {"and"}
    assert named
    assert named <= VERBS


def test_contributing_names_existing_paths() -> None:
    code = re.findall(r"`([\w./-]+)`", CONTRIBUTING)
    links = [f".github/{target}" for target in re.findall(r"\]\(([^)#:]+)\)", CONTRIBUTING)]
    generated = {".venv", ".ci/flakes.jsonl"}
    paths = {path for path in (*code, *links) if "/" in path and not path.startswith("localhost")}
    assert not [path for path in sorted(paths - generated) if not (ROOT / path).exists()]


def test_each_verb_is_in_a_group_of_help() -> None:
    groups = re.split(r"^##@ ", MAKEFILE, flags=re.MULTILINE)
    assert [group.split("\n")[0] for group in groups[1:]] == [
        *("Develop", "Test", "Measure", "Release")
    ]
    assert set(re.findall(r"^([a-z0-9-]+):.*##", groups[0], re.MULTILINE)) == {"help"}


def test_pre_commit_runs_what_make_check_runs() -> None:
    (local,) = loaded(ROOT / ".pre-commit-config.yaml")["repos"]
    (line,) = re.findall(r"^check:.*\n\t.*--output-sync (.+)$", MAKEFILE, re.MULTILINE)
    assert [hook["entry"] for hook in local["hooks"]] == [f"make {verb}" for verb in line.split()]


def test_ci_runs_the_same_script_as_people() -> None:
    steps = loaded(GITHUB / "workflows" / "test.yaml")["jobs"]["test"]["steps"]
    assert any(step.get("run", "").endswith(".ci/run") for step in steps)
    assert (ROOT / ".ci" / "run").read_text().rstrip().endswith("exec make test")


def test_release_publishes_every_image() -> None:
    job = loaded(GITHUB / "workflows" / "release.yaml")["jobs"]["images"]
    published = {
        (one["image"], f"deploy/{one['file']}") for one in job["strategy"]["matrix"]["include"]
    }
    assert published == {(image.name, image.dockerfile) for image in IMAGES}


@pytest.mark.parametrize("path", sorted(GITHUB.glob("ISSUE_TEMPLATE/*.yaml")), ids=lambda p: p.stem)
def test_issue_form_has_the_required_keys(path: Path) -> None:
    form = loaded(path)
    assert {"name", "description", "body"} <= set(form)
    assert len({field["id"] for field in form["body"]}) == len(form["body"])
