"""The chart's alerts and dashboard, compared with their files and read by promtool."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import yaml

from chart import expressions
from chart.helm import Helm
from chart.paths import ALERT_TESTS, ALERTS, CHART, DASHBOARD
from cluster.commands import run
from scenarios.installation.rendered_chart import EVERYTHING, of_kind


def test_promtool_accepts_the_rules_and_every_alert_fires(promtool: Path) -> None:
    run([promtool, "check", "rules", ALERTS], what="checking the alerts")
    run([promtool, "test", "rules", ALERT_TESTS], what="testing the alerts")


def test_the_rule_of_the_chart_is_the_file_with_the_runbooks_address(helm: Helm) -> None:
    rule = of_kind(helm.template(CHART, EVERYTHING), "PrometheusRule")
    address = "runbook_url: https://runbooks.example/headroom.md#"
    assert rule["spec"] == yaml.safe_load(
        ALERTS.read_text().replace("runbook_url: RUNBOOK.md#", address)
    )


def test_the_dashboard_of_the_chart_is_the_file_and_promtool_can_read_its_queries(
    helm: Helm, promtool: Path, tmp_path: Path
) -> None:
    board = json.loads(DASHBOARD.read_text())
    packed = of_kind(helm.template(CHART, EVERYTHING), "ConfigMap")
    assert json.loads(packed["data"]["headroom.json"]) == board
    numbers = itertools.count()
    queries = [*expressions.of_dashboard(board).values(), *expressions.variables_of(board)]
    rules = [{"record": f"dashboard:{next(numbers)}", "expr": query} for query in queries]
    file = tmp_path / "queries.json"
    file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    run([promtool, "check", "rules", "--lint=none", file], what="reading the dashboard's queries")
