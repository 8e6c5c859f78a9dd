"""PromQL expressions of the alerts and the dashboard, and the metrics that they read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

METRIC = re.compile(r"(?<![\w:])headroom_\w+")
STATE = re.compile(r'state="(\w+)"')
GRAFANA_VARIABLES = {
    "$__rate_interval": "1m",
    "$namespace": ".*",
    "$service": ".*",
}


def of_alerts(rules: Mapping[str, Any]) -> dict[str, str]:
    """Return the expressions by the name of their alert or record."""
    return {
        rule.get("alert") or rule["record"]: rule["expr"]
        for group in rules["groups"]
        for rule in group["rules"]
    }


def of_dashboard(dashboard: Mapping[str, Any]) -> dict[str, str]:
    """Return the expressions by panel title and letter, with variables replaced."""
    return {
        f"{panel['title']}/{target['refId']}": _without_variables(target["expr"])
        for panel in dashboard["panels"]
        for target in panel.get("targets", ())
    }


def variables_of(dashboard: Mapping[str, Any]) -> Iterator[str]:
    """Return the selectors that fill the dashboard's variables."""
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            selector = variable["definition"].removeprefix("label_values(").rpartition(",")[0]
            yield _without_variables(selector)


def metrics_in(expression: str) -> set[str]:
    """Return the series that an expression reads, without those of recording rules."""
    return set(METRIC.findall(expression))


def states_in(expression: str) -> set[str]:
    """Return the replica states that an expression selects."""
    return set(STATE.findall(expression))


def _without_variables(expression: str) -> str:
    for name, value in GRAFANA_VARIABLES.items():
        expression = expression.replace(name, value)
    return expression
