"""PromQL expressions of the alerts and the dashboard, and the metrics that they read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

METRIC = re.compile(r"(?<![\w:])headroom_\w+")
SELECTOR = re.compile(r"(?<![\w:])(headroom_\w+)\{([^}]*)\}")
LABEL = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
GROUPED = re.compile(r"\b(?:by|on|without|ignoring)\s*\(([^)]*)\)")
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


def selected_in(expression: str) -> set[tuple[str, str]]:
    """Return each series with each label by which the expression selects it."""
    return {
        (name, label)
        for name, labels in SELECTOR.findall(expression)
        for label in LABEL.findall(labels)
    }


def grouped_in(expression: str) -> set[str]:
    """Return the labels by which the expression groups or matches."""
    return {one.strip() for each in GROUPED.findall(expression) for one in each.split(",")} - {""}


def states_in(expression: str) -> set[str]:
    """Return the replica states that an expression selects."""
    return set(STATE.findall(expression))


def _without_variables(expression: str) -> str:
    for name, value in GRAFANA_VARIABLES.items():
        expression = expression.replace(name, value)
    return expression
