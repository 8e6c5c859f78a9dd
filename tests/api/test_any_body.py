"""Any body is parsed or is an invalid spec; a body that the schema accepts breaks only rules."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from api.schema_rules import BEYOND_A_SCHEMA, CEL_MESSAGES, SPEC_SCHEMA
from headroom.api import InferenceService, InvalidSpec
from headroom.resources import desired_children
from support.service_world import body
from support.structural_objects import JSON, objects, parts, violations


@pytest.mark.parametrize(
    "broken",
    [{}, {"metadata": None}, {"metadata": {}, "spec": {}}, {"metadata": {"name": 3}, "spec": []}],
)
def test_foreign_object_is_an_invalid_spec(broken: dict[str, Any]) -> None:
    with pytest.raises(InvalidSpec, match="metadata"):
        InferenceService.parse(broken)


@given(st.dictionaries(st.sampled_from(["metadata", "spec", "status"]), JSON))
@settings(suppress_health_check=[HealthCheck.too_slow])  # the first text builds a table of Unicode
def test_parse_of_any_body_returns_or_raises_invalid_spec(any_body: dict[str, Any]) -> None:
    with pytest.raises(InvalidSpec):
        InferenceService.parse(any_body)


PATHS = sorted(path.strip(".") for path, _ in parts(SPEC_SCHEMA) if "[" not in path and path)


@given(st.sampled_from(PATHS), JSON)
def test_parse_of_any_field_value_returns_or_raises_invalid_spec(path: str, value: Any) -> None:
    changed = body(**{f"spec__{path.replace('.', '__')}": value})
    try:
        found = InferenceService.parse(changed)
    except InvalidSpec as refused:
        assert all(p.field.startswith("spec") and p.rule for p in refused.problems)  # noqa: PT017
    else:
        assert list(violations(SPEC_SCHEMA, found.spec.manifest())) == []


@given(objects(SPEC_SCHEMA))
def test_body_accepted_by_schema_parses_or_breaks_a_cel_rule(spec: Any) -> None:
    assert list(violations(SPEC_SCHEMA, spec)) == []
    try:
        found = InferenceService.parse(body(spec=spec))
    except InvalidSpec as refused:
        found_rules = {p.rule for p in refused.problems if not p.rule.startswith(BEYOND_A_SCHEMA)}
        assert found_rules <= CEL_MESSAGES
    else:
        assert InferenceService.parse(body(spec=found.spec.manifest())).spec == found.spec
        assert found.to_policy().latency_target_s > 0
        json.dumps(desired_children(found))
