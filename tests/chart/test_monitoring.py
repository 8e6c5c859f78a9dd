"""Alerts and dashboard name metrics that exist; every alert has a runbook section and a test."""

from __future__ import annotations

import itertools
import json
import re

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from chart import expressions
from chart.paths import ALERT_TESTS, ALERTS, DASHBOARD, RUNBOOK
from headroom.api.reasons import StatusReason
from headroom.ops.operator_metrics import OperatorMetrics
from support.fakes_decision import ONE_REPLICA_KEPT
from support.service_world import service

RULES = yaml.safe_load(ALERTS.read_text())
TESTS = yaml.safe_load(ALERT_TESTS.read_text())
BOARD = json.loads(DASHBOARD.read_text())
NAMED = {
    rule["alert"]: rule for group in RULES["groups"] for rule in group["rules"] if "alert" in rule
}
EXPRESSIONS = {
    **expressions.of_alerts(RULES),
    **expressions.of_dashboard(BOARD),
    **{f"variable {each}": each for each in expressions.variables_of(BOARD)},
}


def series() -> set[str]:
    """Names under which Prometheus stores what the operator shows."""
    families = text_string_to_metric_families(OperatorMetrics().page().decode())
    suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum")}
    return {
        family.name + suffix for family in families for suffix in suffixes.get(family.type, ("",))
    }


def states() -> set[str]:
    """The states by which the operator counts replicas."""
    instruments = OperatorMetrics()
    instruments.decided(service(), ONE_REPLICA_KEPT)
    return expressions.states_in(instruments.page().decode())


@pytest.mark.parametrize("where", EXPRESSIONS)
def test_expressions_read_existing_metrics(where: str) -> None:
    read = expressions.metrics_in(EXPRESSIONS[where])
    recorded = {name for name in EXPRESSIONS if ":" in name and name in EXPRESSIONS[where]}
    assert read or recorded
    assert read <= series()
    assert expressions.states_in(EXPRESSIONS[where]) <= states()


@pytest.mark.parametrize("alert", NAMED)
def test_alert_has_runbook_severity_and_duration(alert: str) -> None:
    rule = NAMED[alert]
    assert rule["annotations"]["runbook_url"] == f"RUNBOOK.md#{alert.lower()}"
    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert rule["annotations"]["summary"].endswith(".")
    assert "for" in rule


def test_runbook_sections_are_the_alerts() -> None:
    text = RUNBOOK.read_text()
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == list(NAMED)
    for section in text.split("\n## ")[1:]:
        assert "**Means**" in section
        assert "**Do**" in section


@pytest.mark.parametrize("alert", NAMED)
def test_every_alert_fires_in_a_test_and_does_not_in_another(alert: str) -> None:
    cases = [case for test in TESTS["tests"] for case in test["alert_rule_test"]]
    fires = {bool(case["exp_alerts"]) for case in cases if case["alertname"] == alert}
    assert fires == {True, False}


def test_reasons_of_alerts_exist() -> None:
    matched = re.findall(r'reason=~"([^"]+)"', ALERTS.read_text())
    assert matched
    assert {one for each in matched for one in each.split("|")} <= set(StatusReason)


def test_panels_have_descriptions_and_do_not_overlap() -> None:
    panels = BOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert all(panel["description"] for panel in panels if panel["type"] != "row")
    places = [panel["gridPos"] for panel in panels]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    for one, other in itertools.combinations(places, 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        apart = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or apart


def test_metrics_and_states_are_parsed_from_expressions() -> None:
    text = 'rate(headroom_a_total{state="ready"}[5m]) / a:headroom_b:ratio'
    assert expressions.metrics_in(text) == {"headroom_a_total"}
    assert expressions.states_in(text) == {"ready"}
