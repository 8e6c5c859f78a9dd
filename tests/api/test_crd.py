"""The CRD: shipped as generated, bounded, with consistent defaults at every level."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from headroom.api.schema.crd import custom_resource_definition, render_yaml
from headroom.api.schema.structural_schema import structural_schema
from headroom.api.values import VALIDATIONS, Value
from support.service_world import service
from support.structural_objects import INT_OR_STRING, PRESERVE, Schema, parts

DEPLOY = Path(__file__).parents[2] / "deploy"
CRD = custom_resource_definition()
VERSION = CRD["spec"]["versions"][0]
SCHEMA = VERSION["schema"]["openAPIV3Schema"]
PROPERTIES = {path: part for path, part in parts(SCHEMA) if path.startswith((".spec", ".status"))}


def test_shipped_crd_equals_the_generated_one() -> None:
    shipped = (DEPLOY / "base" / "crd.yaml").read_text()
    assert shipped == render_yaml(), "run `make crd`"
    assert yaml.safe_load(shipped) == CRD


def _some(wanted: Callable[[str, Schema], bool]) -> pytest.MarkDecorator:
    chosen = {path: part for path, part in PROPERTIES.items() if wanted(path, part)}
    assert chosen
    return pytest.mark.parametrize(("path", "part"), chosen.items(), ids=chosen)


@_some(lambda path, part: True)
def test_schema_bounds_every_field(path: str, part: Schema) -> None:
    match part.get("type"):
        case "string":
            assert "maxLength" in part or "enum" in part
        case "array":
            assert "maxItems" in part
        case "object" if "additionalProperties" in part:
            assert "maxProperties" in part
        case "object":
            assert part.get("properties") or part.get(PRESERVE)
        case None:
            assert part[INT_OR_STRING]


@_some(lambda path, part: part.get("type") in ("integer", "number") and "maximum" in part)
def test_description_of_a_number_ends_with_its_bounds(path: str, part: Schema) -> None:
    """`kubectl explain` shows no other."""
    assert str(part["maximum"]) in part["description"].rsplit(". ", 1)[-1]


def test_description_of_a_duration_ends_with_its_bounds() -> None:
    target = PROPERTIES[".spec.slo.latency.target"]
    assert target["description"] == "Maximum latency at the percentile. From 1ms to 10m."


@_some(lambda path, part: part.get("type") == "object" and "default" in part)
def test_object_defaults_contain_nested_defaults(path: str, part: Schema) -> None:
    inner = part.get("properties", {}).items()
    assert part["default"] == {name: p["default"] for name, p in inner if "default" in p}


def test_schema_defaults_equal_those_of_the_values() -> None:
    spec = service().spec.manifest()
    for name, part in SCHEMA["properties"]["spec"]["properties"].items():
        if "default" in part:
            assert spec[name] | part["default"] == spec[name]


BORROWED = (".resources.", ".podTemplate.metadata.", "[]")
"""Fields with their meaning in Kubernetes, which need no description."""


@_some(lambda path, part: path.startswith(".spec") and not any(b in path for b in BORROWED))
def test_every_spec_field_has_a_description(path: str, part: Schema) -> None:
    assert part["description"].endswith((".", ")."))


RULES = [rule for _, part in parts(SCHEMA) for rule in part.get(VALIDATIONS, ())]


@pytest.mark.parametrize("rule", RULES, ids=[rule["message"] for rule in RULES])
def test_every_rule_has_a_message(rule: dict[str, str]) -> None:
    assert any(f" {word} " in f" {rule['message']} " for word in ("must", "needs", "has"))


def test_rules_that_show_what_they_got_state_the_rule_before_it_and_no_number() -> None:
    shown = [rule for rule in RULES if "; got ' + (" in rule.get("messageExpression", "")]
    assert len(shown) >= 4
    for rule in shown:
        assert rule["messageExpression"].startswith(f"'{rule['message']}; got ' + (")
        assert "string(" not in rule["messageExpression"]


def test_conditions_are_a_map_by_type() -> None:
    conditions = PROPERTIES[".status.conditions"]
    assert conditions["x-kubernetes-list-type"] == "map"
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]


@pytest.mark.parametrize("column", VERSION["additionalPrinterColumns"], ids=lambda c: c["name"])
def test_printer_columns_show_existing_fields(column: dict[str, Any]) -> None:
    path = column["jsonPath"]
    if path.startswith(".metadata."):
        return
    if "[?(" in path:
        assert path.startswith(".status.conditions[?(@.type==")
        return
    assert PROPERTIES[path]["type"] == column["type"]


def test_crd_has_short_name_and_category() -> None:
    assert CRD["spec"]["names"]["shortNames"] == ["hisvc"]
    assert CRD["spec"]["names"]["categories"] == ["headroom"]
    assert set(VERSION["subresources"]) == {"status", "scale"}


def test_keyword_without_structural_counterpart_raises() -> None:
    class Undecided(Value):
        either: int | str

    with pytest.raises(ValueError, match="no alternatives"):
        structural_schema(Undecided)


def test_scale_subresource_paths_exist() -> None:
    scale = VERSION["subresources"]["scale"]
    types = {key: PROPERTIES[path]["type"] for key, path in scale.items()}
    assert types == {
        "specReplicasPath": "integer",
        "statusReplicasPath": "integer",
        "labelSelectorPath": "string",
    }
