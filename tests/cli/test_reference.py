"""The reference: its rows by hand on small schemas, and that nothing is left unsaid."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import pytest
import typer

from headroom.api.reasons import StatusReason
from headroom.api.schema.structural_schema import structural_schema
from headroom.api.service_spec.spec import Drain
from headroom.api.service_status.conditions import ConditionType
from headroom.cli.app import app
from headroom.cli.commands.reference.fields import Field, fields_of, rules_of
from headroom.cli.commands.reference.page import documented, page
from headroom.ops.operator_metrics import OperatorMetrics
from headroom.scaling.values.decision_reason import Reason
from headroom.scaling.values.observation import PodState

DURATION = structural_schema(Drain)["properties"]["gracePeriod"]


class Colour(StrEnum):
    """Two of three say what they mean."""

    RED = "Red"
    """Stop,
    and wait."""
    GREEN = "Green"
    BLUE = "Blue"
    """Go."""


@pytest.mark.parametrize(
    ("schema", "rows"),
    [
        ({"type": "integer", "minimum": 0, "maximum": 9}, [("integer", "")]),
        ({"type": "string", "enum": ["A", "B"], "default": "A"}, [("A or B", '"A"')]),
        (DURATION, [("duration", '"1m"')]),
        ({"x-kubernetes-int-or-string": True}, [("integer or string", "")]),
        (
            {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            [("any object", "")],
        ),
        (
            {"type": "object", "additionalProperties": {"type": "string"}},
            [("map of string", "")],
        ),
    ],
)
def test_field_of_schema_is_a_row(schema: dict[str, Any], rows: list[tuple[str, str]]) -> None:
    found = list(fields_of({"properties": {"it": schema}}, "spec"))
    assert [(one.kind, one.default) for one in found] == rows


def test_fields_inside_lists_and_maps_have_paths() -> None:
    port = {"type": "object", "required": ["number"], "properties": {"number": {"type": "integer"}}}
    schema = {
        "properties": {
            "ports": {"type": "array", "items": port, "description": "Open."},
            "by": {"type": "object", "additionalProperties": port},
        }
    }
    assert list(fields_of(schema, "spec")) == [
        Field("spec.ports", "list of object", "", "Open."),
        Field("spec.ports[].number", "integer", "required", ""),
        Field("spec.by", "map of object", "", ""),
        Field("spec.by{}.number", "integer", "required", ""),
    ]


def test_rule_is_listed_with_its_field() -> None:
    rule = {"rule": "self.a < self.b", "message": "a must be below b", "fieldPath": ".a"}
    schema = {"properties": {"x": {"type": "object", "x-kubernetes-validations": [rule]}}}
    assert list(rules_of(schema, "spec")) == [("spec.x.a", "a must be below b")]


def test_members_of_enumeration_have_their_docstrings() -> None:
    assert documented(Colour) == [("Red", "Stop, and wait."), ("Green", ""), ("Blue", "Go.")]


@pytest.mark.parametrize("members", [ConditionType, StatusReason, Reason, PodState])
def test_every_member_of_the_api_is_documented(members: type[StrEnum]) -> None:
    assert [value for value, text in documented(members) if not text] == []


def test_every_option_and_metric_has_help() -> None:
    text = page(typer.main.get_group(app), OperatorMetrics().page().decode())
    unsaid = [line for line in text.splitlines() if line.startswith(("| `-", "| `headroom_"))]
    assert unsaid
    assert [line for line in unsaid if line.endswith("|  |")] == []


def test_examples_of_a_command_have_a_line_each() -> None:
    text = page(typer.main.get_group(app), OperatorMetrics().page().decode())
    section = text.split("### `headroom plan`\n")[1].split("###")[0]
    examples = [line for line in section.splitlines() if line.startswith("    headroom plan ")]
    assert len(examples) == section.count("headroom plan ")
    assert any(one.split()[2] == "generation" for one in examples)
