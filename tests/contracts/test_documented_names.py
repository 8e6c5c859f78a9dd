"""Names in the prose of the pages exist: fields, metrics, settings, alerts, reasons, values."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from chart.paths import ALERTS
from headroom.api.reasons import StatusReason
from headroom.api.schema.crd import custom_resource_definition
from headroom.api.service_status.conditions import ConditionType
from headroom.console.service_state import State
from headroom.profiles import PROFILES
from headroom.scaling import Reason

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    page
    for place in ("README.md", "deploy", "operator/*.md", "operator/guide", "charts/headroom")
    for page in ROOT.glob(place if place.endswith(".md") else f"{place}/*.md")
    if page.name != "STYLE.md"  # its names are examples
)
PROSE = sorted([*PAGES, *ROOT.glob("model_server/*.md")])
FOREIGN_PATHS = {"spec.install.crds", "spec.upgrade.crds"}
"""Flux has them."""
FOREIGN_REASONS = {
    *("ErrImagePull", "CreateContainerConfigError", "FailedScheduling", "TimeoutError"),
    *("ImageVolume", "InMemoryKV"),
}
"""Kubernetes and Python have them."""
_BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`([^`\n]+)`")
_SECTIONS = "spec|status|slo|scaling|routing|runtime|warmup|rollout|telemetry|accelerator"
_PATH = re.compile(rf"(?<![\w/.-])((?:{_SECTIONS})(?:\.[a-zA-Z]\w*(?:\[\])?)+)(?![\w/])")
_SCHEMA = custom_resource_definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
_VALUES = yaml.safe_load((ROOT / "charts/headroom/values.yaml").read_text())
_SOURCES = (
    *("operator/headroom", "model_server/headroom_server", "model_server/vllm_plugin"),
    *("deploy", "charts/headroom", "e2e", ":(exclude)*.md"),
)
_REFERENCES = ("operator/REFERENCE.md", "model_server/REFERENCE.md")
"""Generated from the code, which another test checks."""
_REASON = re.compile(r"[A-Z][a-z]+(?:[A-Z][a-z]+)+")


def code(page: Path) -> Iterator[str]:
    """Yield what a page writes as code in its prose."""
    yield from _CODE.findall(
        re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    )


def has_field(schema: Mapping[str, Any], path: list[str]) -> bool:
    """Return whether a schema has the field; items of lists are written with or without []."""
    if not path or schema.get("x-kubernetes-preserve-unknown-fields"):
        return True
    if schema.get("type") == "array":
        return has_field(schema.get("items", {}), path)
    inner = schema.get("properties", {}).get(path[0].removesuffix("[]"))
    if inner is None:
        extra = schema.get("additionalProperties")
        return isinstance(extra, dict) and has_field(extra, path[1:])
    return has_field(inner, path[1:])


def is_field(path: str) -> bool:
    parts, tops = path.split("."), _SCHEMA["properties"]
    if parts[0] in tops:
        return has_field(_SCHEMA, parts)
    return any(has_field(tops[top], parts) for top in ("spec", "status"))


def is_value(path: str) -> bool:
    """Return whether the chart has a value; what is below an empty map is the user's."""
    at: Any = _VALUES
    for part in path.split("."):
        if at == {}:
            return True
        if not isinstance(at, dict) or part not in at:
            return False
        at = at[part]
    return True


def missing_in_sources(names: set[str]) -> list[str]:
    """Return the names that neither a source nor a generated reference contains."""
    references = "".join((ROOT / page).read_text() for page in _REFERENCES)
    names = {name for name in names if not re.search(rf"\b{name}\b", references)}
    found = subprocess.run(
        ["git", "grep", "--untracked", "-hoFw", "-f", "-", "--", *_SOURCES],
        cwd=ROOT,
        input="\n".join(sorted(names)),
        capture_output=True,
        text=True,
        check=False,
    )
    return sorted(names - set(found.stdout.split()))


@pytest.mark.parametrize("page", PROSE, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_fields_of_the_resource_exist(page: Path) -> None:
    named = {path for text in code(page) for path in _PATH.findall(text)} - FOREIGN_PATHS
    assert sorted(path for path in named if not is_field(path) and not is_value(path)) == []


def test_metrics_and_settings_exist() -> None:
    pattern = re.compile(r"\b(?:headroom_[a-z][a-z0-9_]*[a-z0-9]|HEADROOM_[A-Z0-9_]*[A-Z0-9])\b")
    named = {name for page in PROSE for text in code(page) for name in pattern.findall(text)}
    assert len(named) > 100
    assert missing_in_sources(named) == []


def test_alerts_and_reasons_exist() -> None:
    alerts = set(re.findall(r"alert: (\w+)", ALERTS.read_text()))
    known = {*alerts, *StatusReason, *State, *Reason, *ConditionType, *FOREIGN_REASONS}
    user_pages = [page for page in PAGES if not page.name.startswith(("LIFE_OF", "DESIGN"))]
    named = {text for page in user_pages for text in code(page) if _REASON.fullmatch(text)}
    assert len(named) > 100
    assert missing_in_sources(named - known) == []


def test_values_of_the_chart_exist() -> None:
    tops = "|".join(sorted(_VALUES))
    pattern = re.compile(rf"(?<![\w./-])((?:{tops})(?:\.[a-zA-Z]\w*)+)(?==|`|:|$)")
    pages = [*ROOT.glob("charts/headroom/*.md"), ROOT / "operator/guide/MODELS.md"]
    named = {f for page in pages for text in code(page) for f in pattern.findall(text)}
    assert len(named) > 40
    assert sorted(name for name in named if not is_value(name) and not is_field(name)) == []


def test_labels_by_which_pages_select_pods_are_those_of_the_manifests() -> None:
    selector = re.compile(r"(?:-l|--selector) (app\.kubernetes\.io/\w+)=([\w-]+)")
    named = {pair for page in PAGES for pair in selector.findall(page.read_text(encoding="utf-8"))}
    manifests = "".join(page.read_text() for page in ROOT.glob("deploy/*/*.yaml"))
    assert named
    assert [pair for pair in named if ": ".join(pair) not in manifests] == []


def test_page_names_the_profiles_that_measure_no_latency() -> None:
    page = (ROOT / "operator/guide/MIGRATION.md").read_text(encoding="utf-8")
    (line,) = [one for one in page.splitlines() if one.startswith("- No latency histogram")]
    silent = {name for name, profile in PROFILES.items() if profile.latency is None}
    assert set(_CODE.findall(line)) & set(PROFILES) == silent - {"triton"}
